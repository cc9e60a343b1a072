//! Several inner calls of one operation: they share its pool, and what a successful one cost returns.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use relent_core::{AttemptId, Failure, Policy, Session, Step, StopReason, Used, Verdict};

use crate::rig::{Bits, Rig, at, launched, millis, stopped, waits};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

fn rig(attempts: u32) -> Rig {
    Rig::new(Policy::constant(millis(1)).attempts(attempts).no_budget().no_deadline().build().unwrap())
}

/// An inner call whose first attempt runs.
fn begin(rig: &Rig, pool: &Cell<u32>) -> (Session, AttemptId, Option<u32>) {
    let mut session = rig.session(at(0));
    let launch = launched(session.begin(&rig.context_under(pool), at(0)));
    (session, launch.id, launch.left)
}

#[test]
fn what_one_was_told_is_withheld_from_the_others_until_it_reports() {
    let rig = rig(4);
    let pool = Cell::new(3);
    let (mut one, id, left) = begin(&rig, &pool);
    assert_eq!((left, pool.get()), (Some(2), 1));
    let (mut two, _, left) = begin(&rig, &pool);
    assert_eq!((left, pool.get()), (Some(0), 1), "one left, and that it keeps back");
    waits(one.failed(&rig.context_under(&pool), id, TRANSIENT.used(Used::Reported(1)), at(0)));
    assert_eq!(pool.get(), 1, "one used below, one for its own retry, one back");
    two.abandon(&rig.context_under(&pool), Used::Unsaid, None);
    one.abandon(&rig.context_under(&pool), Used::Unsaid, None);
    assert_eq!(pool.get(), 2, "the retry was not launched");
}

#[test]
fn parallel_calls_that_keep_failing_take_no_more_than_the_pool() {
    for granted in [0, 1, 2, 5, 50] {
        let rig = rig(3);
        let pool = Cell::new(granted);
        let context = rig.context_under(&pool);
        let mut calls: Vec<_> = (0..10).map(|_| begin(&rig, &pool)).collect();
        let mut launches = 10;
        // All fail, all that wait are launched, until nobody waits.
        while calls.iter().any(|(session, ..)| !session.is_over()) {
            for (session, id, _) in &mut calls {
                if let Step::Wait { until } = session.failed(&context, *id, TRANSIENT, at(0)) {
                    *id = launched(session.due(&context, until)).id;
                    launches += 1;
                }
            }
        }
        let expected = 10 + granted.min(20);
        assert_eq!(launches, expected, "a pool of {granted}");
    }
}

#[test]
fn a_hundred_inner_calls_at_two_percent_errors_all_get_their_retry() {
    let rig = rig(3);
    let pool = Cell::new(1);
    let errors = Bits::seeded(3);
    let mut retried = 0;
    for _ in 0..10 {
        for call in 0..100 {
            let (mut session, id, _) = begin(&rig, &pool);
            if errors.chance(0.02) {
                let until = waits(session.failed(&rig.context_under(&pool), id, TRANSIENT, at(call)));
                let second = launched(session.due(&rig.context_under(&pool), until));
                session.succeeded(&rig.context_under(&pool), second.id, Used::Unsaid, None);
                retried += 1;
            } else {
                session.succeeded(&rig.context_under(&pool), id, Used::Unsaid, None);
            }
            assert_eq!(pool.get(), 1);
        }
    }
    assert!(retried > 10, "{retried} of 1000");
}

#[test]
fn what_a_failing_one_spent_is_gone_for_the_next() {
    let rig = rig(3);
    let pool = Cell::new(3);
    let mut made = Vec::new();
    for _ in 0..4 {
        let (mut session, mut id, _) = begin(&rig, &pool);
        let stop = loop {
            match session.failed(&rig.context_under(&pool), id, TRANSIENT, at(0)) {
                Step::Wait { until } => id = launched(session.due(&rig.context_under(&pool), until)).id,
                step => break stopped(step),
            }
        };
        made.push((stop.attempts, stop.reason));
    }
    let (own, granted) = (StopReason::AttemptsExhausted, StopReason::CreditExhausted);
    assert_eq!(made, [(3, own), (2, granted), (1, granted), (1, granted)]);
}

#[derive(Clone, Copy, Debug)]
enum Input {
    Begin,
    Fail { call: usize, report: u8 },
    Wake(usize),
    Succeed { call: usize, report: u8 },
    Abandon(usize),
}

fn input() -> impl Strategy<Value = Input> {
    let call = 0..6_usize;
    prop_oneof![
        2 => Just(Input::Begin),
        4 => (call.clone(), 0..6_u8).prop_map(|(call, report)| Input::Fail { call, report }),
        4 => call.clone().prop_map(Input::Wake),
        1 => (call.clone(), 0..6_u8).prop_map(|(call, report)| Input::Succeed { call, report }),
        1 => call.prop_map(Input::Abandon),
    ]
}

fn report(code: u8) -> Used {
    match code {
        0 => Used::Unsaid,
        1 => Used::Missing,
        n => Used::Reported(u32::from(n) - 2),
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 600,
        rng_seed: RngSeed::Fixed(51),
        failure_persistence: None,
        ..Config::default()
    })]

    /// At the end the pool holds what it held, less what calls that did not succeed made of extra attempts.
    #[test]
    fn the_pool_balances(
        granted in 0..9_u32,
        attempts in 1..6_u32,
        inputs in prop::collection::vec(input(), 0..80),
    ) {
        let rig = rig(attempts);
        let pool = Cell::new(granted);
        let context = rig.context_under(&pool);
        let mut calls: Vec<(Session, AttemptId, bool)> = Vec::new();
        for input in inputs {
            let call = match input {
                Input::Begin => {
                    let (session, id, _) = begin(&rig, &pool);
                    calls.push((session, id, false));
                    continue;
                }
                Input::Fail { call, .. } | Input::Wake(call) | Input::Succeed { call, .. } | Input::Abandon(call) => call,
            };
            let Some((session, id, succeeded)) = calls.get_mut(call) else { continue };
            match input {
                Input::Fail { report: code, .. } => {
                    session.failed(&context, *id, TRANSIENT.used(report(code)), at(0));
                }
                Input::Succeed { report: code, .. } => {
                    let before = session.is_over();
                    session.succeeded(&context, *id, report(code), None);
                    *succeeded |= !before && session.is_over();
                }
                Input::Abandon(_) => _ = session.abandon(&context, Used::Unsaid, None),
                _ => {
                    if let Step::Launch(launch) = session.due(&context, at(5)) {
                        *id = launch.id;
                    }
                }
            }
            prop_assert!(pool.get() <= granted);
        }
        let mut gone = 0;
        for (session, _, succeeded) in &mut calls {
            session.abandon(&context, Used::Unsaid, None);
            gone += if *succeeded { 0 } else { session.used() };
        }
        prop_assert_eq!(pool.get(), granted - gone);
    }
}
