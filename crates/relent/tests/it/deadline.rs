//! The deadline of the layers above: inherited by every call made inside an attempt, and only ever lowered.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::time::Duration;

use relent::timer::{Clock, Manual, Timer};
use relent::{PolicyBuilder, Retry, StopReason};

use crate::rig::{Busy, Transient, handle, ms, unbounded};

/// One attempt, without bounds of its own.
fn once(time: &Manual) -> Retry<Transient, Manual> {
    handle(unbounded(1), time)
}

#[test]
fn an_inner_call_is_told_when_the_layer_above_wants_its_answer() {
    let check = |above: PolicyBuilder, below: PolicyBuilder, expected: Option<Duration>| {
        let time = Manual::new();
        let (outer, inner) = (handle(above, &time), handle(below, &time));
        let told = outer.run_blocking(|_| {
            inner.run_blocking(|attempt| Ok::<_, Busy>(attempt.time_left())).map_err(Busy::from)
        });
        assert_eq!(told.unwrap(), expected);
    };
    let free = || unbounded(1);
    check(free(), free(), None);
    // Less 5 ms or 5 %, whichever is more, so that the inner call answers first.
    check(free().deadline(ms(100)), free(), Some(ms(95)));
    check(free().attempt_timeout(ms(100)), free(), Some(ms(95)));
    check(free().attempt_timeout(ms(2000)), free(), Some(ms(1900)));
    check(free().attempt_timeout(ms(100)).deadline(ms(2000)), free(), Some(ms(95)));
    // Only lowered.
    check(free().deadline(ms(100)), free().deadline(ms(20)), Some(ms(20)));
    check(free().deadline(ms(100)), free().deadline(ms(2000)), Some(ms(95)));
    check(free().deadline(ms(100)), free().attempt_timeout(ms(20)), Some(ms(20)));
}

#[test]
fn each_layer_keeps_a_margin() {
    let time = Manual::new();
    let outer = handle(unbounded(1).deadline(ms(100)), &time);
    let (middle, leaf) = (once(&time), once(&time));
    let told = outer.run_blocking(|_| {
        let middle = middle.run_blocking(|_| {
            let leaf = leaf.run_blocking(|attempt| Ok::<_, Busy>(attempt.time_left()));
            leaf.map_err(Busy::from)
        });
        middle.map_err(Busy::from)
    });
    assert_eq!(told.unwrap(), Some(ms(90)));
}

#[test]
fn an_inner_call_that_hangs_ends_before_the_outer_one() {
    let time = Manual::new();
    let outer = handle(unbounded(1).deadline(ms(100)), &time);
    let inner = once(&time);
    let ended = Cell::new(Duration::ZERO);
    let call = outer.run(async |_| {
        let gave_up = inner.run(async |_| pending::<Result<(), Busy>>().await).await.unwrap_err();
        assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::DeadlineExceeded, 1));
        ended.set(time.elapsed());
        Err::<(), _>(Busy(7))
    });
    let gave_up = time.run(call).unwrap_err();
    assert_eq!(ended.get(), ms(95));
    assert_eq!(
        (gave_up.last(), gave_up.last_timed_out()),
        (Some(&Busy(7)), false),
        "the outer call hears why"
    );
}

#[test]
fn nothing_runs_when_the_time_has_passed_already() {
    let time = Manual::new();
    let outer = handle(unbounded(1).deadline(ms(100)), &time);
    let inner = once(&time);
    let call = outer.run(async |_| {
        let late = inner.run(async |_| -> Result<(), Busy> { panic!("nothing may run") });
        time.sleep_until(time.now() + ms(95)).await;
        Ok::<_, Busy>(late.await.unwrap_err())
    });
    let late = time.run(call).unwrap();
    assert_eq!((late.reason(), late.attempts(), late.last()), (StopReason::DeadlineExceeded, 0, None));

    let blocking = outer.run_blocking(|_| {
        time.advance(ms(96));
        Ok::<_, Busy>(inner.run_blocking(|_| -> Result<(), Busy> { panic!("nothing may run") }).unwrap_err())
    });
    let late = blocking.unwrap();
    assert_eq!((late.reason(), late.attempts()), (StopReason::DeadlineExceeded, 0));
}

#[test]
fn a_later_attempt_of_the_outer_call_grants_its_own_time() {
    let time = Manual::new();
    let outer = handle(unbounded(3).attempt_timeout(ms(100)).deadline(ms(250)), &time);
    let inner = once(&time);
    let told = RefCell::new(Vec::new());
    let _ = time.run(outer.run(async |_| {
        inner
            .run(async |attempt| {
                told.borrow_mut().push((time.elapsed(), attempt.time_left()));
                pending::<Result<(), Busy>>().await
            })
            .await
            .map_err(Busy::from)
    }));
    // The third has what the deadline leaves: 250 - 210 ms, less 5 ms.
    assert_eq!(*told.borrow(), [(ms(0), Some(ms(95))), (ms(105), Some(ms(95))), (ms(210), Some(ms(35)))]);
}

#[test]
fn outside_the_attempt_its_deadline_is_gone() {
    let time = Manual::new();
    let outer = handle(unbounded(1).deadline(ms(100)), &time);
    let inner = once(&time);
    assert!(outer.run_blocking(|_| Ok::<_, Busy>(())).is_ok());
    let told = inner.run_blocking(|attempt| Ok::<_, Busy>(attempt.time_left()));
    assert_eq!(told.unwrap(), None);
}

#[test]
fn a_blocking_attempt_that_overstays_ends_the_call() {
    let time = Manual::new();
    let retry = handle(unbounded(3).deadline(ms(100)), &time);
    let gave_up = retry
        .run_blocking(|attempt| {
            assert_eq!(attempt.time_left(), Some(ms(100)), "it is told, and does not keep to it");
            time.advance(ms(150));
            Err::<(), _>(Busy(1))
        })
        .unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.last()), (StopReason::DeadlineExceeded, Some(&Busy(1))));
    assert_eq!(gave_up.elapsed(), ms(150));
}

#[test]
fn time_counts_from_the_first_poll() {
    let time = Manual::new();
    let retry = handle(unbounded(1).deadline(ms(100)), &time);
    let call = retry.run(async |attempt| Ok::<_, Busy>(attempt.time_left()));
    time.advance(ms(500));
    assert_eq!(time.run(call).unwrap(), Some(ms(100)));
}
