//! The tower layer beyond the timelines: readiness, clones, and what is shared.

use std::cell::{Cell, RefCell};
use std::future::{Ready, pending, ready};
use std::rc::Rc;
use std::task::{Context, Poll};

use relent::timer::Manual;
use relent::{RetryLayer, StopReason, Verdict};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::rig::{Busy, handle, ms, spend_all_credit, unbounded};
use crate::stepper::Stepper;

/// Insists on the order of calls that tower demands, and fails as often as it is told.
struct Strict {
    ready: bool,
    failures_left: Rc<Cell<u32>>,
}

impl Clone for Strict {
    /// Readiness is not cloned.
    fn clone(&self) -> Strict {
        Strict { ready: false, failures_left: Rc::clone(&self.failures_left) }
    }
}

impl Service<&'static str> for Strict {
    type Response = &'static str;
    type Error = Busy;
    type Future = Ready<Result<&'static str, Busy>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Busy>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: &'static str) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been polled ready");
        let left = self.failures_left.get();
        self.failures_left.set(left.saturating_sub(1));
        ready(if left > 0 { Err(Busy(left)) } else { Ok(request) })
    }
}

#[test]
fn a70_every_attempt_calls_an_instance_that_was_polled_ready() {
    let time = Manual::new();
    let strict = Strict { ready: false, failures_left: Rc::new(Cell::new(2)) };
    let mut service = RetryLayer::new(handle(unbounded(3), &time)).layer(strict);
    let call = async {
        let answer = service.ready().await.unwrap().call("hello").await.unwrap();
        // And so it goes on.
        (answer, service.ready().await.unwrap().call("again").await.unwrap())
    };
    assert_eq!(time.run(call), ("hello", "again"));
}

#[test]
#[should_panic(expected = "called without having been polled ready")]
fn the_strict_service_is_strict() {
    let time = Manual::new();
    let mut strict = Strict { ready: false, failures_left: Rc::default() };
    let _ = time.run(strict.call("hello"));
}

/// Ready on the first poll, never again.
#[derive(Clone)]
struct ReadyOnce(Rc<Cell<bool>>);

impl Service<()> for ReadyOnce {
    type Response = ();
    type Error = Busy;
    type Future = Ready<Result<(), Busy>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Busy>> {
        if self.0.replace(true) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn call(&mut self, (): ()) -> Self::Future {
        ready(Err(Busy(1)))
    }
}

#[test]
fn waiting_for_readiness_is_part_of_the_attempt() {
    let time = Manual::new();
    let mut service =
        RetryLayer::new(handle(unbounded(2).attempt_timeout(ms(50)), &time)).layer(ReadyOnce(Rc::default()));
    let call = async { service.ready().await.unwrap().call(()).await.unwrap_err() };
    let gave_up = time.run(call);
    assert_eq!((gave_up.attempts(), gave_up.last_timed_out(), gave_up.elapsed()), (2, true, ms(60)));
    assert_eq!(gave_up.last(), Some(&Busy(1)));
}

/// Broken for good.
#[derive(Clone)]
struct Broken;

impl Service<()> for Broken {
    type Response = ();
    type Error = Busy;
    type Future = Ready<Result<(), Busy>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Busy>> {
        Poll::Ready(Err(Busy(9)))
    }

    fn call(&mut self, (): ()) -> Self::Future {
        panic!("called without having been ready")
    }
}

#[test]
fn a_service_that_is_never_ready_says_why() {
    let time = Manual::new();
    let mut service = RetryLayer::new(handle(unbounded(3), &time)).layer(Broken);
    let error = time.run(async { service.ready().await.err().unwrap() });
    assert_eq!((error.attempts(), error.last()), (0, Some(&Busy(9))));
}

#[test]
fn services_of_one_layer_share_its_handle() {
    let time = Manual::new();
    let retry = handle(unbounded(2).max_waiting(1), &time);
    let layer = RetryLayer::new(retry.clone());
    let dead = || layer.layer(service_fn(|()| ready(Err::<(), _>(Busy(1)))));
    let mut waiting = Stepper::new(&time, dead().oneshot(()));
    assert!(waiting.poll().is_pending());
    assert_eq!(retry.waiting(), 1);
    let refused = time.run(async { dead().oneshot(()).await.unwrap_err() });
    assert_eq!(refused.reason(), StopReason::TooManyWaiting);
    drop(waiting);
    assert_eq!((retry.waiting(), time.sleepers()), (0, 0));
}

#[test]
fn each_attempt_gets_its_own_copy_of_the_request() {
    let time = Manual::new();
    let seen = RefCell::new(Vec::new());
    let service = service_fn(|mut request: String| {
        request.push('!');
        seen.borrow_mut().push(request);
        ready(Err::<(), _>(Busy(1)))
    });
    let call = RetryLayer::new(handle(unbounded(3), &time)).layer(service).oneshot("hello".to_owned());
    assert!(time.run(call).is_err());
    assert_eq!(*seen.borrow(), ["hello!", "hello!", "hello!"]);
}

#[test]
fn a_call_can_be_narrowed_and_ended_by_a_signal() {
    let time = Manual::new();
    let mut service =
        RetryLayer::new(handle(unbounded(3), &time)).layer(service_fn(|()| ready(Err::<(), _>(Busy(1)))));
    let narrowed = time.run(service.call(()).only_if_unprocessed()).unwrap_err();
    assert_eq!((narrowed.reason(), narrowed.attempts()), (StopReason::UnsafeToRepeat, 1));

    let mut hanging =
        RetryLayer::new(handle(unbounded(3), &time)).layer(service_fn(|()| pending::<Result<(), Busy>>()));
    let signal = relent::timer::Timer::sleep_until(&time, relent::Instant::ZERO + ms(5));
    let ended = time.run(hanging.call(()).until(signal)).unwrap_err();
    assert_eq!(ended.reason(), StopReason::Cancelled);
}

#[test]
fn layers_share_the_attempt_credit() {
    let time = Manual::new();
    let calls = Cell::new(0);
    let leaf = service_fn(|()| {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>(Busy(1)))
    });
    let inner = RetryLayer::new(handle(unbounded(3), &time)).layer(leaf);
    let any = |_: &_| Verdict::Transient;
    let middle = RetryLayer::new(handle(unbounded(3), &time).classify(any)).layer(inner);
    let outer =
        RetryLayer::new(handle(unbounded(3), &time).classify(|_: &_| Verdict::Transient)).layer(middle);
    let gave_up = time.run(outer.oneshot(())).unwrap_err();
    assert_eq!((calls.get(), gave_up.attempts()), (3, 2));
    assert_eq!(gave_up.reason(), StopReason::CreditExhausted);
    assert_eq!(spend_all_credit(), None);
}
