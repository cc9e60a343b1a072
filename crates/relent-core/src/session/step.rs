//! What a session answers.

use core::fmt;
use core::time::Duration;

use super::Past;
use crate::Instant;
use crate::time::nanos;

/// Names one attempt of a call; a session may have more than one in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttemptId(u32);

impl AttemptId {
    pub(super) const FIRST: AttemptId = AttemptId(1);

    pub(super) const fn numbered(number: u32) -> AttemptId {
        AttemptId(number)
    }

    /// The id as a number, from 1.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The session's answer to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Start this attempt now.
    Launch(Launch),
    /// Do nothing until then, and say so.
    Wait {
        /// When to wake up.
        until: Instant,
    },
    /// The call is over.
    Stop(Stop),
}

/// An attempt to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// What to call it in the inputs that follow.
    pub id: AttemptId,
    /// Its number on the wire, from 1; free repeats have one too.
    pub number: u32,
    /// When its time is up: by the attempt timeout or the deadline.
    pub ends: Instant,
    /// How long that is; `None` without a bound.
    pub time: Option<Duration>,
    /// The attempt credit to tell the layer below; `None`: say nothing.
    pub left: Option<u32>,
    /// The attempts before it.
    pub past: Past,
    /// Attempts before it, free repeats aside: what gRPC tells as `grpc-previous-rpc-attempts`.
    pub previous: u32,
}

impl Launch {
    #[inline]
    pub(super) fn new(number: u32, now: Instant, ends: Instant, left: Option<u32>) -> Launch {
        let (time, past, previous) = (ends.left(now), Past::NONE, number - 1);
        Launch { id: AttemptId(number), number, ends, time, left, past, previous }
    }

    /// The time to tell the layer below, so that it answers before this one gives up: less 5 ms or 5 %, whichever is
    /// more. `Some(ZERO)` means that nothing useful is left to tell.
    #[must_use]
    pub fn time_below(&self) -> Option<Duration> {
        self.time.map(Launch::time_below_of)
    }

    /// The same for an attempt of so much time.
    #[must_use]
    pub fn time_below_of(time: Duration) -> Duration {
        time.saturating_sub(Duration::from_nanos(margin(nanos(time))))
    }

    /// When the layer below has to have answered: `ends`, less the same margin.
    #[must_use]
    #[inline]
    pub fn ends_below(&self) -> Instant {
        match self.time {
            Some(time) => Instant::from_nanos(self.ends.as_nanos().saturating_sub(margin(nanos(time)))),
            None => Instant::NEVER,
        }
    }
}

/// What a layer keeps of so many nanoseconds, to hear the layer below and answer in time itself.
#[inline]
fn margin(time: u64) -> u64 {
    const LEAST: u64 = 5_000_000;
    (time / 20).max(LEAST)
}

/// Whose word a wait follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitOrigin {
    /// The policy's backoff.
    #[default]
    Backoff,
    /// The server's hint, which asked for more.
    Server,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why no further attempt was made.
    pub reason: StopReason,
    /// Attempts made, free repeats included.
    pub attempts: u32,
    /// Whether any of them may have been executed without an answer.
    pub ambiguous: bool,
    /// What the server had asked to wait, where the last failure came with that.
    pub hint: Option<Duration>,
}

/// Why no further attempt was made.
///
/// From `NotRetryable` to `BudgetExhausted` the order is the engine's: a call that could stop for several of these names
/// the first. `DeadlineExceeded` goes before them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopReason {
    /// An attempt succeeded.
    Succeeded,
    /// The failure is not one that this policy retries.
    NotRetryable,
    /// The peer said "do not retry this".
    StoppedByPeer,
    /// Repeating could do the work twice.
    UnsafeToRepeat,
    /// The request's body is gone.
    NotReplayable,
    /// The policy's attempts are made.
    AttemptsExhausted,
    /// The attempts that the layers above granted are made, here or below.
    CreditExhausted,
    /// The server asks for a longer wait than `max_hint`.
    HintTooLong,
    /// The next attempt would start too late to be of use.
    DeadlineTooClose,
    /// Too many calls to this target are waiting already.
    TooManyWaiting,
    /// The breaker refuses.
    BreakerOpen,
    /// The budget refuses.
    BudgetExhausted,
    /// The call's time was up.
    DeadlineExceeded,
    /// The caller gave up.
    Cancelled,
}

impl StopReason {
    /// All of them.
    pub const ALL: [StopReason; 14] = [
        StopReason::Succeeded,
        StopReason::NotRetryable,
        StopReason::StoppedByPeer,
        StopReason::UnsafeToRepeat,
        StopReason::NotReplayable,
        StopReason::AttemptsExhausted,
        StopReason::CreditExhausted,
        StopReason::HintTooLong,
        StopReason::DeadlineTooClose,
        StopReason::TooManyWaiting,
        StopReason::BreakerOpen,
        StopReason::BudgetExhausted,
        StopReason::DeadlineExceeded,
        StopReason::Cancelled,
    ];

    /// The name used in logs, metrics and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StopReason::Succeeded => "Succeeded",
            StopReason::NotRetryable => "NotRetryable",
            StopReason::StoppedByPeer => "StoppedByPeer",
            StopReason::UnsafeToRepeat => "UnsafeToRepeat",
            StopReason::NotReplayable => "NotReplayable",
            StopReason::AttemptsExhausted => "AttemptsExhausted",
            StopReason::CreditExhausted => "CreditExhausted",
            StopReason::HintTooLong => "HintTooLong",
            StopReason::DeadlineTooClose => "DeadlineTooClose",
            StopReason::TooManyWaiting => "TooManyWaiting",
            StopReason::BreakerOpen => "BreakerOpen",
            StopReason::BudgetExhausted => "BudgetExhausted",
            StopReason::DeadlineExceeded => "DeadlineExceeded",
            StopReason::Cancelled => "Cancelled",
        }
    }

    /// The same in words, for error texts.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            StopReason::Succeeded => "an attempt succeeded",
            StopReason::NotRetryable => "the failure is not retryable",
            StopReason::StoppedByPeer => "the peer said not to retry",
            StopReason::UnsafeToRepeat => "repeating could do the work twice",
            StopReason::NotReplayable => "the body can't be sent again",
            StopReason::AttemptsExhausted => "all attempts are made",
            StopReason::CreditExhausted => "the layers above granted no further attempt",
            StopReason::HintTooLong => "the server asked for too long a wait",
            StopReason::DeadlineTooClose => "the next attempt would start too late",
            StopReason::TooManyWaiting => "too many calls are waiting already",
            StopReason::BreakerOpen => "the breaker is open",
            StopReason::BudgetExhausted => "the retry budget is spent",
            StopReason::DeadlineExceeded => "the deadline has passed",
            StopReason::Cancelled => "the caller gave up",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.describe())
    }
}
