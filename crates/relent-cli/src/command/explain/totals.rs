//! How long a call takes in all when every attempt fails, and where the deadline cuts it off.
//!
//! Where the deadline never cuts, the figures are sums of exact ones. Where it does, the shipped session is played in
//! virtual time with seeded random bits: no other code decides here than in production.

use std::time::Duration;

use relent_core::{Cause, Failure, Instant, Policy, Repeat, RepeatRule, Rng, Session, Step, Verdict};

use serde::Serialize;

use super::alone::Alone;
use super::laws::{Wait, Waits};
use super::report::ms;

/// Plays of one policy, at most: enough for three digits.
const PLAYS: u32 = 10_000;
/// Attempts in all plays together, at most.
const PLAYED_ATTEMPTS: u32 = 2_000_000;

/// The waits of one call, all together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Sum {
    /// By the curve, before jitter.
    #[serde(rename = "unjittered_ms", serialize_with = "ms")]
    pub(super) unjittered: Duration,
    /// The mean.
    #[serde(rename = "expected_ms", serialize_with = "ms")]
    pub(super) expected: Duration,
    /// The greatest.
    #[serde(rename = "worst_ms", serialize_with = "ms")]
    pub(super) worst: Duration,
}

/// The time of a call whose every attempt fails in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Outlook {
    /// The mean time of the call.
    #[serde(rename = "expected_ms", serialize_with = "ms")]
    pub(super) expected: Duration,
    /// It takes no longer than this.
    #[serde(rename = "worst_ms", serialize_with = "ms")]
    pub(super) worst: Duration,
    /// Attempts made when every wait is the greatest.
    #[serde(rename = "attempts_fewest")]
    pub(super) fewest: u32,
    /// Attempts made when every wait is the least.
    #[serde(rename = "attempts_most")]
    pub(super) most: u32,
    /// Whether the deadline can end the call before its attempts are made.
    #[serde(rename = "cut_by_deadline")]
    pub(super) cut: bool,
}

/// How every attempt fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// At once.
    AtOnce,
    /// By its timeout.
    TimedOut(Duration),
}

/// Attempts that such a call makes unless the deadline cuts it off.
pub(super) fn attempts_granted(policy: &Policy, ending: Ending) -> u32 {
    let retried = match ending {
        Ending::AtOnce => true,
        Ending::TimedOut(_) => policy.retry_on().contains(Cause::Timeout),
    };
    if retried && policy.repeat() != RepeatRule::Never { policy.attempts() } else { 1 }
}

/// Adds up the waits before so many attempts.
pub(super) fn sum(policy: &Policy, attempts: u32) -> Sum {
    let mut waits = Waits::new(policy.backoff());
    let (mut unjittered, mut mean, mut worst) = (Duration::ZERO, 0.0, Duration::ZERO);
    let mut add = |wait: Wait, times: u32| {
        unjittered = unjittered.saturating_add(wait.unjittered.saturating_mul(times));
        worst = worst.saturating_add(wait.max.saturating_mul(times));
        mean += wait.mean * f64::from(times);
    };
    let mut left = attempts.saturating_sub(1);
    while left > 0 {
        let Some(wait) = waits.next() else { break };
        let times = if waits.is_steady() { left } else { 1 };
        add(wait, times);
        left -= times;
    }
    Sum { unjittered, expected: from_nanos(mean), worst }
}

/// The time of a call that fails like this.
pub(super) fn outlook(policy: &Policy, ending: Ending) -> Outlook {
    let attempts = attempts_granted(policy, ending);
    let sum = sum(policy, attempts);
    let each = match ending {
        Ending::AtOnce => Duration::ZERO,
        Ending::TimedOut(timeout) => timeout,
    };
    let running = each.saturating_mul(attempts);
    let (expected, worst) = (running.saturating_add(sum.expected), running.saturating_add(sum.worst));
    let in_time = |deadline| worst.saturating_add(policy.min_attempt_time()) < deadline;
    let Some(deadline) = policy.deadline().filter(|deadline| !in_time(*deadline)) else {
        return Outlook { expected, worst, fewest: attempts, most: attempts, cut: false };
    };
    let (longest, fewest) = play(policy, ending, || u64::MAX);
    let (shortest, most) = play(policy, ending, || 0);
    // With nothing to draw, the two are one and the same call.
    let worst = if (longest, fewest) == (shortest, most) { longest } else { deadline.min(worst) };
    Outlook {
        expected: mean_of_plays(policy, ending, deadline),
        worst,
        fewest,
        most,
        cut: fewest < attempts || longest == deadline,
    }
}

