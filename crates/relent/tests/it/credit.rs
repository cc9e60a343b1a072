//! Attempt credit in a process: layers that retry share one allowance, so their attempts never multiply.

mod layers;
mod pool;
mod scope;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use relent::timer::Manual;
use relent::{Nested, StopReason};

use crate::rig::{Busy, handle, ms, spend_all_credit, unbounded};
use layers::{Driver, Layer, calls_at_a_dead_leaf};

const ASYNC: Layer = Layer::new(Driver::Async, 3);
const BLOCKING: Layer = Layer::new(Driver::Blocking, 3);

#[test]
fn a71_attempts_of_nested_layers_do_not_multiply() {
    let check =
        |layers: &[Layer], expected: u32| assert_eq!(calls_at_a_dead_leaf(layers), expected, "{layers:?}");
    check(&[ASYNC], 3);
    check(&[ASYNC, ASYNC], 3);
    check(&[ASYNC, ASYNC, ASYNC], 3);
    check(&[BLOCKING, BLOCKING, BLOCKING], 3);
    check(&[ASYNC, BLOCKING, ASYNC], 3);
    check(&[BLOCKING, ASYNC, BLOCKING], 3);
    check(&[ASYNC, ASYNC, ASYNC, ASYNC, ASYNC], 3);
    // The outermost decides, whatever the others would do.
    check(&[ASYNC.attempts(2), ASYNC.attempts(9), ASYNC.attempts(9)], 2);
    check(&[ASYNC.attempts(5), ASYNC, ASYNC], 5);
    check(&[ASYNC.attempts(9), ASYNC.attempts(2), ASYNC.attempts(9)], 9);
}

#[test]
fn layers_that_cannot_retry_hand_the_credit_on() {
    let check =
        |layers: &[Layer], expected: u32| assert_eq!(calls_at_a_dead_leaf(layers), expected, "{layers:?}");
    // One attempt only: as if it were not there.
    check(&[ASYNC, ASYNC.attempts(1), ASYNC], 3);
    check(&[BLOCKING, BLOCKING.attempts(1), BLOCKING], 3);
    // Repeats only what was not executed; these failures may have been.
    check(&[ASYNC, ASYNC.only_if_unprocessed(), ASYNC], 3);
    check(&[BLOCKING, BLOCKING.only_if_unprocessed(), BLOCKING], 3);
    // On top of all, it says nothing: the next layer opens the allowance.
    check(&[ASYNC.attempts(1), ASYNC, ASYNC], 3);
    check(&[ASYNC.only_if_unprocessed(), ASYNC, ASYNC], 3);
    // At the bottom, it spends nothing: those above do.
    check(&[ASYNC, ASYNC, ASYNC.attempts(1)], 3);
}

#[test]
fn nested_says_how_layers_add_up() {
    let check =
        |layers: &[Layer], expected: u32| assert_eq!(calls_at_a_dead_leaf(layers), expected, "{layers:?}");
    let allow = ASYNC.nested(Nested::Allow);
    check(&[allow, allow, allow], 27);
    check(&[BLOCKING.nested(Nested::Allow), BLOCKING.nested(Nested::Allow), BLOCKING], 27);
    // Who is told nothing opens an allowance of his own, once for each attempt above.
    check(&[allow, ASYNC, ASYNC], 9);
    // All attempts are made at the top.
    let pass = ASYNC.nested(Nested::PassThrough);
    check(&[pass, ASYNC, ASYNC], 3);
    check(&[pass, allow, allow], 9); // the middle one is told 0 and makes one attempt; it tells the leaf nothing
    check(&[ASYNC, pass, ASYNC], 3);
}

