//! Probes in the hands of the drivers: exactly as many as may go, and every one comes back, wherever its call is dropped.

use std::cell::Cell;
use std::future::{pending, ready};
use std::task::Poll;
use std::time::{Duration, SystemTime};

use relent::timer::{Clock, Manual, Timer};
use relent::{
    BreakerState, CircuitBreaker, ClassicConfig, HedgeConfig, PolicyBuilder, Ratio, Retry, StopReason,
    Verdict,
};

use crate::rig::{Busy, ms, unbounded};
use crate::stepper::Stepper;

/// Opens at the first failure, for a second.
fn config(probes: u32) -> ClassicConfig {
    ClassicConfig::new().consecutive_failures(1).open_for(ms(1_000)).open_jitter(Ratio::ZERO).probes(probes)
}

/// One whose open time is over: the next calls are probes.
fn tripped(time: &Manual, probes: u32) -> CircuitBreaker<Manual> {
    let breaker = CircuitBreaker::with_timer(config(probes), time.clone()).unwrap();
    assert!(breaker.run_blocking(|| Err::<(), _>(Busy(0))).is_err());
    time.advance(ms(1_000));
    breaker
}

/// Asks it before each call; errors are throttling, which says nothing of the target's health.
fn behind(
    breaker: &CircuitBreaker<Manual>,
    policy: PolicyBuilder,
    time: &Manual,
) -> Retry<fn(&Busy) -> Verdict, Manual> {
    let throttled: fn(&Busy) -> Verdict = |_| Verdict::Throttled { hint: None };
    Retry::with_timer(policy.build().unwrap(), time.clone()).breaker(breaker.clone()).classify(throttled)
}

/// How many probes it lets go now; all of them come back.
fn probes_left(breaker: &CircuitBreaker<Manual>) -> usize {
    let probes: Vec<_> = (0..100).map_while(|_| breaker.try_acquire().ok()).collect();
    assert!(probes.iter().all(|probe| probe.is_probe()));
    probes.len()
}

/// Drops the call that `make` makes after 0, 1, 2, … polls, until it comes to its end; before that no probe may be missing.
fn dropped_at_every_await<F: Future>(
    probes: u32,
    make: impl Fn(&Manual, &CircuitBreaker<Manual>) -> F,
    least_awaits: usize,
) {
    for polls in 0.. {
        let time = Manual::new();
        let breaker = tripped(&time, probes);
        let mut call = Stepper::new(&time, make(&time, &breaker));
        let completed = (0..polls).any(|poll| {
            if poll > 0 {
                call.until_woken();
            }
            call.poll().is_ready()
        });
        drop(call);
        if completed {
            assert!(polls > least_awaits, "{polls} polls are hardly an await to be dropped at");
            return;
        }
        assert_eq!(probes_left(&breaker), probes as usize, "after {polls} polls");
        assert!(polls < 100, "the future ends");
    }
}

/// A failure at once, one after a while, and a success after a while.
async fn in_the_end(time: Manual, number: u32) -> Result<(), Busy> {
    if number > 1 {
        time.sleep_until(time.now() + ms(5)).await;
    }
    if number < 3 { Err(Busy(number)) } else { Ok(()) }
}

#[test]
fn a52_a_call_that_retries_may_be_dropped_at_any_await() {
    let policy = || unbounded(5).throttled_base(ms(10)).attempt_timeout(ms(500));
    dropped_at_every_await(
        1,
        |time, breaker| {
            let (time, retry) = (time.clone(), behind(breaker, policy(), time));
            async move { retry.run(|attempt| in_the_end(time.clone(), attempt.number())).await.is_ok() }
        },
        4,
    );
}

#[test]
fn a52_so_may_a_hedged_one_with_all_that_run_beside_it() {
    let policy = || unbounded(3).hedge(HedgeConfig::after(ms(20)).most(2)).attempt_timeout(ms(5_000));
    dropped_at_every_await(
        3,
        |time, breaker| {
            let (time, retry) = (time.clone(), behind(breaker, policy(), time));
            async move {
                let slowly = |_| {
                    let time = time.clone();
                    async move {
                        time.sleep_until(time.now() + ms(200)).await;
                        Ok::<_, Busy>(())
                    }
                };
                retry.run(slowly).await.is_ok()
            }
        },
        3,
    );
}