fn mean_of_plays(policy: &Policy, ending: Ending, deadline: Duration) -> Duration {
    let plays = (PLAYED_ATTEMPTS / policy.attempts()).clamp(200, PLAYS);
    let rng = std::cell::RefCell::new(Rng::seeded(1));
    let total: f64 = (0..plays)
        .map(|_| play(policy, ending, || rng.borrow_mut().next()).0.min(deadline).as_nanos() as f64)
        .sum();
    from_nanos(total / f64::from(plays))
}

/// One call, in virtual time: how long it took and how many attempts it made. One that goes on and on counts as going on
/// to its deadline.
fn play(policy: &Policy, ending: Ending, bits: impl Fn() -> u64) -> (Duration, u32) {
    let alone = Alone::new();
    let context = alone.context(policy, &bits);
    let mut now = Instant::ZERO;
    let mut session = Session::new(policy, Repeat::Yes, Instant::NEVER, now);
    let mut step = session.begin(&context, now);
    loop {
        step = match step {
            Step::Launch(launch) if launch.number >= PLAYED_ATTEMPTS / 200 => {
                return (policy.deadline().unwrap_or(Duration::MAX), policy.attempts());
            }
            Step::Launch(launch) => match ending {
                Ending::AtOnce => session.failed(&context, launch.id, Failure::new(Verdict::Transient), now),
                Ending::TimedOut(_) => {
                    now = launch.ends;
                    session.expired(&context, launch.id, Failure::timed_out(), now)
                }
            },
            Step::Wait { until } => {
                now = until;
                session.due(&context, now)
            }
            Step::Stop(stop) => return (now.since(Instant::ZERO), stop.attempts),
        };
    }
}

fn from_nanos(nanos: f64) -> Duration {
    Duration::try_from_secs_f64(nanos / 1e9).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use relent_core::{Jitter, RetryOn};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn without_a_cut_the_figures_are_sums() {
        let policy = Policy::default();
        let at_once = outlook(&policy, Ending::AtOnce);
        assert_eq!((at_once.expected, at_once.worst), (150 * MS, 300 * MS));
        assert_eq!((at_once.fewest, at_once.most, at_once.cut), (3, 3, false));
    }

    #[test]
    fn the_deadline_cuts_attempts_and_waits() {
        let policy = Policy::builder().jitter(Jitter::None).attempts(9).build().unwrap();
        // Waits 100, 200, … 3200 ms end at 6.3 s; the next of 6.4 s at 12.7 s; the last of 10 s would end after 15 s.
        let at_once = outlook(&policy, Ending::AtOnce);
        assert_eq!((at_once.worst, at_once.fewest, at_once.cut), (12_700 * MS, 8, true));
        assert_eq!(at_once.expected, at_once.worst);
        // 5 s, 0.1 s, 5 s, 0.2 s, and 4.7 s of the third.
        let timed_out = outlook(&policy, Ending::TimedOut(5000 * MS));
        assert_eq!((timed_out.worst, timed_out.most), (15_000 * MS, 3));
    }

    #[test]
    fn a_timeout_that_is_not_retried_ends_the_call() {
        let policy = Policy::builder().retry_on(RetryOn::nothing().connect()).build().unwrap();
        assert_eq!(outlook(&policy, Ending::TimedOut(5000 * MS)).worst, 5000 * MS);
    }

    #[test]
    fn attempts_without_end_are_summed_without_counting_to_four_billion() {
        let policy = Policy::builder().attempts(u32::MAX).no_deadline().build().unwrap();
        let sum = sum(&policy, u32::MAX);
        assert!(sum.worst > Duration::from_secs(10 * u64::from(u32::MAX) - 100));
        let base = Duration::from_nanos(1);
        let policy = Policy::exponential(base, 10 * base).attempts(u32::MAX).build().unwrap();
        assert_eq!(outlook(&policy, Ending::AtOnce).worst, Duration::from_secs(15));
    }
}
