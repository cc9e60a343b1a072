//! A call may be dropped at any await: what it held goes back, and what it spent stays spent.

use std::cell::Cell;
use std::future::pending;
use std::pin::Pin;
use std::task::{Context, Poll};

use relent::timer::{Clock, Manual, Timer};
use relent::{Attempt, Ratio, RatioConfig, Retry};

use crate::rig::{Busy, Transient, handle, ms, spend_all_credit, unbounded};
use crate::stepper::Stepper;

/// Calls `check` with 0, 1, 2, … until it answers that the future had come to its end.
fn at_every_await(check: impl Fn(usize) -> bool) {
    let completed = (0..1000).find(|polls| check(*polls)).expect("the future ends");
    assert!(completed > 3, "a future of {completed} polls has hardly an await to be dropped at");
}

#[test]
fn a_call_gives_back_what_it_holds() {
    let reserve = 10;
    at_every_await(|polls| {
        let time = Manual::new();
        let budget = RatioConfig { reserve: Some(reserve), ..RatioConfig::new(Ratio::percent(10)) };
        let retry = handle(unbounded(5).budget(budget).attempt_timeout(ms(50)).deadline(ms(900)), &time);
        let launched = Cell::new(0);

        let mut call = Stepper::new(&time, retry.run(|attempt| every_kind(&time, &launched, attempt)));
        let completed = (0..polls).any(|poll| {
            if poll > 0 {
                call.until_woken();
            }
            call.poll().is_ready()
        });
        drop(call);

        let retries = u64::from(launched.get().saturating_sub(1));
        assert_eq!(retry.budget_balance(), Some(u64::from(reserve) - retries), "after {polls} polls");
        assert_eq!((retry.waiting(), time.sleepers()), (0, 0), "after {polls} polls");
        completed
    });
}

#[test]
fn b8_a_call_dropped_in_its_wait_gives_its_token_back() {
    let time = Manual::new();
    let budget = RatioConfig { reserve: Some(2), ..RatioConfig::new(Ratio::percent(10)) };
    let retry = handle(unbounded(2).budget(budget), &time);
    for _ in 0..10 {
        let mut call = Stepper::new(&time, retry.run(async |_| Err::<(), _>(Busy(1))));
        assert!(call.poll().is_pending());
        assert_eq!((retry.waiting(), retry.budget_balance()), (1, Some(1)), "it waits, its retry is paid");
        drop(call);
        assert_eq!((retry.waiting(), retry.budget_balance()), (0, Some(2)));
    }
}

/// A late failure, a failure at once, an attempt that hangs, and a success.
async fn every_kind(time: &Manual, launched: &Cell<u32>, attempt: Attempt) -> Result<(), Busy> {
    launched.set(launched.get() + 1);
    match attempt.number() {
        1 => {
            time.sleep_until(relent::Instant::ZERO + ms(10)).await;
            Err(Busy(1))
        }
        2 => Err(Busy(2)),
        3 => pending().await,
        _ => Ok(()),
    }
}

/// The layers of a call and what was launched by each.
struct Layers {
    time: Manual,
    middle: Retry<Transient, Manual>,
    leaf: Retry<Transient, Manual>,
    middle_launched: Cell<u32>,
    leaf_launched: Cell<u32>,
}

impl Layers {
    fn new() -> Layers {
        let time = Manual::new();
        let (middle, leaf) = (handle(unbounded(3), &time), handle(unbounded(3), &time));
        Layers { time, middle, leaf, middle_launched: Cell::new(0), leaf_launched: Cell::new(0) }
    }

    /// A middle call of leaf calls that fail, each after 10 ms.
    async fn call(&self) -> Result<(), Busy> {
        let middle = self.middle.run(|_| async {
            self.middle_launched.set(self.middle_launched.get() + 1);
            let leaf = self.leaf.run(|_| async {
                self.leaf_launched.set(self.leaf_launched.get() + 1);
                self.time.sleep_until(self.time.now() + ms(10)).await;
                Err::<(), _>(Busy(0))
            });
            leaf.await.map_err(Busy::from)
        });
        middle.await.map_err(Busy::from)
    }

    /// Attempts that would not have been made without retries.
    fn extra(&self) -> u32 {
        self.leaf_launched.get().saturating_sub(1)
    }
}

#[test]
fn a_call_gives_back_the_credit_it_did_not_spend() {
    // Six attempts: four are left for the calls inside the first.
    const GRANTED: u32 = 4;
    at_every_await(|polls| {
        let layers = Layers::new();
        let above = handle(unbounded(GRANTED + 2), &layers.time);
        let attempt = above.run(|_| async {
            let completed = PolledAtMost { future: Box::pin(layers.call()), polls }.await.is_some();
            let left = spend_all_credit();
            assert_eq!(left, Some(GRANTED - layers.extra()), "after {polls} polls");
            Ok::<_, Busy>(completed)
        });
        let completed = layers.time.run(attempt).unwrap();
        assert_eq!(layers.time.sleepers(), 0, "after {polls} polls");
        assert_eq!(spend_all_credit(), None, "nothing is left around");
        completed
    });
}

#[test]
fn layers_dropped_as_a_whole_leave_nothing_behind() {
    at_every_await(|polls| {
        let layers = Layers::new();
        let above = handle(unbounded(6), &layers.time);
        let mut call = Stepper::new(&layers.time, above.run(|_| layers.call()));
        let completed = (0..polls).any(|poll| {
            if poll > 0 {
                call.until_woken();
            }
            call.poll().is_ready()
        });
        drop(call);
        assert_eq!((layers.middle.waiting(), layers.leaf.waiting(), layers.time.sleepers()), (0, 0, 0));
        assert_eq!(spend_all_credit(), None, "after {polls} polls");
        completed
    });
}

/// A future that is dropped once it was polled so often; ready with `None` then.
struct PolledAtMost<F> {
    future: Pin<Box<F>>,
    polls: usize,
}

impl<F: Future> Future for PolledAtMost<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        match self.future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.polls == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[test]
fn a_call_that_was_never_polled_ran_nothing() {
    let time = Manual::new();
    let retry = handle(unbounded(3), &time).on_event(|event| panic!("nothing happened, yet {event:?}"));
    drop(Box::pin(retry.run(|_| async { Ok::<(), Busy>(()) })));
    assert_eq!(time.sleepers(), 0);
}
