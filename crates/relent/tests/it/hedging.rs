//! Hedged calls on the async driver: what runs beside what, who wins, and what is left of the losers.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relent::timer::{Clock, Manual, Timer};
use relent::{
    Attempt, Event, HedgeConfig, Instant, PolicyBuilder, Ratio, RatioConfig, Retry, StopReason, Verdict,
};

use crate::rig::{Busy, Transient, handle, ms, spend_all_credit, unbounded};
use crate::stepper::Stepper;

fn hedged(attempts: u32, hedges: u32) -> PolicyBuilder {
    unbounded(attempts).hedge(HedgeConfig::after(ms(50)).most(hedges))
}

/// Tells when an attempt is dropped, and whether that was before its end.
struct Guard<'a> {
    dropped: &'a RefCell<Vec<u32>>,
    number: u32,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.dropped.borrow_mut().push(self.number);
    }
}

/// Attempts that take so long each, and come to these outcomes.
async fn script(
    time: &Manual,
    log: &RefCell<Vec<(u32, u64)>>,
    attempt: Attempt,
    lengths: &[(u64, Result<(), Busy>)],
) -> Result<u32, Busy> {
    let number = attempt.number();
    log.borrow_mut().push((number, millis(time.now())));
    let (length, outcome) = lengths[number as usize - 1];
    time.sleep_until(time.now() + ms(length)).await;
    outcome.map(|()| number)
}

