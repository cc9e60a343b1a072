//! Several calls inside one attempt share what was granted.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use relent::timer::{Clock, Manual, Timer};

use crate::rig::{Busy, handle, ms, spend_all_credit, unbounded};

#[test]
fn of_a_hundred_inner_calls_two_in_a_hundred_fail_and_all_get_their_retry() {
    let time = Manual::new();
    let (outer, inner) = (handle(unbounded(3), &time), handle(unbounded(3), &time));
    let (calls, outer_attempts) = (Cell::new(0), Cell::new(0));
    let sum = outer.run_blocking(|_| {
        outer_attempts.set(outer_attempts.get() + 1);
        let mut sum = 0;
        for n in 1..=100 {
            let fails_once = n % 50 == 0;
            sum += inner.run_blocking(|attempt| {
                calls.set(calls.get() + 1);
                if fails_once && !attempt.is_retry() { Err(Busy(n)) } else { Ok(n) }
            })?;
        }
        Ok::<_, Busy>(sum)
    });
    assert_eq!((sum.unwrap(), calls.get(), outer_attempts.get()), (5050, 102, 1));
}

#[test]
fn a_hundred_inner_calls_at_once_get_their_retries_as_far_as_the_pool_goes() {
    // Of 4 attempts, 2 are left for those inside: just enough for two that fail at the same instant.
    let check = |outer_attempts: u32, expected_outer: u32| {
        let time = Manual::new();
        let (outer, inner) = (handle(unbounded(outer_attempts), &time), handle(unbounded(3), &time));
        let launched = Cell::new(0);
        let outcome = time.run(outer.run(async |outer_attempt| {
            launched.set(launched.get() + 1);
            let calls = (1..=100).map(|n| {
                let fails = outer_attempt.number() == 1 && n % 50 == 0;
                let call = inner.run({
                    let time = &time;
                    move |attempt| async move {
                        time.sleep_until(time.now() + ms(5)).await;
                        if fails && !attempt.is_retry() { Err(Busy(n)) } else { Ok(n) }
                    }
                });
                Box::pin(call) as Pin<Box<dyn Future<Output = _>>>
            });
            let answers = all(calls.collect()).await;
            answers.into_iter().sum::<Result<u32, _>>().map_err(Busy::from)
        }));
        assert_eq!((outcome.ok(), launched.get()), (Some(5050), expected_outer), "{outer_attempts} attempts");
    };
    check(4, 1);
    // With 3, the pool holds one: the second goes without, and the outer layer repeats the whole.
    check(3, 2);
}

#[test]
fn parallel_inner_calls_that_keep_failing_share_the_pool() {
    let time = Manual::new();
    let (outer, inner) = (handle(unbounded(3), &time), handle(unbounded(3), &time));
    let calls = Cell::new(0);
    let failing = || {
        inner.run(async |_| {
            calls.set(calls.get() + 1);
            Err::<(), _>(Busy(1))
        })
    };
    let gave_up = time.run(outer.run(async |_| {
        let (left, right) = tokio::join!(failing(), failing());
        left.and(right).map_err(Busy::from)
    }));
    // Two calls of one attempt each, and two extra ones of the whole layer: each of those is either one inner retry or one
    // more round of both.
    let most = 2 * 3;
    assert!(gave_up.is_err());
    assert!(calls.get() <= most, "{} calls at the leaf", calls.get());
    assert_eq!(calls.get(), 5, "round 1: two and one retry; round 2: two, and nothing is left");
}

#[test]
fn what_an_inner_call_spent_in_vain_is_gone_and_what_it_spent_well_is_back() {
    let check = |second_attempt: Result<(), Busy>, expected: u32| {
        let time = Manual::new();
        let (above, inner) = (handle(unbounded(6), &time), handle(unbounded(2), &time));
        let left = above.run_blocking(|_| {
            let _ =
                inner.run_blocking(|attempt| if attempt.is_retry() { second_attempt } else { Err(Busy(1)) });
            Ok::<_, Busy>(spend_all_credit())
        });
        assert_eq!(left.unwrap(), Some(expected), "{second_attempt:?}");
    };
    check(Err(Busy(2)), 3);
    check(Ok(()), 4);
}

/// Runs them all at once.
async fn all<F: Future + Unpin>(mut futures: Vec<F>) -> Vec<F::Output> {
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(move |cx| {
        let mut pending = false;
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match Pin::new(future).poll(cx) {
                    Poll::Ready(value) => *output = Some(value),
                    Poll::Pending => pending = true,
                }
            }
        }
        if pending {
            Poll::Pending
        } else {
            Poll::Ready(outputs.iter_mut().filter_map(Option::take).collect())
        }
    })
    .await
}
