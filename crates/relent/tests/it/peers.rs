//! What other libraries' loops got wrong (part B of the cases), on this one's.

use std::time::Duration;

use relent::timer::Manual;
use relent::{Hint, Jitter, Policy, Ratio, RatioConfig, Retry, StopReason, Verdict};

use crate::rig::{Busy, handle, unbounded};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn b13_the_budget_is_asked_before_the_wait_and_the_real_error_comes_back() {
    let time = Manual::new();
    let empty = RatioConfig { reserve: Some(0), ..RatioConfig::new(Ratio::percent(10)) };
    let gave_up =
        handle(unbounded(3).budget(empty), &time).run_blocking(|_| Err::<(), _>(Busy(7))).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::BudgetExhausted, Some(&Busy(7))));
    assert_eq!(time.elapsed(), Duration::ZERO, "nobody sleeps to be refused");
}

/// The waits that follow a failure with this hint, over many random numbers.
fn waits(hint: Duration) -> impl Iterator<Item = Option<Duration>> {
    (0..500).map(move |seed| {
        let time = Manual::new();
        let policy =
            Policy::exponential(SECOND, 4 * SECOND).jitter(Jitter::Full).no_deadline().build().unwrap();
        let retry = Retry::with_timer(policy, time.clone())
            .seed(seed)
            .classify(move |_: &Busy| Verdict::Throttled { hint: Some(Hint::at_least(hint)) });
        let answer = retry.run_blocking(|attempt| if attempt.is_retry() { Ok(()) } else { Err(Busy(1)) });
        answer.is_ok().then(|| time.elapsed())
    })
}

#[test]
fn b13_jitter_never_makes_a_hint_earlier() {
    assert!(waits(5 * SECOND).all(|wait| wait.is_some_and(|wait| wait >= 5 * SECOND)));
}

#[test]
fn b13_an_absurd_hint_is_no_immediate_retry() {
    for hint in [Duration::from_secs(100_000_000_000), Duration::from_secs(u64::MAX), Duration::MAX] {
        assert!(waits(hint).all(|wait| wait.is_none()), "{hint:?}");
    }
}

#[test]
fn b13_no_attempt_starts_at_the_limit() {
    let time = Manual::new();
    let policy =
        Policy::constant(5 * SECOND).attempts(9).no_attempt_timeout().no_budget().deadline(10 * SECOND);
    let gave_up = handle(policy, &time).run_blocking(|_| Err::<(), _>(Busy(1))).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::DeadlineTooClose, 2));
    assert_eq!(time.elapsed(), 5 * SECOND);
}