fn millis(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

/// Launches, the outcome, and when it came.
fn play(policy: PolicyBuilder, lengths: &[(u64, Result<(), Busy>)]) -> (Vec<(u32, u64)>, Option<u32>, u64) {
    let (time, log) = (Manual::new(), RefCell::new(Vec::new()));
    let retry = handle(policy, &time);
    let outcome = time.run(retry.run(|attempt| script(&time, &log, attempt, lengths)));
    (log.into_inner(), outcome.ok(), millis(time.now()))
}

const BUSY: Result<(), Busy> = Err(Busy(0));

#[test]
fn an_attempt_that_ends_soon_is_alone() {
    assert_eq!(play(hedged(3, 2), &[(49, Ok(()))]), (vec![(1, 0)], Some(1), 49));
}

#[test]
fn the_first_success_is_the_answer() {
    let slow_first = play(hedged(3, 1), &[(500, Ok(())), (20, Ok(()))]);
    assert_eq!(slow_first, (vec![(1, 0), (2, 50)], Some(2), 70));
    let slow_second = play(hedged(3, 1), &[(80, Ok(())), (500, Ok(()))]);
    assert_eq!(slow_second, (vec![(1, 0), (2, 50)], Some(1), 80));
    let both = play(hedged(4, 2), &[(500, Ok(())), (300, Ok(())), (10, Ok(()))]);
    assert_eq!(both, (vec![(1, 0), (2, 50), (3, 100)], Some(3), 110));
}

#[test]
fn a_failure_waits_for_those_still_in_flight() {
    let first_fails = play(hedged(3, 1), &[(60, BUSY), (100, Ok(()))]);
    assert_eq!(first_fails, (vec![(1, 0), (2, 50)], Some(2), 150));
    let second_fails = play(hedged(3, 1), &[(200, Ok(())), (5, BUSY)]);
    assert_eq!(second_fails, (vec![(1, 0), (2, 50)], Some(1), 200));
}

#[test]
fn once_all_have_failed_an_ordinary_retry_follows() {
    let retried = play(hedged(3, 1), &[(60, BUSY), (20, BUSY), (5, Ok(()))]);
    assert_eq!(retried, (vec![(1, 0), (2, 50), (3, 80)], Some(3), 85));
}

#[test]
fn every_attempt_has_its_own_time() {
    let policy = hedged(2, 1).attempt_timeout(ms(100));
    let (log, outcome, end) = play(policy, &[(500, Ok(())), (500, Ok(()))]);
    assert_eq!((log, outcome, end), (vec![(1, 0), (2, 50)], None, 150));
}

#[test]
fn losers_are_dropped_before_anybody_hears_of_the_success() {
    let (time, dropped) = (Manual::new(), RefCell::new(Vec::new()));
    let retry = handle(hedged(3, 2), &time);
    let outcome = time.run(retry.run(|attempt| {
        let guard = Guard { dropped: &dropped, number: attempt.number() };
        let time = time.clone();
        async move {
            let _guard = guard;
            match attempt.number() {
                3 => {
                    time.sleep_until(time.now() + ms(10)).await;
                    Ok::<_, Busy>(())
                }
                _ => pending().await,
            }
        }
    }));
    assert!(outcome.is_ok());
    let mut dropped = dropped.into_inner();
    assert_eq!(dropped[0], 3, "the winner ended by itself");
    dropped.sort_unstable();
    assert_eq!(dropped, [1, 2, 3]);
    assert_eq!(time.sleepers(), 0);
}

#[test]
fn a_dropped_call_drops_every_attempt_and_holds_nothing() {
    let (time, dropped) = (Manual::new(), RefCell::new(Vec::new()));
    let budget = RatioConfig { reserve: Some(5), ..RatioConfig::new(Ratio::percent(10)) };
    let retry = handle(hedged(3, 2).budget(budget), &time);
    let mut call = Stepper::new(
        &time,
        retry.run(|attempt| {
            let guard = Guard { dropped: &dropped, number: attempt.number() };
            async move {
                let _guard = guard;
                pending::<Result<(), Busy>>().await
            }
        }),
    );
    for _ in 0..3 {
        assert!(call.poll().is_pending());
        time.advance(ms(50));
    }
    drop(call);
    let mut dropped = dropped.take();
    dropped.sort_unstable();
    assert_eq!(dropped, [1, 2, 3]);
    assert_eq!(retry.budget_balance(), Some(3), "two hedges are spent, and nothing else");
    assert_eq!((retry.waiting(), time.sleepers()), (0, 0));
}

#[test]
fn a47_without_a_budget_to_pay_for_it_the_call_goes_on_alone() {
    let broke = RatioConfig { reserve: Some(0), ..RatioConfig::new(Ratio::percent(10)) };
    let (log, outcome, end) = play(hedged(3, 1).budget(broke), &[(500, Ok(()))]);
    assert_eq!((log, outcome, end), (vec![(1, 0)], Some(1), 500));
}

#[test]
fn what_may_be_repeated_only_when_unprocessed_is_not_hedged() {
    let (time, log) = (Manual::new(), RefCell::new(Vec::new()));
    let retry = handle(hedged(3, 1), &time);
    let call = retry.run(|attempt| script(&time, &log, attempt, &[(500, Ok(()))])).only_if_unprocessed();
    assert!(time.run(call).is_ok());
    assert_eq!(log.into_inner(), [(1, 0)]);
}

#[test]
fn a_failure_that_is_not_retryable_ends_the_others() {
    let time = Manual::new();
    let dropped = RefCell::new(Vec::new());
    let retry = handle(hedged(3, 1), &time).classify(|busy: &Busy| match busy.0 {
        404 => Verdict::Permanent,
        _ => Verdict::Transient,
    });
    let error = time
        .run(retry.run(|attempt| {
            let guard = Guard { dropped: &dropped, number: attempt.number() };
            let time = time.clone();
            async move {
                let _guard = guard;
                if attempt.number() == 1 {
                    return pending::<Result<(), Busy>>().await;
                }
                time.sleep_until(time.now() + ms(5)).await;
                Err(Busy(404))
            }
        }))
        .unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (StopReason::NotRetryable, 2));
    assert_eq!(error.last(), Some(&Busy(404)));
    let mut dropped = dropped.into_inner();
    dropped.sort_unstable();
    assert_eq!(dropped, [1, 2]);
}

