//! The circuit breaker alone, in a tower stack, and before the calls of a handle.

use std::cell::Cell;
use std::future::pending;
use std::sync::{Arc, Mutex};

use relent::timer::{Clock, Manual};
use relent::{
    BreakerError, BreakerState, BreakerWindow, CircuitBreaker, ClassicConfig, Event, Health, Ratio,
    StopReason, TripReason, Verdict,
};

use crate::rig::{Busy, handle, ms, unbounded};
use crate::stepper::Stepper;

/// Opens after two failures in a row, for a second without jitter, and closes after two good probes.
fn quick() -> ClassicConfig {
    ClassicConfig::new()
        .consecutive_failures(2)
        .open_for(ms(1000))
        .open_jitter(Ratio::ZERO)
        .open_growth(Ratio::of(2, 1), ms(4000))
        .probes(2)
}

fn breaker(time: &Manual) -> CircuitBreaker<Manual> {
    CircuitBreaker::with_timer(quick(), time.clone()).unwrap()
}

fn fail(breaker: &CircuitBreaker<Manual>) -> Result<(), BreakerError<Busy>> {
    breaker.run_blocking(|| Err(Busy(1)))
}

fn succeed(breaker: &CircuitBreaker<Manual>) -> Result<(), BreakerError<Busy>> {
    breaker.run_blocking(|| Ok(()))
}

