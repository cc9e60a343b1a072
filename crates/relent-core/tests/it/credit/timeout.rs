//! A middle layer that does not answer in time leaves the outer one its own attempt, and the leaf its three calls.

use std::cell::Cell;

use relent_core::{Failure, Instant, Launch, Policy, Session, Step, StopReason, Used};

use crate::rig::{Rig, at, launched, millis, stopped, waits};

fn rig(attempts: u32, attempt_timeout: u64) -> Rig {
    let policy = Policy::constant(millis(0)).attempts(attempts).attempt_timeout(millis(attempt_timeout));
    Rig::new(policy.no_budget().no_deadline().build().unwrap())
}

/// The middle layer over a leaf that hangs, cut off by the outer layer's `ends`. It is not told the outer layer's time,
/// as on a wire without such a header. Answers its launches, and what it took of `pool`.
fn middle(rig: &Rig, outer: Launch, begins: Instant) -> (u32, u32) {
    let left = outer.left.unwrap();
    let pool = Cell::new(left);
    let context = rig.context_under(&pool);
    let mut session = Session::new(&rig.policy, relent_core::Repeat::Yes, Instant::NEVER, begins);
    let mut step = session.begin(&context, begins);
    loop {
        step = match step {
            Step::Launch(launch) if launch.ends < outer.ends => {
                session.expired(&context, launch.id, Failure::timed_out(), launch.ends)
            }
            Step::Wait { until } => session.due(&context, until),
            Step::Stop(_) => break,
            // The outer layer's time is up first.
            Step::Launch(_) => {
                session.abandon(&context, Used::Unsaid, Some(outer.ends));
                break;
            }
        };
    }
    (session.launched(), left - pool.get())
}

#[test]
fn also_when_the_middle_layer_times_out_three_layers_of_three_make_three_calls() {
    // The middle layer gets through both of its attempts, through one and a half, or not even through one.
    for (middle_timeout, expected) in [(400, 3), (900, 3), (5_000, 2)] {
        for on_the_wire in [false, true] {
            let (outer_rig, middle_rig) = (rig(3, 1_000), rig(3, middle_timeout));
            let (mut outer, mut launch) = outer_rig.begun(at(0));
            let (mut leaf_calls, mut now) = (0, at(0));
            let stop = loop {
                let (launches, used) = middle(&middle_rig, launch, now);
                leaf_calls += launches;
                now = launch.ends;
                // On the wire the answer never came; the target is known to report.
                let used = if on_the_wire { Used::Missing } else { Used::Reported(used) };
                match outer.expired(&outer_rig.context(), launch.id, Failure::timed_out().used(used), now) {
                    Step::Stop(stop) => break stop,
                    step => launch = launched(outer.due(&outer_rig.context(), waits(step))),
                }
            };
            let what = format!("middle timeout {middle_timeout} ms, on the wire: {on_the_wire}");
            assert!(leaf_calls <= 3, "{what}: {leaf_calls}");
            if on_the_wire {
                assert_eq!((leaf_calls, stop.attempts), (expected, 2), "{what}");
                assert_eq!(stop.reason, StopReason::CreditExhausted);
            }
            assert!(stop.ambiguous);
        }
    }
}

#[test]
fn the_outer_layers_own_attempt_reaches_a_healthy_endpoint() {
    let (outer_rig, middle_rig) = (rig(3, 1_000), rig(3, 900));
    let (mut outer, first) = outer_rig.begun(at(0));
    assert_eq!(first.left, Some(1));
    assert_eq!(middle(&middle_rig, first, at(0)), (2, 1));
    let failure = Failure::timed_out().used(Used::Missing);
    let until = waits(outer.expired(&outer_rig.context(), first.id, failure, first.ends));
    let second = launched(outer.due(&outer_rig.context(), until));
    assert_eq!(second.left, Some(0), "it is the last one");
    outer.succeeded(&outer_rig.context(), second.id, Used::Reported(0), Some(until));
    assert!(outer.is_over() && outer.is_ambiguous());
}

#[test]
fn before_a_target_has_ever_reported_its_silence_costs_nothing() {
    let rig = rig(3, 1_000);
    let (mut outer, launch) = rig.begun(at(0));
    let until = waits(outer.expired(&rig.context(), launch.id, Failure::timed_out(), launch.ends));
    let launch = launched(outer.due(&rig.context(), until));
    let until = waits(outer.expired(&rig.context(), launch.id, Failure::timed_out(), launch.ends));
    let launch = launched(outer.due(&rig.context(), until));
    let stop = stopped(outer.expired(&rig.context(), launch.id, Failure::timed_out(), launch.ends));
    assert_eq!((stop.reason, stop.attempts), (StopReason::AttemptsExhausted, 3));
}
