//! A call whose first attempt has not failed yet: a few words, so that the common case costs next to nothing.

use core::time::Duration;

use super::ledger::{self, Told};
use super::{AttemptId, Context, Launch, Phase, Session, StopReason};
use crate::budget::Presence;
use crate::{Admission, Credit, Health, Instant, Policy, Repeat};

/// The first attempt of a call, in flight. Most calls never become more than this: a driver on a hot path takes it before
/// a [`Session`], which it turns into as soon as the attempt fails or has to be waited for.
///
/// The same code opens a session; nothing is decided here that is decided otherwise there.
///
/// ```
/// use relent_core::*;
/// use std::sync::Arc;
///
/// let policy = Policy::builder().no_deadline().no_attempt_timeout().no_budget().build()?;
/// let (waiting, free_repeats, bits) = (Arc::new(WaitingRoom::new()), FreeRepeats::default(), || 7);
/// let context = Context {
///     policy: &policy, budget: None, breaker: None, waiting: &waiting,
///     free_repeats: &free_repeats, credit: &NoCredit, hold: None, latencies: None, random: &bits,
/// };
/// let opening = Opening::begin(&context, Repeat::Yes, Instant::NEVER, Instant::ZERO).expect("nothing refuses it");
/// assert_eq!(opening.left(), Some(1));
/// opening.succeeded(&context, None);
/// # Ok::<(), PolicyError>(())
/// ```
#[derive(Debug)]
#[must_use = "an attempt was opened: say how it went"]
pub struct Opening {
    began: Instant,
    ends: Instant,
    deadline: Instant,
    told: Told,
    /// The call counts as in flight, where a budget wants to know.
    presence: Option<Presence>,
    admission: Admission,
}

impl Opening {
    /// Opens a call as [`Session::new`] and [`Session::begin`] do.
    ///
    /// # Errors
    /// The reason for which nothing is run: [`StopReason::DeadlineExceeded`] or [`StopReason::BreakerOpen`].
    #[inline]
    pub fn begin<C: Credit + ?Sized>(
        context: &Context<'_, C>,
        repeat: Repeat,
        deadline: Instant,
        now: Instant,
    ) -> Result<Opening, StopReason> {
        let deadline = nearer(context.policy, deadline, now);
        Opening::of(context, can_retry(context.policy, repeat), deadline, now)
    }

    /// The questions before the first attempt, in order: the deadline, the breaker.
    #[inline]
    pub(super) fn of<C: Credit + ?Sized>(
        context: &Context<'_, C>,
        can_retry: bool,
        deadline: Instant,
        now: Instant,
    ) -> Result<Opening, StopReason> {
        if now >= deadline {
            return Err(StopReason::DeadlineExceeded);
        }
        let admission = match context.breaker {
            Some(breaker) => breaker.admit_first(now).ok_or(StopReason::BreakerOpen)?,
            None => Admission::ANY,
        };
        let presence = context.budget.and_then(Presence::begin);
        let further = context.policy.attempts() - 1;
        let hedges = if can_retry { hedges(context.policy, Repeat::Yes) } else { 0 };
        let told = ledger::tell(context.policy.nested(), can_retry, further, hedges, context.credit);
        let ends = ends(context.policy, deadline, now);
        Ok(Opening { began: now, ends, deadline, told, presence, admission })
    }

    /// The attempt succeeded at once, or ended at `now` where somebody asks how long it took; the call is over.
    #[inline]
    pub fn succeeded<C: Credit + ?Sized>(&self, context: &Context<'_, C>, now: Option<Instant>) {
        // What was lent goes back whole: credit spent below a call that then succeeded returns.
        if self.told.lent > 0 {
            context.credit.give(self.told.lent);
        }
        let at = now.unwrap_or(self.began);
        let took = at.since(self.began);
        tell_success(context, 1, self.admission, took, at, now);
        if let Some(latencies) = context.latencies {
            latencies.record(took, at);
        }
    }

    /// The same attempt, as begun at `now`: for a driver that reads its clock only when an attempt does not end at once, and
    /// keeps an opening for that which no budget has heard of.
    pub fn moved_to(&self, now: Instant) -> Opening {
        let moved = |at: Instant| if at.is_never() { at } else { now + at.since(self.began) };
        Opening {
            began: now,
            ends: moved(self.ends),
            deadline: moved(self.deadline),
            told: self.told,
            presence: None,
            admission: self.admission,
        }
    }

    /// The attempt goes on, or has failed: a full session, in which it runs.
    #[must_use]
    pub fn into_session(self, policy: &Policy, repeat: Repeat) -> Session {
        let mut session = Session::new(policy, repeat, self.deadline, self.began);
        session.deadline = self.deadline;
        session.opened(self);
        debug_assert!(session.phase == Phase::Running, "the first attempt is in flight");
        session
    }

    /// The attempt, as [`Step::Launch`](super::Step::Launch) would say it.
    #[must_use]
    #[inline]
    pub fn launch(&self) -> Launch {
        Launch::new(AttemptId::FIRST.get(), self.began, self.ends, self.told.left)
    }

    /// The attempt credit to tell the layer below; `None`: say nothing.
    #[must_use]
    #[inline]
    pub fn left(&self) -> Option<u32> {
        self.told.left
    }

    /// The same attempt with the breaker's leave: for a driver that opens calls by a copy of one that had none to ask.
    #[inline]
    pub fn admitted(mut self, admission: Admission) -> Opening {
        self.admission = admission;
        self
    }

    /// The breaker's leave for it, to be given back if the call comes to nothing before it is a session.
    #[must_use]
    #[inline]
    pub fn admission(&self) -> Admission {
        self.admission
    }

    pub(super) fn ends(&self) -> Instant {
        self.ends
    }

    pub(super) fn told(&self) -> Told {
        self.told
    }

    pub(super) fn into_presence(self) -> Option<Presence> {
        self.presence
    }
}

/// Whether a layer with this policy can itself retry a call that may be repeated so.
#[inline]
pub(super) fn can_retry(policy: &Policy, repeat: Repeat) -> bool {
    repeat == Repeat::Yes && policy.attempts() > 1
}

/// How many hedges a call may make that may be repeated so.
#[inline]
pub(super) fn hedges(policy: &Policy, repeat: Repeat) -> u32 {
    match policy.hedge() {
        Some(hedge) if repeat == Repeat::Yes => hedge.most,
        _ => 0,
    }
}

/// The nearer of the caller's deadline and the policy's.
#[inline]
pub(super) fn nearer(policy: &Policy, deadline: Instant, now: Instant) -> Instant {
    match policy.deadline() {
        Some(length) => deadline.min(now + length),
        None => deadline,
    }
}

/// When an attempt that starts now has to end.
#[inline]
pub(super) fn ends(policy: &Policy, deadline: Instant, now: Instant) -> Instant {
    match policy.attempt_timeout() {
        Some(length) => deadline.min(now + length),
        None => deadline,
    }
}

/// Budget and breaker hear of a success.
#[inline]
pub(super) fn tell_success<C: ?Sized>(
    context: &Context<'_, C>,
    attempts: u32,
    admission: Admission,
    took: Duration,
    about: Instant,
    now: Option<Instant>,
) {
    if let Some(budget) = context.budget {
        budget.on_success(attempts, now);
    }
    if let Some(breaker) = context.breaker {
        breaker.record(admission, Health::Good, took, about);
    }
}