#[test]
fn it_opens_refuses_probes_and_closes() {
    let time = Manual::new();
    let breaker = breaker(&time);
    for _ in 0..2 {
        assert_eq!(fail(&breaker), Err(BreakerError::Inner(Busy(1))));
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    time.advance(ms(400));
    match succeed(&breaker) {
        Err(BreakerError::Open(open)) => {
            assert_eq!(open.retry_after, Some(ms(600)));
            assert_eq!(open.to_string(), "the circuit breaker is open for another 600.0ms");
        }
        other => panic!("{other:?}"),
    }
    time.advance(ms(600));
    assert!(succeed(&breaker).is_ok());
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert!(succeed(&breaker).is_ok());
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn failing_probes_double_the_open_time() {
    let time = Manual::new();
    let breaker = breaker(&time);
    let _ = (fail(&breaker), fail(&breaker));
    for open in [1000, 2000, 4000, 4000] {
        time.advance(ms(open - 1));
        assert!(matches!(succeed(&breaker), Err(BreakerError::Open(_))), "before {open} ms");
        time.advance(ms(1));
        assert_eq!(fail(&breaker), Err(BreakerError::Inner(Busy(1))), "after {open} ms");
    }
}

#[test]
fn a55_exactly_as_many_probes_as_configured() {
    let time = Manual::new();
    let breaker = breaker(&time);
    let _ = (fail(&breaker), fail(&breaker));
    time.advance(ms(1000));
    let probes: Vec<_> = (0..100).filter_map(|_| breaker.try_acquire().ok()).collect();
    assert_eq!(probes.len(), 2);
    assert!(probes.iter().all(|probe| probe.is_probe()));
}

#[test]
fn a52_a_probe_that_is_dropped_gives_its_place_to_another() {
    let time = Manual::new();
    let breaker = breaker(&time);
    let _ = (fail(&breaker), fail(&breaker));
    time.advance(ms(1000));
    for _ in 0..10 {
        let mut probe = Stepper::new(&time, breaker.run(pending::<Result<(), Busy>>));
        assert!(probe.poll().is_pending());
        drop(probe);
    }
    assert_eq!(breaker.state(), BreakerState::HalfOpen, "a dropped probe says nothing");
    let _ = (succeed(&breaker), succeed(&breaker));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a52_probes_that_are_never_heard_of_again_are_given_up() {
    let time = Manual::new();
    let breaker = breaker(&time);
    let _ = (fail(&breaker), fail(&breaker));
    time.advance(ms(1000));
    let lost: Vec<_> = (0..2).map(|_| breaker.try_acquire().unwrap()).collect();
    assert!(breaker.try_acquire().is_err());
    time.advance(relent::defaults::PROBE_LEASE);
    let _ = (succeed(&breaker), succeed(&breaker));
    assert_eq!(breaker.state(), BreakerState::Closed);
    lost.into_iter().for_each(|probe| probe.failure());
    assert_eq!(breaker.state(), BreakerState::Closed, "what they say at last is of another time");
}

#[test]
fn a53_a_call_from_before_changes_nothing_after() {
    let time = Manual::new();
    let breaker = breaker(&time);
    let late: Vec<_> = (0..4).map(|_| breaker.try_acquire().unwrap()).collect();
    let _ = (fail(&breaker), fail(&breaker));
    time.advance(ms(1000));
    let probe = breaker.try_acquire().unwrap();
    let mut late = late.into_iter();
    late.next().unwrap().success();
    late.next().unwrap().failure();
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    probe.success();
    breaker.try_acquire().unwrap().success();
    assert_eq!(breaker.state(), BreakerState::Closed);
    late.for_each(|call| call.failure());
    assert_eq!((breaker.state(), breaker.counts().failures), (BreakerState::Closed, 0));
}

#[test]
fn slow_calls_open_it() {
    let time = Manual::new();
    let config = ClassicConfig::new()
        .no_failure_rate()
        .slow_calls(ms(100), Ratio::percent(50))
        .window(BreakerWindow::Calls(10))
        .minimum_calls(4);
    let breaker = CircuitBreaker::with_timer(config, time.clone()).unwrap();
    let take = |length: u64| {
        breaker.run_blocking(|| {
            time.advance(ms(length));
            Ok::<_, Busy>(())
        })
    };
    assert!([10, 10, 100].map(take).iter().all(Result::is_ok));
    assert_eq!(breaker.state(), BreakerState::Closed);
    assert!(take(150).is_ok());
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn it_can_be_opened_and_closed_by_hand_and_tells() {
    let (time, log) = (Manual::new(), Arc::new(Mutex::new(Vec::new())));
    let listener = Arc::clone(&log);
    let breaker = CircuitBreaker::telling(quick(), time.clone(), move |change| {
        listener.lock().unwrap().push((change.from, change.to, change.why));
    })
    .unwrap();
    breaker.open();
    time.advance(ms(3_600_000));
    assert!(matches!(succeed(&breaker), Err(BreakerError::Open(open)) if open.retry_after.is_none()));
    breaker.close();
    assert!(succeed(&breaker).is_ok());
    let _ = (fail(&breaker), fail(&breaker));
    use BreakerState::{Closed, ForcedOpen, Open};
    assert_eq!(
        *log.lock().unwrap(),
        [
            (Closed, ForcedOpen, TripReason::ByHand),
            (ForcedOpen, Closed, TripReason::ByHand),
            (Closed, Open, TripReason::ConsecutiveFailures)
        ]
    );
}

#[test]
fn what_is_no_failure_of_the_target_counts_as_its_good_work() {
    let time = Manual::new();
    let breaker = breaker(&time);
    for _ in 0..5 {
        let call = breaker.run_counting(async || Err::<(), _>(Busy(404)), |_| Health::Good);
        assert!(time.run(call).is_err());
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
    assert_eq!((breaker.counts().calls, breaker.counts().failures), (5, 0));
}

#[test]
fn a56_a_retry_around_an_open_breaker_does_not_repeat_the_refusal() {
    let time = Manual::new();
    let breaker = breaker(&time);
    breaker.open();
    let runs = Cell::new(0);
    let retry = relent::Retry::with_timer(unbounded(5).build().unwrap(), time.clone());
    let error = time
        .run(retry.run(|_| {
            breaker.run(|| {
                runs.set(runs.get() + 1);
                std::future::ready(Err::<(), _>(Busy(1)))
            })
        }))
        .unwrap_err();
    assert_eq!((error.reason(), error.attempts(), runs.get()), (StopReason::NotRetryable, 1, 0));
    assert_eq!(time.elapsed(), ms(0), "nobody slept");
}

#[test]
fn handles_can_share_one() {
    let time = Manual::new();
    let breaker = breaker(&time);
    let one = relent::Retry::with_timer(unbounded(3).build().unwrap(), time.clone())
        .breaker(breaker.clone())
        .classify(|_: &Busy| Verdict::Transient);
    let other = relent::Retry::with_timer(unbounded(3).build().unwrap(), time.clone())
        .breaker(breaker.clone())
        .classify(|_: &Busy| Verdict::Transient);
    let error = time.run(one.run(async |_| Err::<(), _>(Busy(1)))).unwrap_err();
    assert_eq!((error.reason(), error.attempts()), (StopReason::BreakerOpen, 2));
    assert_eq!(error.last(), Some(&Busy(1)), "the last real error comes back");
    let refused = time.run(other.run(async |_| Ok::<_, Busy>(()))).unwrap_err();
    assert_eq!((refused.reason(), refused.attempts()), (StopReason::BreakerOpen, 0));
}

#[test]
fn a_policys_own_breaker_tells_the_handles_listeners() {
    let (time, log) = (Manual::new(), Arc::new(Mutex::new(Vec::new())));
    let listener = Arc::clone(&log);
    let retry = relent::Retry::with_timer(unbounded(1).breaker(quick()).build().unwrap(), time.clone())
        .on_event(move |event| {
            if let Event::Breaker(change) = event {
                listener.lock().unwrap().push(change.to);
            }
        })
        .classify(|_: &Busy| Verdict::Transient);
    let fail = || time.run(retry.run(async |_| Err::<(), _>(Busy(1))));
    assert!(fail().is_err() && fail().is_err());
    assert_eq!(fail().unwrap_err().reason(), StopReason::BreakerOpen);
    time.advance(ms(1000));
    let succeed = || time.run(retry.run(async |_| Ok::<_, Busy>(())));
    assert!(succeed().is_ok() && succeed().is_ok());
    use BreakerState::{Closed, HalfOpen, Open};
    assert_eq!(*log.lock().unwrap(), [Open, HalfOpen, Closed]);
}

#[test]
fn a52_a_first_attempt_that_panics_gives_its_probe_back() {
    let time = Manual::new();
    let retry = handle(unbounded(1).breaker(quick()), &time);
    for _ in 0..2 {
        assert!(time.run(retry.run(async |_| Err::<(), _>(Busy(1)))).is_err());
    }
    time.advance(ms(1000));
    for _ in 0..5 {
        let panics = std::panic::AssertUnwindSafe(|| {
            time.run(retry.run(|_| -> std::future::Ready<Result<(), Busy>> { panic!("in the first poll") }))
        });
        assert!(std::panic::catch_unwind(panics).is_err());
    }
    for _ in 0..2 {
        assert!(time.run(retry.run(async |_| Ok::<_, Busy>(()))).is_ok(), "the probes are still there");
    }
}

#[cfg(feature = "tower")]
mod stack {
    use std::task::Poll;

    use relent::BreakerLayer;
    use tower::{Layer, Service, service_fn};

    use super::*;

    #[test]
    fn the_layer_refuses_without_calling_the_service() {
        let time = Manual::new();
        let breaker = breaker(&time);
        let calls = Cell::new(0);
        let mut service = BreakerLayer::new(breaker.clone()).layer(service_fn(|fails: bool| {
            calls.set(calls.get() + 1);
            std::future::ready(if fails { Err(Busy(1)) } else { Ok(()) })
        }));
        for _ in 0..2 {
            assert_eq!(time.run(service.call(true)), Err(BreakerError::Inner(Busy(1))));
        }
        assert!(matches!(time.run(service.call(false)), Err(BreakerError::Open(_))));
        assert_eq!(calls.get(), 2);
    }

    #[test]
    fn the_layer_judges_responses_too() {
        let time = Manual::new();
        let breaker = breaker(&time);
        let layer = BreakerLayer::new(breaker.clone()).judge(|outcome: &Result<u16, Busy>| match outcome {
            Ok(500..) | Err(_) => Health::Bad,
            Ok(_) => Health::Good,
        });
        let mut service = layer.layer(service_fn(|status: u16| std::future::ready(Ok::<_, Busy>(status))));
        assert_eq!(time.run(service.call(503)), Ok(503));
        assert_eq!(time.run(service.call(503)), Ok(503));
        assert_eq!(breaker.state(), BreakerState::Open);
    }

    #[test]
    fn a_dropped_response_counts_for_neither_side() {
        let time = Manual::new();
        let breaker = breaker(&time);
        let mut service =
            BreakerLayer::new(breaker.clone()).layer(service_fn(|()| pending::<Result<(), Busy>>()));
        for _ in 0..5 {
            let mut call = Stepper::new(&time, service.call(()));
            assert!(matches!(call.poll(), Poll::Pending));
        }
        assert_eq!((breaker.state(), breaker.counts().calls), (BreakerState::Closed, 0));
        let _ = time.now();
    }
}