#[test]
fn a_middle_layer_that_times_out_does_not_multiply_either() {
    // The leaf never answers. 100 ms for the middle's attempts, one second for the outermost's.
    for timeouts in [[Some(1000), Some(100), None], [Some(100), None, None], [None, Some(100), Some(30)]] {
        let time = Manual::new();
        let launched = Cell::new(0);
        let layers = timeouts.map(|timeout| match timeout {
            Some(timeout) => handle(unbounded(3).attempt_timeout(ms(timeout)), &time),
            None => handle(unbounded(3), &time),
        });
        let [outer, middle, leaf] = &layers;
        let call = outer.run(async |_| {
            let middle = middle.run(async |_| {
                let leaf = leaf.run(async |_| {
                    launched.set(launched.get() + 1);
                    std::future::pending::<Result<(), Busy>>().await
                });
                leaf.await.map_err(Busy::from)
            });
            middle.await.map_err(Busy::from)
        });
        let gave_up = time.run(call).unwrap_err();
        assert_eq!(launched.get(), 3, "{timeouts:?}: {gave_up}");
        assert_eq!(time.sleepers(), 0);
    }
}

#[test]
fn an_attempt_cut_off_by_its_time_gives_back_what_the_calls_inside_it_held() {
    // Of 6 attempts 4 are told below, and the inner call lends on what it gets. It hangs, and spends nothing of it.
    let time = Manual::new();
    let (outer, inner) = (handle(unbounded(6).attempt_timeout(ms(100)), &time), handle(unbounded(9), &time));
    let launched = Cell::new(0);
    let call = outer.run(async |_| {
        let hangs = inner.run(async |_| {
            launched.set(launched.get() + 1);
            std::future::pending::<Result<(), Busy>>().await
        });
        hangs.await.map_err(Busy::from)
    });
    let gave_up = time.run(call).unwrap_err();
    assert_eq!((launched.get(), gave_up.attempts()), (6, 6), "{gave_up}");
}

#[test]
fn a_retry_that_was_only_waited_for_costs_nothing() {
    // The inner calls wait by a clock that stands still, so that each outer attempt ends by its time, and the inner call in
    // its backoff: that retry was granted, and was never made.
    let (time, stopped) = (Manual::new(), Manual::new());
    let (outer, inner) =
        (handle(unbounded(4).attempt_timeout(ms(100)), &time), handle(unbounded(3), &stopped));
    let gave_up = time
        .run(outer.run(async |_| {
            let inner = inner.run(async |_| Err::<(), _>(Busy(1)));
            inner.await.map_err(Busy::from)
        }))
        .unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::AttemptsExhausted, 4));
    assert_eq!((inner.waiting(), stopped.sleepers()), (0, 0));
}

#[test]
fn an_outer_layer_keeps_an_attempt_for_a_healthy_endpoint() {
    // The first endpoint is dead: two attempts are spent there, and the third goes to the next one.
    let time = Manual::new();
    let (outer, inner) = (handle(unbounded(3), &time), handle(unbounded(3), &time));
    let asked = std::cell::RefCell::new(Vec::new());
    let answer = outer.run_blocking(|attempt| {
        let endpoint = if attempt.number() == 1 { "dead" } else { "healthy" };
        let answer = inner.run_blocking(|_| {
            asked.borrow_mut().push(endpoint);
            if endpoint == "dead" { Err(Busy(1)) } else { Ok(endpoint) }
        });
        answer.map_err(Busy::from)
    });
    assert_eq!(answer.ok(), Some("healthy"));
    assert_eq!(*asked.borrow(), ["dead", "dead", "healthy"]);
}

#[test]
fn a_panic_restores_the_surroundings() {
    let time = Manual::new();
    let (above, inner) = (handle(unbounded(6), &time), handle(unbounded(3), &time));
    let panics = |work: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(work)).is_err());

    let left = above.run_blocking(|_| {
        panics(&|| drop(inner.run_blocking(|_| -> Result<(), Busy> { panic!("on purpose") })));
        Ok::<_, Busy>(spend_all_credit())
    });
    // One was lent to the attempt, which reported nothing: it may count as used, but no more than that, and never less.
    assert!(matches!(left, Ok(Some(3 | 4))), "{left:?} of 4 are left");

    panics(&|| drop(above.run_blocking(|_| -> Result<(), Busy> { panic!("on purpose") })));
    panics(&|| drop(time.run(above.run(async |_| -> Result<(), Busy> { panic!("on purpose") }))));
    assert_eq!(spend_all_credit(), None, "outside every call nobody says anything");
}
