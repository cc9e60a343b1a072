//! Over a `spawn`, a scope carries credit and deadline.

use std::future::{Ready, poll_fn, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use relent::timer::{Clock, Manual, SystemTimer, Timer};
use relent::{Attempt, Retry, Scope};

use crate::rig::{Busy, Transient, handle, ms, spend_all_credit, unbounded};

fn granting(left: u32) -> Retry<Transient, SystemTimer> {
    handle(unbounded(left + 2), &SystemTimer)
}

/// An operation that always fails.
fn dead(attempt: Attempt) -> Ready<Result<(), Busy>> {
    ready(Err(Busy(attempt.number())))
}

#[tokio::test(start_paused = true)]
async fn a_scope_carries_the_credit_and_brings_the_rest_back() {
    let left = granting(4)
        .run(async |_| {
            let mut scope = Scope::take();
            assert_eq!(spend_all_credit(), Some(0), "what a scope took is withheld here");
            let task = tokio::spawn(async move {
                let inner = handle(unbounded(3), &SystemTimer);
                let gave_up = scope.run(inner.run(dead)).await.unwrap_err();
                assert_eq!(gave_up.attempts(), 3);
                assert_eq!(spend_all_credit(), None, "outside the scope, a task has no surroundings");
                scope
            });
            task.await.unwrap().rejoin();
            Ok::<_, Busy>(spend_all_credit())
        })
        .await;
    assert_eq!(left.unwrap(), Some(2), "two of four were spent in the task");
}

#[tokio::test(start_paused = true)]
async fn the_bound_holds_over_a_spawn() {
    let launched = Arc::new(AtomicU32::new(0));
    let outcome = handle(unbounded(3), &SystemTimer)
        .run(async |_| {
            let mut scope = Scope::take();
            let launched = Arc::clone(&launched);
            let task = tokio::spawn(async move {
                let inner = handle(unbounded(3), &SystemTimer);
                let fails = async |_| {
                    launched.fetch_add(1, Ordering::Relaxed);
                    Err::<(), _>(Busy(1))
                };
                let outcome = scope.run(inner.run(fails)).await;
                (outcome, scope)
            });
            let (outcome, scope) = task.await.unwrap();
            scope.rejoin();
            outcome.map_err(Busy::from)
        })
        .await;
    assert!(outcome.is_err());
    assert_eq!(launched.load(Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_does_not_come_back_counts_as_used() {
    let outer = granting(4);
    let left = outer
        .run(async |_| {
            drop(tokio::spawn(ready(Scope::take())));
            Ok::<_, Busy>(spend_all_credit())
        })
        .await;
    assert_eq!(left.unwrap(), Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_scope_carries_the_deadline() {
    let outer = handle(unbounded(1).deadline(ms(100)), &SystemTimer);
    let told = outer
        .run(async |_| {
            let mut scope = Scope::take();
            let task = tokio::spawn(async move {
                SystemTimer.sleep_until(SystemTimer.now() + ms(30)).await;
                let inner = handle(unbounded(1), &SystemTimer);
                scope.run(inner.run(async |attempt| Ok::<_, Busy>(attempt.time_left()))).await
            });
            task.await.unwrap().map_err(Busy::from)
        })
        .await;
    assert_eq!(told.unwrap(), Some(ms(65)), "95 ms from the attempt's start, of which 30 have passed");
}

#[test]
fn a_scope_carries_over_to_another_thread() {
    let time = Manual::new();
    let left = handle(unbounded(5), &time).run_blocking(|_| {
        let mut scope = Scope::take();
        let inner = handle(unbounded(3), &time);
        let scope = std::thread::spawn(move || {
            let gave_up = scope.run_blocking(|| inner.run_blocking(|_| Err::<(), _>(Busy(1)))).unwrap_err();
            assert_eq!(gave_up.attempts(), 3);
            scope
        });
        scope.join().unwrap().rejoin();
        Ok::<_, Busy>(spend_all_credit())
    });
    assert_eq!(left.unwrap(), Some(1));
}

#[test]
fn outside_every_call_a_scope_carries_nothing() {
    let mut scope = Scope::take();
    assert_eq!(scope.run_blocking(spend_all_credit), None);
    scope.rejoin();
    assert_eq!(spend_all_credit(), None);
}

#[test]
fn a_future_dropped_in_a_scope_gives_back_to_the_scope() {
    let time = Manual::new();
    let (above, other, inner) =
        (handle(unbounded(6), &time), handle(unbounded(4), &time), handle(unbounded(3), &time));
    let left = above.run(async |_| {
        let (inner, mut scope) = (&inner, Some(Scope::take()));
        // Inside another call, one of the scope is dropped in its backoff.
        let elsewhere = other.run(|_| {
            let mut scope = scope.take().expect("one attempt");
            async move {
                let mut call = Box::pin(scope.run(inner.run(dead)));
                assert!(poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await);
                drop(call);
                Ok::<_, Busy>((spend_all_credit(), scope))
            }
        });
        let (left_elsewhere, scope) = elsewhere.await.unwrap();
        assert_eq!(
            left_elsewhere,
            Some(0),
            "what the other call may grant is with the scope, and nothing of it comes back"
        );
        scope.rejoin();
        Ok::<_, Busy>(spend_all_credit())
    });
    assert_eq!(time.run(left).unwrap(), Some(4));
}
