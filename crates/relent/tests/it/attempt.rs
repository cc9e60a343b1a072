//! What an operation is told of the attempts before the one that it makes.

use std::time::Duration;

use relent::timer::{Clock, Manual, Timer};
use relent::{Attempt, Cause, Event, Failure, Hint, Retry, Stop, StopReason, Verdict, WaitOrigin};

use crate::rig::{ms, unbounded};

type Seen = (Option<Failure>, bool);

fn seen(attempt: Attempt) -> Seen {
    (attempt.last_failure(), attempt.may_have_been_executed())
}

fn script() -> [Failure; 3] {
    let busy = Failure::new(Verdict::Transient).cause(Cause::Status(503)).hint(Hint::at_least(ms(1)));
    let reset = Failure::new(Verdict::Transient).cause(Cause::Reset).ambiguous();
    [busy, reset, Failure::new(Verdict::Unprocessed).cause(Cause::Connect)]
}

fn expected() -> Vec<Seen> {
    let [busy, reset, refused] = script();
    vec![(None, false), (Some(busy), false), (Some(reset), true), (Some(refused), true)]
}

#[test]
fn a_blocking_operation_knows_the_failure_before_and_whether_its_work_may_be_done() {
    let retry = Retry::with_timer(unbounded(4).build().unwrap(), Manual::new()).classify(|f: &Failure| *f);
    let (mut failures, mut told) = (script().into_iter(), Vec::new());
    let answer = retry.run_blocking(|attempt| {
        told.push(seen(attempt));
        failures.next().map_or(Ok(()), Err)
    });
    assert!(answer.is_ok());
    assert_eq!(told, expected());
}

#[test]
fn an_async_one_does_too() {
    let time = Manual::new();
    let retry = Retry::with_timer(unbounded(4).build().unwrap(), time.clone()).classify(|f: &Failure| *f);
    let (mut failures, mut told) = (script().into_iter(), Vec::new());
    let answer = time.run(retry.run(|attempt| {
        told.push(seen(attempt));
        let failure = failures.next();
        async move { failure.map_or(Ok(()), Err) }
    }));
    assert!(answer.is_ok());
    assert_eq!(told, expected());
}

#[test]
fn an_attempt_that_ran_out_of_time_may_have_been_executed() {
    let time = Manual::new();
    let policy = unbounded(2).attempt_timeout(ms(20)).build().unwrap();
    let retry = Retry::with_timer(policy, time.clone()).classify(|f: &Failure| *f);
    let mut told = Vec::new();
    let answer = time.run(retry.run(|attempt| {
        told.push(seen(attempt));
        let late = time.sleep_until(time.now() + if attempt.is_retry() { ms(1) } else { ms(500) });
        async move {
            late.await;
            Ok::<_, Failure>(())
        }
    }));
    assert!(answer.is_ok());
    assert_eq!(told, [(None, false), (Some(Failure::timed_out()), true)]);
}

#[test]
fn an_attempt_stays_small() {
    assert!(size_of::<Attempt>() <= 24);
}

#[test]
fn every_event_is_one_line() {
    let stop = |reason, attempts, ambiguous| Event::Stopped(Stop { reason, attempts, ambiguous, hint: None });
    for (event, line) in [
        (
            Event::Failed { attempt: 2, failure: script()[0] },
            "attempt 2 failed: transient (503), asks for 1ms",
        ),
        (
            Event::Waiting { attempts: 2, wait: Duration::from_millis(1234), origin: WaitOrigin::Backoff },
            "attempt 3 follows in 1.2s",
        ),
        (
            Event::Waiting { attempts: 1, wait: ms(5), origin: WaitOrigin::Server },
            "attempt 2 follows in 5.0ms, as the server asked",
        ),
        (Event::Recovered { attempts: 3, winner: 3 }, "attempt 3 of 3 succeeded"),
        (Event::Hedged { attempt: 2 }, "attempt 2 starts beside one that takes long"),
        (Event::HedgeRefused { reason: StopReason::BudgetExhausted }, "no hedge: the retry budget is spent"),
        (
            stop(StopReason::AttemptsExhausted, 3, true),
            "gave up after 3 attempts: all attempts are made; it may have taken effect",
        ),
        (stop(StopReason::Cancelled, 1, false), "gave up after 1 attempt: the caller gave up"),
    ] {
        assert_eq!(event.to_string(), line);
    }
}

#[test]
fn a_call_that_took_no_time_tells_of_none() {
    let retry = Retry::with_timer(unbounded(2).build().unwrap(), Manual::new()).classify(|f: &Failure| *f);
    let gave_up = retry.run_blocking(|_| Err::<(), Failure>(Verdict::Permanent.into())).unwrap_err();
    assert_eq!(gave_up.to_string(), "gave up after 1 attempt: the failure is not retryable");
}
