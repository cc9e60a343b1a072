//! A caller who gives up: at once, without blame, and with the last real error kept.

use std::cell::Cell;
use std::future::{pending, ready};

use relent::timer::{Clock, Manual, Timer};
use relent::{PolicyBuilder, Ratio, RatioConfig, RetriesOnlyConfig, StopReason};

use crate::rig::{Busy, handle, ms, unbounded};

fn budgeted(attempts: u32) -> PolicyBuilder {
    unbounded(attempts).budget(RatioConfig { reserve: Some(5), ..RatioConfig::new(Ratio::percent(10)) })
}

#[test]
fn a58_a_cancelled_wait_keeps_the_last_real_error() {
    let time = Manual::new();
    let retry = handle(budgeted(3), &time);
    let signal = time.sleep_until(time.now() + ms(5));
    let gave_up = time.run(retry.run(|_| ready(Err::<(), _>(Busy(1)))).until(signal)).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::Cancelled, Some(&Busy(1))));
    assert_eq!((gave_up.attempts(), gave_up.ambiguous()), (1, false));
    assert_eq!(gave_up.elapsed(), ms(5));
}

#[test]
fn a58_a_cancelled_attempt_keeps_the_error_of_the_one_before() {
    let time = Manual::new();
    let retry = handle(budgeted(3), &time);
    let signal = time.sleep_until(time.now() + ms(15));
    let call = retry.run(async |attempt| match attempt.number() {
        1 => Err(Busy(1)),
        _ => pending::<Result<(), Busy>>().await,
    });
    let gave_up = time.run(call.until(signal)).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::Cancelled, Some(&Busy(1))));
    assert_eq!((gave_up.attempts(), gave_up.last_timed_out()), (2, false));
    assert!(gave_up.ambiguous(), "the attempt that was cut off may have been executed");
}

#[test]
fn a58_a_deadline_keeps_the_last_real_error_too() {
    let time = Manual::new();
    let retry = handle(budgeted(3).deadline(ms(50)), &time);
    let call = retry.run(async |attempt| match attempt.number() {
        1 => Err(Busy(1)),
        _ => pending::<Result<(), Busy>>().await,
    });
    let gave_up = time.run(call).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::DeadlineExceeded, Some(&Busy(1))));
    assert!(std::error::Error::source(&gave_up).is_some_and(|source| source.is::<Busy>()));
}

#[test]
fn p41_cancelling_stops_attempts_and_timers_and_blames_nobody() {
    // When the caller gives up; attempts made and failures seen by then; tokens spent for good, those of launched retries.
    let check = |cancelled_at: u64, attempts: u32, failures: u32, spent: u64| {
        let time = Manual::new();
        let half = RetriesOnlyConfig { minimum_calls: failures + 2, ..RetriesOnlyConfig::DEFAULT };
        let retry = handle(budgeted(5).breaker(half).attempt_timeout(ms(1000)), &time);
        let launched = Cell::new(0);
        let signal = time.sleep_until(time.now() + ms(cancelled_at));
        let call = retry.run(async |attempt| {
            launched.set(attempt.number());
            time.sleep_until(time.now() + ms(20)).await;
            Err::<(), _>(Busy(1))
        });
        let gave_up = time.run(call.until(signal)).unwrap_err();
        assert_eq!(gave_up.reason(), StopReason::Cancelled, "at {cancelled_at} ms");
        assert_eq!((gave_up.attempts(), launched.get()), (attempts, attempts), "at {cancelled_at} ms");
        assert_eq!(retry.budget_balance(), Some(5 - spent), "at {cancelled_at} ms");
        assert_eq!((retry.waiting(), time.sleepers()), (0, 0), "at {cancelled_at} ms");
        // A cancelled attempt is no failure: had it been counted, one more would open the breaker.
        let again = retry.run_blocking(|attempt| if attempt.is_retry() { Ok(()) } else { Err(Busy(2)) });
        assert!(again.is_ok(), "at {cancelled_at} ms: {again:?}");
    };
    check(10, 1, 0, 0); // in the first attempt
    check(25, 1, 1, 0); // in the backoff
    check(45, 2, 1, 1); // in the second attempt
}

#[test]
fn an_answer_beats_the_signal() {
    let time = Manual::new();
    let retry = handle(unbounded(3), &time);
    let call = retry.run(async |_| {
        time.sleep_until(time.now() + ms(10)).await;
        Ok::<_, Busy>(7)
    });
    let signal = time.sleep_until(time.now() + ms(10));
    assert_eq!(time.run(call.until(signal)).ok(), Some(7));
}

#[test]
fn nothing_runs_for_a_caller_who_has_given_up_already() {
    let time = Manual::new();
    let retry = handle(unbounded(3), &time);
    let call = retry.run(async |_| -> Result<(), Busy> { panic!("nothing may run") });
    let gave_up = time.run(call.until(ready(()))).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts(), gave_up.last()), (StopReason::Cancelled, 0, None));
    assert!(!gave_up.ambiguous());
}

#[test]
fn a_signal_at_the_end_of_a_wait_starts_no_further_attempt() {
    let time = Manual::new();
    let retry = handle(budgeted(3), &time);
    let signal = time.sleep_until(time.now() + ms(10));
    let gave_up = time.run(retry.run(|_| ready(Err::<(), _>(Busy(1)))).until(signal)).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::Cancelled, 1));
    assert_eq!(retry.budget_balance(), Some(5));
}

#[test]
fn a_signal_that_never_comes_changes_nothing() {
    let time = Manual::new();
    let retry = handle(unbounded(2), &time);
    let call = retry.run(|_| ready(Err::<(), _>(Busy(1)))).until(pending::<()>());
    assert_eq!(time.run(call).unwrap_err().reason(), StopReason::AttemptsExhausted);
}

#[test]
fn what_a_cancelled_inner_call_spent_stays_spent() {
    use crate::rig::spend_all_credit;

    let time = Manual::new();
    let (above, middle, leaf) =
        (handle(unbounded(8), &time), handle(unbounded(5), &time), handle(unbounded(3), &time));
    let call = above.run(async |_| {
        let signal = time.sleep_until(time.now() + ms(25));
        // The leaf fails at 0 and at 10 ms, and waits for its third attempt at 20; that hangs.
        let middle = middle.run(async |_| {
            let leaf = leaf.run(async |attempt| match attempt.number() {
                3 => pending::<Result<(), Busy>>().await,
                number => Err(Busy(number)),
            });
            leaf.await.map_err(Busy::from)
        });
        let gave_up = middle.until(signal).await.unwrap_err();
        assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::Cancelled, 1));
        Ok::<_, Busy>(spend_all_credit())
    });
    assert_eq!(time.run(call).unwrap(), Some(6 - 2), "two extra attempts were made at the leaf");
}
