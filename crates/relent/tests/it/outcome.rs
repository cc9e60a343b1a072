//! Values that are failures: retried like errors, and handed back where no retry is granted.

use std::future::pending;

use relent::outcome::JudgeOutcome;
use relent::timer::{Clock, Manual, Timer};
use relent::{Answer, Failure, Hint, Retry, RetryError, StopReason, Verdict};

use crate::rig::{Busy, ms, unbounded};

type Outcome = Result<u16, Busy>;
type Told = Result<Answer<u16>, RetryError<Busy>>;

fn judge(outcome: &Outcome) -> Option<Failure> {
    match outcome {
        Ok(503) => Some(Verdict::Transient.into()),
        Ok(429) => Some(Failure::new(Verdict::Throttled { hint: Some(Hint::exactly(ms(40))) })),
        Ok(400) => Some(Verdict::Permanent.into()),
        Err(Busy(7)) => Some(Verdict::Permanent.into()),
        _ => None,
    }
}

/// The same script by both drivers, which have to agree; and how long it took.
fn play(script: &[Outcome], check: impl Fn(Told, u64)) {
    let retry = |time: &Manual| {
        Retry::with_timer(unbounded(3).build().unwrap(), time.clone())
            .keep_errors()
            .classify(|_: &Busy| Verdict::Transient)
            .map_outcome(judge as fn(&Outcome) -> Option<Failure>)
    };
    let time = Manual::new();
    let mut outcomes = script.iter().copied();
    let told = retry(&time).run_blocking(|_| outcomes.next().expect("no further attempt"));
    check(told, time.now().as_nanos() / 1_000_000);

    let time = Manual::new();
    let mut outcomes = script.iter().copied();
    let handle = retry(&time);
    let told = time.run(handle.run(|_| std::future::ready(outcomes.next().expect("no further attempt"))));
    check(told, time.now().as_nanos() / 1_000_000);
}

#[test]
fn a_value_that_is_a_failure_is_retried() {
    play(&[Ok(503), Err(Busy(1)), Ok(200)], |told, took| {
        let answer = told.unwrap();
        assert_eq!((answer.value, answer.stopped, took), (200, None, 20));
    });
    play(&[Ok(429), Ok(200)], |told, took| assert_eq!((told.unwrap().into_value(), took), (200, 40)));
}

#[test]
fn the_last_real_value_comes_back_with_the_reason() {
    play(&[Ok(503), Err(Busy(1)), Ok(503)], |told, _| {
        let answer = told.unwrap();
        let stop = answer.stopped.expect("it is not what was wanted");
        assert_eq!((answer.value, stop.reason, stop.attempts), (503, StopReason::AttemptsExhausted, 3));
    });
    play(&[Ok(400)], |told, _| {
        let stopped = told.unwrap().stopped.map(|stop| stop.reason);
        assert_eq!(stopped, Some(StopReason::NotRetryable));
    });
}

#[test]
fn the_last_real_error_does_too_and_values_are_not_among_the_errors() {
    play(&[Err(Busy(1)), Ok(503), Err(Busy(2))], |told, _| {
        let gave_up = told.unwrap_err();
        assert_eq!(gave_up.reason(), StopReason::AttemptsExhausted);
        assert_eq!(gave_up.errors().copied().collect::<Vec<_>>(), [Busy(1), Busy(2)]);
    });
    // The judge's word on an error goes before the classifier's.
    play(&[Err(Busy(7))], |told, _| assert_eq!(told.unwrap_err().reason(), StopReason::NotRetryable));
}

#[test]
fn a_value_survives_attempts_without_an_answer_and_the_callers_giving_up() {
    let time = Manual::new();
    let policy = unbounded(2).attempt_timeout(ms(20)).build().unwrap();
    let retry = Retry::with_timer(policy, time.clone())
        .classify(|_: &Busy| Verdict::Transient)
        .retry_value_if(|code: &u16| *code == 503);
    let answer =
        time.run(retry.run(|attempt| async move {
            if attempt.is_retry() { pending().await } else { Outcome::Ok(503) }
        }));
    let answer = answer.unwrap();
    assert_eq!((answer.value, answer.stopped.map(|stop| stop.attempts)), (503, Some(2)));

    let signal = time.sleep_until(time.now() + ms(5));
    let answer = time.run(retry.run(|_| async { Outcome::Ok(503) }).until(signal)).unwrap();
    assert_eq!(answer.stopped.map(|stop| stop.reason), Some(StopReason::Cancelled));
}

#[test]
fn what_must_not_happen_twice_is_not_repeated_for_its_value() {
    let time = Manual::new();
    let retry = Retry::with_timer(unbounded(3).build().unwrap(), time.clone())
        .classify(|_: &Busy| Verdict::Transient)
        .retry_value_if(|code: &u16| *code == 503);
    let answer = time.run(retry.run(|_| async { Outcome::Ok(503) }).only_if_unprocessed()).unwrap();
    assert_eq!(answer.stopped.map(|stop| stop.reason), Some(StopReason::UnsafeToRepeat));
}

#[test]
fn a_test_of_values_leaves_errors_alone() {
    let time = Manual::new();
    let retry = Retry::with_timer(unbounded(2).build().unwrap(), time)
        .classify(|_: &Busy| Verdict::Permanent)
        .retry_value_if(|_: &u16| true);
    assert_eq!(retry.run_blocking(|_| Outcome::Err(Busy(1))).unwrap_err().attempts(), 1);
    assert!(judge.judge(&Ok(200)).is_none());
}
