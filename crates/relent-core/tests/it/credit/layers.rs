//! Layers in a row over one leaf, in process and on the wire.

use std::cell::Cell;

use relent_core::{Credit, Failure, Instant, Nested, NoCredit, Policy, Repeat, Session, Step, Used, Verdict};

use crate::rig::{Rig, at, millis};

/// How a layer learns of the credit of the one above, and how it answers.
#[derive(Clone, Copy, Debug)]
enum Edge {
    /// It takes from the same pool.
    InProcess,
    /// `left` in the request, `used` in the response.
    Wire,
}

struct Layer {
    rig: Rig,
    repeat: Repeat,
}

fn layer(attempts: u32) -> Layer {
    nested(attempts, Nested::Credit)
}

fn nested(attempts: u32, nested: Nested) -> Layer {
    let policy = Policy::constant(millis(0)).attempts(attempts).nested(nested).no_budget().no_deadline();
    Layer { rig: Rig::new(policy.build().unwrap()), repeat: Repeat::Yes }
}

fn unsafe_to_repeat(attempts: u32) -> Layer {
    Layer { repeat: Repeat::No, ..layer(attempts) }
}

/// Makes one call through the layers, outermost first. Answers whether it succeeded, and the extra attempts.
fn call(layers: &[Layer], above: &dyn Credit, edge: Edge, leaf: &mut dyn FnMut() -> bool) -> (bool, u32) {
    let Some((layer, below)) = layers.split_first() else {
        return (leaf(), 0);
    };
    let context = layer.rig.context_under(above);
    let mut session = Session::new(&layer.rig.policy, layer.repeat, Instant::NEVER, at(0));
    let mut step = session.begin(&context, at(0));
    loop {
        step = match step {
            Step::Wait { until } => session.due(&context, until),
            Step::Stop(_) => return (false, session.used()),
            Step::Launch(launch) => {
                let pool = launch.left.map(Cell::new);
                let told: &dyn Credit = pool.as_ref().map_or(&NoCredit, |pool| pool);
                let (succeeded, answered) = call(below, told, edge, leaf);
                let used = match (launch.left, &pool, edge) {
                    // The leaf is no layer, and answers nothing.
                    _ if below.is_empty() => Used::Unsaid,
                    (Some(left), Some(pool), Edge::InProcess) => Used::Reported(left - pool.get()),
                    (Some(_), _, Edge::Wire) => Used::Reported(answered),
                    _ => Used::Unsaid,
                };
                if succeeded {
                    session.succeeded(&context, launch.id, used, None);
                    return (true, session.used());
                }
                session.failed(&context, launch.id, Failure::new(Verdict::Transient).used(used), at(0))
            }
        };
    }
}

/// Calls at a leaf that never works.
fn calls_at_a_dead_leaf(layers: &[Layer]) -> u32 {
    let by_edge = [Edge::InProcess, Edge::Wire].map(|edge| {
        let mut calls = 0;
        let (succeeded, used) = call(layers, &NoCredit, edge, &mut || {
            calls += 1;
            false
        });
        assert!(!succeeded);
        assert!(used < calls, "{used} extra attempts are told of {calls}");
        calls
    });
    assert_eq!(by_edge[0], by_edge[1], "in process and on the wire");
    by_edge[0]
}

#[test]
fn a71_three_layers_of_three_make_three_calls_and_not_twenty_seven() {
    assert_eq!(calls_at_a_dead_leaf(&[layer(3), layer(3), layer(3)]), 3);
}

#[test]
fn a_call_that_keeps_failing_costs_the_outermost_attempts() {
    let numbers = [1, 2, 3, 4, 7];
    for outer in numbers {
        for middle in numbers {
            for inner in numbers {
                // A layer of one attempt has nothing to share: the next one down is the outermost that retries.
                let expected = [outer, middle, inner].into_iter().find(|attempts| *attempts > 1).unwrap_or(1);
                let layers = [layer(outer), layer(middle), layer(inner)];
                assert_eq!(calls_at_a_dead_leaf(&layers), expected, "{outer} over {middle} over {inner}");
            }
        }
    }
}

#[test]
fn the_layer_nearest_to_the_failure_spends_first() {
    // The leaf works at its second call: the innermost layer has made it before the others hear of anything. In a process
    // what a successful call cost is back in the pool by then; on the wire it is told.
    for (edge, told) in [(Edge::InProcess, 0), (Edge::Wire, 1)] {
        let layers = [layer(4), layer(4), layer(4)];
        let mut calls = 0;
        let (succeeded, used) = call(&layers, &NoCredit, edge, &mut || {
            calls += 1;
            calls == 2
        });
        assert_eq!((succeeded, calls, used), (true, 2, told), "{edge:?}");
        assert_eq!(layers.each_ref().map(|layer| layer.rig.bits.drawn()), [0, 0, 1], "who drew a wait");
    }
}

#[test]
fn layers_that_cant_retry_hand_it_on() {
    for layers in [
        [layer(3), unsafe_to_repeat(3), layer(3)],
        [layer(3), layer(1), layer(3)],
        [layer(3), layer(3), unsafe_to_repeat(3)],
        [unsafe_to_repeat(3), layer(3), layer(3)],
        [layer(1), layer(3), layer(3)],
    ] {
        assert_eq!(calls_at_a_dead_leaf(&layers), 3);
    }
    assert_eq!(calls_at_a_dead_leaf(&[unsafe_to_repeat(9), layer(1), unsafe_to_repeat(9)]), 1);
}

#[test]
fn passed_through_only_the_outermost_retries() {
    let layers = [nested(3, Nested::PassThrough), layer(9), layer(9)];
    assert_eq!(calls_at_a_dead_leaf(&layers), 3);
    let layers = [layer(5), nested(5, Nested::PassThrough), layer(9)];
    assert_eq!(calls_at_a_dead_leaf(&layers), 5);
}

#[test]
fn allowed_attempts_multiply_as_foreign_layers_do() {
    let layers = [nested(3, Nested::Allow), nested(3, Nested::Allow), layer(3)];
    assert_eq!(calls_at_a_dead_leaf(&layers), 27);
    // Below a layer that says nothing, a new allowance begins.
    let layers = [nested(3, Nested::Allow), layer(3), layer(3)];
    assert_eq!(calls_at_a_dead_leaf(&layers), 9);
}