#[test]
fn a52_and_one_that_is_given_up_with_a_word() {
    let time = Manual::new();
    let breaker = tripped(&time, 1);
    let retry = behind(&breaker, unbounded(3).attempt_timeout(ms(5_000)), &time);
    for _ in 0..5 {
        let soon = time.clone().sleep_until(time.now() + ms(10));
        let error = time.run(retry.run(|_| pending::<Result<(), Busy>>()).until(soon)).unwrap_err();
        assert_eq!((error.reason(), breaker.state()), (StopReason::Cancelled, BreakerState::HalfOpen));
        assert_eq!(probes_left(&breaker), 1);
    }
}

/// The blocking driver can't be dropped, but what it runs can panic.
#[test]
fn a52_a_blocking_probe_that_panics_gives_its_leave_back() {
    let time = Manual::new();
    let breaker = tripped(&time, 1);
    let retry = behind(&breaker, unbounded(3), &time);
    for by_itself in [true, false] {
        let panics = std::panic::AssertUnwindSafe(|| {
            let operation = || -> Result<(), Busy> { panic!("inside") };
            if by_itself {
                breaker.run_blocking(operation).is_ok()
            } else {
                retry.run_blocking(|_| operation()).is_ok()
            }
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!((breaker.state(), probes_left(&breaker)), (BreakerState::HalfOpen, 1));
    }
}

#[test]
fn b16_of_a_thousand_at_once_as_many_go_as_there_are_probes() {
    let time = Manual::new();
    let breaker = tripped(&time, 3);
    for _ in 0..2 {
        let started = Cell::new(0);
        let mut calls: Vec<_> = (0..1_000)
            .map(|_| {
                let run = breaker.run(|| {
                    started.set(started.get() + 1);
                    pending::<Result<(), Busy>>()
                });
                Stepper::new(&time, run)
            })
            .collect();
        let refused = calls
            .iter_mut()
            .map(Stepper::poll)
            .filter(|polled| matches!(polled, Poll::Ready(Err(_))))
            .count();
        assert_eq!((started.get(), refused), (3, 997));
        assert_eq!(probes_left(&breaker), 0);
    }
}

#[test]
fn b17_the_wall_clock_opens_and_closes_nothing() {
    let time = Manual::new();
    let breaker = CircuitBreaker::with_timer(config(1), time.clone()).unwrap();
    assert!(breaker.run_blocking(|| Err::<(), _>(Busy(0))).is_err());
    let hour = Duration::from_secs(3_600);
    for wall in [SystemTime::UNIX_EPOCH + 10_000 * hour, SystemTime::UNIX_EPOCH] {
        time.set_wall(wall);
        let refused = breaker.try_acquire().map(|_| ()).unwrap_err();
        assert_eq!(refused.retry_after, Some(ms(1_000)));
    }
    time.advance(ms(1_000));
    time.set_wall(SystemTime::UNIX_EPOCH + hour);
    assert!(breaker.try_acquire().is_ok_and(|probe| probe.is_probe()));
}

/// Polly's breaker closed when a probe was cancelled before its callback ran.
#[test]
fn b19_a_probe_that_is_cancelled_before_it_began_closes_nothing() {
    let time = Manual::new();
    let breaker = tripped(&time, 1);
    let retry = behind(&breaker, unbounded(3), &time);
    let never = || -> std::future::Ready<Result<(), Busy>> { unreachable!("it is never run") };
    drop(breaker.run(never));
    drop(retry.run(|_| never()));
    let stopped = time.run(retry.run(|_| never()).until(ready(()))).unwrap_err();
    assert_eq!(stopped.reason(), StopReason::Cancelled);
    drop(breaker.try_acquire());
    assert_eq!((breaker.state(), probes_left(&breaker)), (BreakerState::HalfOpen, 1));
}

/// A shared breaker is not in the policy, and needs the time all the same.
#[test]
fn a_policy_without_times_gets_through_a_shared_breaker_when_its_time_is_up() {
    let time = Manual::new();
    let breaker = tripped(&time, 1);
    let retry = behind(&breaker, unbounded(1), &time);
    assert!(time.run(retry.run(async |_| Ok::<_, Busy>(()))).is_ok());
    assert_eq!(breaker.state(), BreakerState::Closed);
    assert!(breaker.run_blocking(|| Err::<(), _>(Busy(0))).is_err());
    assert!(retry.run_blocking(|_| Ok::<_, Busy>(())).is_err());
    time.advance(ms(1_000));
    assert!(retry.run_blocking(|_| Ok::<_, Busy>(())).is_ok());
}

/// On the system's clock a call that ends at once never looks at it while the breaker is closed.
#[cfg(feature = "tokio")]
#[tokio::test(start_paused = true)]
async fn calls_that_end_at_once_are_counted_refused_and_let_through_as_all_others() {
    let policy = unbounded(1).breaker(config(2).consecutive_failures(3)).build().unwrap();
    let retry = Retry::new(policy).classify(|_: &Busy| Verdict::Transient);
    let call = async |outcome: Result<(), Busy>| retry.run(|_| ready(outcome)).await.map_err(|e| e.reason());
    for outcome in [Err(Busy(1)), Err(Busy(2)), Ok(()), Err(Busy(3)), Err(Busy(4))] {
        assert_eq!(call(outcome).await.is_ok(), outcome.is_ok(), "a success breaks the run");
    }
    assert_eq!(call(Err(Busy(5))).await, Err(StopReason::AttemptsExhausted));
    assert_eq!(call(Ok(())).await, Err(StopReason::BreakerOpen));
    tokio::time::advance(ms(1_000)).await;
    for _ in 0..10 {
        let mut hangs = Box::pin(retry.run(|_| pending::<Result<(), Busy>>()));
        assert!(poll_once(&mut hangs).is_pending());
    }
    assert_eq!((call(Ok(())).await, call(Ok(())).await), (Ok(()), Ok(())), "both probes are still there");
    assert_eq!(call(Err(Busy(6))).await, Err(StopReason::AttemptsExhausted), "and it is closed");
}

#[cfg(feature = "tokio")]
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

#[cfg(feature = "tower")]
mod stack {
    use std::rc::Rc;
    use std::task::Context;

    use relent::{BreakerLayer, RetryLayer};
    use tower::{Layer, Service, ServiceExt};

    use super::*;

    /// Insists on readiness before each call, and counts.
    struct Strict {
        ready: bool,
        calls: Rc<Cell<u32>>,
    }

    impl Clone for Strict {
        fn clone(&self) -> Strict {
            Strict { ready: false, calls: Rc::clone(&self.calls) }
        }
    }

    impl Service<u32> for Strict {
        type Response = ();
        type Error = Busy;
        type Future = std::future::Ready<Result<(), Busy>>;

        fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Busy>> {
            self.ready = true;
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, failures: u32) -> Self::Future {
            assert!(std::mem::take(&mut self.ready), "called without having been polled ready");
            self.calls.set(self.calls.get() + 1);
            ready(if self.calls.get() > failures { Ok(()) } else { Err(Busy(failures)) })
        }
    }

    #[test]
    fn a70_behind_the_layer_every_attempt_calls_an_instance_that_was_polled_ready() {
        let time = Manual::new();
        let breaker = CircuitBreaker::with_timer(config(1).consecutive_failures(3), time.clone()).unwrap();
        let strict = Strict { ready: false, calls: Rc::default() };
        let calls = Rc::clone(&strict.calls);
        let retry = Retry::with_timer(unbounded(5).build().unwrap(), time.clone());
        let busy = retry
            .retry_if(|error: &relent::BreakerError<Busy>| matches!(error, relent::BreakerError::Inner(_)));
        let mut service = RetryLayer::new(busy).layer(BreakerLayer::new(breaker.clone()).layer(strict));
        let called = async {
            let first = service.ready().await.unwrap().call(2).await;
            calls.set(0);
            let second = service.ready().await.unwrap().call(9).await;
            (first.is_ok(), second.map_err(|error| (error.reason(), error.attempts())))
        };
        let (first, second) = time.run(called);
        assert!(first, "two failures and a success");
        // The third failure in a row opens it; what the fourth attempt meets is no failure of the service.
        assert_eq!(second, Err((StopReason::NotRetryable, 4)));
        assert_eq!((calls.get(), breaker.state()), (3, BreakerState::Open));
    }

    #[test]
    fn a52_responses_of_the_layer_may_be_dropped_at_any_await() {
        dropped_at_every_await(
            1,
            |time, breaker| {
                let clock = time.clone();
                let slow = tower::service_fn(move |()| {
                    let time = clock.clone();
                    async move {
                        time.sleep_until(time.now() + ms(5)).await;
                        time.sleep_until(time.now() + ms(5)).await;
                        Ok::<_, Busy>(())
                    }
                });
                BreakerLayer::new(breaker.clone()).layer(slow).oneshot(())
            },
            2,
        );
    }
}