#[test]
fn a_hedge_grants_no_further_attempts_to_the_calls_inside_it() {
    let time = Manual::new();
    let granted = Rc::new(RefCell::new(Vec::new()));
    let retry = handle(hedged(4, 1), &time);
    let outcome = time.run(retry.run(|attempt| {
        let (time, granted) = (time.clone(), Rc::clone(&granted));
        async move {
            granted.borrow_mut().push((attempt.number(), spend_all_credit()));
            time.sleep_until(time.now() + ms(200)).await;
            Ok::<_, Busy>(())
        }
    }));
    assert!(outcome.is_ok());
    // Of three further attempts one may go to the hedge, and one is kept back.
    assert_eq!(*granted.borrow(), [(1, Some(1)), (2, Some(0))]);
}

#[test]
fn a_hedge_that_was_perhaps_executed_makes_the_call_ambiguous() {
    let policy = hedged(2, 1).attempt_timeout(ms(100));
    let time = Manual::new();
    let retry = handle(policy, &time);
    let error = time.run(retry.run(|_| pending::<Result<(), Busy>>())).unwrap_err();
    assert!(error.ambiguous());
    assert_eq!((error.reason(), error.attempts()), (StopReason::AttemptsExhausted, 2));
}

#[test]
fn listeners_hear_of_hedges_and_of_who_won() {
    let heard = |policy: PolicyBuilder, lengths: &'static [(u64, Result<(), Busy>)]| {
        let (time, log) = (Manual::new(), Arc::new(Mutex::new(Vec::new())));
        let transient: Transient = |_| Verdict::Transient;
        let listener = Arc::clone(&log);
        let retry = Retry::with_timer(policy.build().unwrap(), time.clone())
            .on_event(move |event| listener.lock().unwrap().push(*event))
            .classify(transient);
        let launches = RefCell::new(Vec::new());
        let _ = time.run(retry.run(|attempt| script(&time, &launches, attempt, lengths)));
        drop(retry);
        Arc::into_inner(log).unwrap().into_inner().unwrap()
    };
    assert_eq!(
        heard(hedged(3, 1), &[(500, Ok(())), (20, Ok(()))]),
        [Event::Hedged { attempt: 2 }, Event::Recovered { attempts: 2, winner: 2 }]
    );
    let broke = RatioConfig { reserve: Some(0), ..RatioConfig::new(Ratio::percent(10)) };
    assert_eq!(
        heard(hedged(3, 1).budget(broke), &[(500, Ok(()))]),
        [Event::HedgeRefused { reason: StopReason::BudgetExhausted }]
    );
}

#[test]
fn a_measured_delay_comes_from_the_handles_own_calls() {
    let time = Manual::new();
    let tail = HedgeConfig::at_quantile(Ratio::percent(90));
    let retry = handle(unbounded(3).hedge(tail), &time);
    let launched = Cell::new(0);
    let took = |length: Duration| {
        launched.set(0);
        let begun = time.now();
        let outcome = time.run(retry.run(|attempt: Attempt| {
            launched.set(launched.get() + 1);
            let time = time.clone();
            async move {
                let length = if attempt.is_retry() { ms(1) } else { length };
                time.sleep_until(time.now() + length).await;
                Ok::<_, Busy>(())
            }
        }));
        assert!(outcome.is_ok());
        (launched.get(), time.now().since(begun))
    };
    for _ in 0..30 {
        assert_eq!(took(ms(40)), (1, ms(40)));
    }
    let (launches, length) = took(ms(1000));
    assert_eq!(launches, 2);
    assert!(length >= ms(41) && length <= ms(46), "{length:?}");
}

#[test]
fn until_cancels_all_attempts() {
    let (time, dropped) = (Manual::new(), RefCell::new(Vec::new()));
    let retry = handle(hedged(3, 1), &time);
    let signal = time.sleep_until(time.now() + ms(70));
    let call = retry
        .run(|attempt| {
            let guard = Guard { dropped: &dropped, number: attempt.number() };
            async move {
                let _guard = guard;
                pending::<Result<(), Busy>>().await
            }
        })
        .until(signal);
    let error = time.run(pin!(call)).unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (StopReason::Cancelled, 2));
    assert_eq!(dropped.borrow().len(), 2);
}
