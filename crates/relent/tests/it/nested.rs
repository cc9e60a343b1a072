//! What an attempt hears of the calls made inside it, whatever error comes out of it.

use std::cell::Cell;
use std::io::{Error, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use relent::timer::Manual;
use relent::{Policy, Retry, RetryError, StopReason, Verdict};

use crate::rig::ms;

fn policy() -> Policy {
    Policy::constant(Duration::ZERO)
        .attempts(3)
        .attempt_timeout(ms(100))
        .no_deadline()
        .no_budget()
        .build()
        .unwrap()
}

#[test]
fn what_may_have_been_executed_inside_is_not_unprocessed_outside() {
    // Refused first, then executed without an answer: the refusal is the last error there is.
    let time = Manual::new();
    let (outer, inner) =
        (Retry::with_timer(policy(), time.clone()), Retry::with_timer(policy(), time.clone()));
    let executed = Cell::new(0);
    let pay = outer
        .run(async |_| {
            let attempts = inner.run(async |attempt| {
                if !attempt.is_retry() {
                    return Err(Error::from(ErrorKind::ConnectionRefused));
                }
                executed.set(executed.get() + 1);
                std::future::pending::<Result<(), Error>>().await
            });
            attempts.only_if_unprocessed().await
        })
        .only_if_unprocessed();
    let gave_up: RetryError<RetryError<Error>> = time.run(pay).unwrap_err();
    assert_eq!((executed.get(), gave_up.reason()), (1, StopReason::UnsafeToRepeat), "{gave_up}");
    assert!(gave_up.ambiguous());
}

#[test]
fn ambiguity_passes_through_errors_of_ones_own_and_blocking_calls() {
    let (outer, inner) =
        (Retry::with_timer(policy(), Manual::new()), Retry::with_timer(policy(), Manual::new()));
    let mut answers = [ErrorKind::ConnectionReset, ErrorKind::ConnectionRefused].into_iter();
    let outer = outer.classify(|_: &&str| Verdict::Permanent);
    let gave_up = outer.run_blocking(|_| {
        let call =
            inner.run_blocking(|_| Err::<(), _>(Error::from(answers.next().unwrap_or(ErrorKind::NotFound))));
        call.map_err(|_| "could not pay")
    });
    assert!(gave_up.is_err_and(|error| error.ambiguous()));
}

#[test]
fn what_is_done_outside_every_call_marks_nothing() {
    let retry = Retry::with_timer(policy(), Manual::new());
    let reset = || retry.run_blocking(|_| Err::<(), _>(Error::from(ErrorKind::ConnectionReset)));
    assert!(reset().is_err_and(|error| error.ambiguous()));
    let missing = retry.run_blocking(|_| Err::<(), _>(Error::from(ErrorKind::NotFound)));
    assert!(missing.is_err_and(|error| !error.ambiguous()));
}

#[test]
fn deadlines_of_different_clocks_are_not_compared() {
    let virtual_time = Retry::with_timer(policy(), Manual::new());
    let real_time = Retry::new(Policy::default());
    let answer = virtual_time.run_blocking(|_| real_time.run_blocking(|_| Ok::<_, Error>(7)));
    assert_eq!(answer.ok(), Some(7));
    let answer = real_time.run_blocking(|_| virtual_time.run_blocking(|_| Ok::<_, Error>(7)));
    assert_eq!(answer.ok(), Some(7));
}

#[test]
fn a_listener_that_panics_ends_its_call_and_not_the_process() {
    let retry = Retry::with_timer(policy(), Manual::new()).on_event(|_| panic!("on purpose"));
    let call = || retry.run_blocking(|_| Err::<(), _>(Error::from(ErrorKind::ConnectionReset)));
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    assert_eq!(retry.waiting(), 0);
}

#[test]
fn a_sockets_own_timeout_may_have_been_executed() {
    let retry = Retry::with_timer(policy(), Manual::new());
    for kind in [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::Interrupted] {
        let gave_up = retry.run_blocking(|_| Err::<(), _>(Error::from(kind))).unwrap_err();
        assert!(gave_up.ambiguous(), "{kind:?}");
    }
}

/// Futures that are to be spawned have to be `Send`; the compiler is the judge.
#[test]
fn calls_can_be_spawned() {
    fn is_send<T: Send>(_: &T) {}
    let retry = Retry::default();
    let call = retry.run(|_| async { Ok::<_, Error>(7) });
    is_send(&call);
    is_send(&call.until(std::future::pending::<()>()));
    is_send(&retry.run_blocking(|_| Ok::<_, Error>(7)));
}
