//! What a listener hears: every failure, wait and end, in order, once; first tries that succeed are silent.

use std::sync::{Arc, Mutex};

use relent::timer::{Clock, Manual, Timer};
use relent::{Cause, Event, Failure, Hint, PolicyBuilder, Retry, Stop, StopReason, Verdict, WaitOrigin};

use crate::rig::{Busy, ms, unbounded};

/// A handle that writes down its events; attempt n comes to the n-th of `failures`, and to a success after them.
struct Heard {
    retry: Retry<fn(&Failure) -> Failure, Manual>,
    time: Manual,
    log: Arc<Mutex<Vec<Event>>>,
}

impl Heard {
    fn new(policy: PolicyBuilder) -> Heard {
        let (time, log) = (Manual::new(), Arc::new(Mutex::new(Vec::new())));
        let listener = Arc::clone(&log);
        let itself: fn(&Failure) -> Failure = |failure| *failure;
        let retry = Retry::with_timer(policy.build().unwrap(), time.clone())
            .on_event(move |event| listener.lock().unwrap().push(*event))
            .classify(itself);
        Heard { retry, time, log }
    }

    /// What both drivers tell of the same call.
    fn of(policy: impl Fn() -> PolicyBuilder, failures: &[Failure]) -> Vec<Event> {
        let outcome = |number: u32| failures.get(number as usize - 1).map_or(Ok(()), |failure| Err(*failure));
        let blocking = Heard::new(policy());
        let _ = blocking.retry.run_blocking(|attempt| outcome(attempt.number()));
        let heard = Heard::new(policy());
        let _ = heard.time.run(heard.retry.run(async |attempt| outcome(attempt.number())));
        assert_eq!(heard.events(), blocking.events(), "the drivers tell the same");
        heard.events()
    }

    fn events(&self) -> Vec<Event> {
        self.log.lock().unwrap().clone()
    }
}

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

fn failed(attempt: u32, failure: Failure) -> Event {
    // What the layers below have used of their credit comes with the report: none was.
    Event::Failed { attempt, failure: failure.used(relent::Used::Reported(0)) }
}

fn waiting(attempts: u32, wait: u64, origin: WaitOrigin) -> Event {
    Event::Waiting { attempts, wait: ms(wait), origin }
}

fn stopped(reason: StopReason, attempts: u32) -> Event {
    Event::Stopped(Stop { reason, attempts, ambiguous: false, hint: None })
}

#[test]
fn a_first_try_that_succeeds_is_silent() {
    assert_eq!(Heard::of(|| unbounded(3), &[]), []);
}

#[test]
fn a_call_that_recovers() {
    let expected = [
        failed(1, TRANSIENT),
        waiting(1, 10, WaitOrigin::Backoff),
        Event::Recovered { attempts: 2, winner: 2 },
    ];
    assert_eq!(Heard::of(|| unbounded(3), &[TRANSIENT]), expected);
}

#[test]
fn a_call_that_gives_up() {
    let expected = [
        failed(1, TRANSIENT),
        waiting(1, 10, WaitOrigin::Backoff),
        failed(2, TRANSIENT),
        stopped(StopReason::AttemptsExhausted, 2),
    ];
    assert_eq!(Heard::of(|| unbounded(2), &[TRANSIENT; 2]), expected);
}

#[test]
fn a_free_repeat_is_a_failure_without_a_wait() {
    let stale = Failure::new(Verdict::Unprocessed).free();
    assert_eq!(
        Heard::of(|| unbounded(2), &[stale]),
        [failed(1, stale), Event::Recovered { attempts: 2, winner: 2 }]
    );
}

#[test]
fn a37_a_wait_says_whose_word_it_follows() {
    let check = |base: u64, hint: Hint, wait: u64, origin: WaitOrigin| {
        let failure = TRANSIENT.cause(Cause::Status(503)).hint(hint);
        let events = Heard::of(|| unbounded(2).cap(ms(base)).base(ms(base)), &[failure]);
        assert_eq!(events[1], waiting(1, wait, origin), "base {base} ms, {hint:?}");
    };
    // The greater of the two counts; a cap of zero leaves a hint no room to be spread.
    check(0, Hint::at_least(ms(5000)), 5000, WaitOrigin::Server);
    check(1000, Hint::exactly(ms(5000)), 5000, WaitOrigin::Server);
    check(1000, Hint::at_least(ms(100)), 1000, WaitOrigin::Backoff);
}

#[test]
fn a_call_that_never_ran_is_told_too() {
    let heard = Heard::new(unbounded(3));
    let outer = Retry::with_timer(unbounded(1).deadline(ms(100)).build().unwrap(), heard.time.clone());
    let _ = outer.run_blocking(|_| {
        heard.time.advance(ms(99));
        let late = heard.retry.run_blocking(|_| Ok(()));
        assert!(late.is_err());
        Ok::<_, Busy>(())
    });
    assert_eq!(heard.events(), [stopped(StopReason::DeadlineExceeded, 0)]);
}

#[test]
fn a_timeout_is_a_failure_like_another() {
    let heard = Heard::new(unbounded(2).attempt_timeout(ms(20)));
    let call = heard.retry.run(async |attempt| {
        heard.time.sleep_until(heard.time.now() + ms(if attempt.is_retry() { 1 } else { 500 })).await;
        Ok::<_, Failure>(())
    });
    assert!(heard.time.run(call).is_ok());
    let expected = [
        failed(1, Failure::timed_out()),
        waiting(1, 10, WaitOrigin::Backoff),
        Event::Recovered { attempts: 2, winner: 2 },
    ];
    assert_eq!(heard.events(), expected);
}

#[test]
fn a_dropped_call_is_told_as_cancelled_once() {
    let heard = Heard::new(unbounded(2));
    let mut call =
        crate::stepper::Stepper::new(&heard.time, heard.retry.run(async |_| Err::<(), _>(TRANSIENT)));
    assert!(call.poll().is_pending());
    drop(call);
    let expected =
        [failed(1, TRANSIENT), waiting(1, 10, WaitOrigin::Backoff), stopped(StopReason::Cancelled, 1)];
    assert_eq!(heard.events(), expected);
}
