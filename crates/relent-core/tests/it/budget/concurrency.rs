//! The `concurrency` budget against Envoy's rule, with its known flaws mended.

use std::sync::Arc;

use proptest::prelude::*;
use relent_core::{
    Budget, BudgetConfig, ConcurrencyBudget, ConcurrencyConfig, Failure, Policy, Ratio, Session, Step,
    StopReason, TokenClass, Used, Verdict,
};

use crate::rig::{Rig, at, launched, millis, stopped};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

fn budget(ratio: Ratio, minimum: u32) -> Arc<ConcurrencyBudget> {
    Arc::new(ConcurrencyBudget::new(&ConcurrencyConfig { ratio, minimum }))
}

fn rig(budget: &Arc<ConcurrencyBudget>) -> Rig {
    let mut rig = Rig::new(Policy::constant(millis(10)).attempts(3).build().unwrap());
    rig.budget = Some(Arc::clone(budget) as Arc<dyn Budget>);
    rig
}

#[test]
fn a46_a_thousand_that_fail_at_once_are_never_more_than_two_hundred_in_a_retry() {
    let budget = budget(Ratio::percent(20), 3);
    let rig = rig(&budget);
    let mut calls: Vec<_> = (0..1_000).map(|_| rig.begun(at(0))).collect();
    assert_eq!(budget.in_flight(), 1_000);
    let mut waiting = Vec::new();
    for (mut call, launch) in calls.drain(..) {
        match call.failed(&rig.context(), launch.id, TRANSIENT, at(1)) {
            Step::Wait { until } => {
                assert!(budget.retries() <= budget.in_flight() / 5, "at the time of each decision");
                waiting.push((call, until));
            }
            step => assert_eq!(stopped(step).reason, StopReason::BudgetExhausted),
        }
    }
    assert_eq!((waiting.len(), budget.retries()), (200, 200));
    assert_eq!(budget.in_flight(), 200, "whoever is refused is in flight no more");
    let running: Vec<Session> = waiting
        .into_iter()
        .map(|(mut call, until)| {
            launched(call.due(&rig.context(), until));
            call
        })
        .collect();
    assert_eq!(
        budget.retries(),
        running.len() as u64,
        "a retry counts from its decision to its attempt's end"
    );
    drop(running);
    assert_eq!((budget.retries(), budget.in_flight()), (0, 0));
    assert_eq!(budget.balance(at(2)), 3);
}

#[test]
fn those_who_wait_are_in_flight_so_the_base_does_not_shrink() {
    let budget = budget(Ratio::percent(50), 0);
    let rig = rig(&budget);
    let mut calls: Vec<_> = (0..10).map(|_| rig.begun(at(0))).collect();
    let mut granted = 0;
    for (call, launch) in calls.iter_mut().take(5) {
        let step = call.failed(&rig.context(), launch.id, TRANSIENT, at(1));
        granted += u32::from(matches!(step, Step::Wait { .. }));
    }
    assert_eq!((granted, budget.in_flight(), budget.balance(at(1))), (5, 10, 0));
}

#[test]
fn the_minimum_is_there_for_callers_of_few_calls() {
    let budget = budget(Ratio::percent(20), 3);
    let rig = rig(&budget);
    let mut calls: Vec<_> = (0..4).map(|_| rig.begun(at(0))).collect();
    let granted: Vec<bool> = calls
        .iter_mut()
        .map(|(call, launch)| {
            matches!(call.failed(&rig.context(), launch.id, TRANSIENT, at(1)), Step::Wait { .. })
        })
        .collect();
    assert_eq!(granted, [true, true, true, false]);
    let counts = budget.counts().unwrap();
    assert_eq!((counts.granted, counts.refused, counts.returned), (3, 1, 0));
    drop(calls);
    assert_eq!(budget.counts().unwrap().returned, 3);
}

#[test]
fn a_retry_that_succeeds_makes_room_for_another() {
    let budget = budget(Ratio::ZERO, 1);
    let rig = rig(&budget);
    for _ in 0..3 {
        let (mut call, launch) = rig.begun(at(0));
        let Step::Wait { until } = call.failed(&rig.context(), launch.id, TRANSIENT, at(1)) else {
            panic!("there is room for one")
        };
        let retry = launched(call.due(&rig.context(), until));
        assert_eq!(budget.balance(at(1)), 0);
        call.succeeded(&rig.context(), retry.id, Used::Unsaid, None);
        assert_eq!((budget.balance(at(1)), budget.in_flight()), (1, 0));
    }
}

#[test]
fn the_preset_is_envoys() {
    let config = ConcurrencyConfig { ratio: Ratio::percent(20), minimum: 3 };
    assert_eq!(BudgetConfig::preset("envoy"), Some(config.into()));
}

proptest! {
    #[test]
    fn never_more_than_the_rule_says(
        ratio in 0..=100_u16,
        minimum in 0..5_u32,
        events in prop::collection::vec(0..6_u8, 0..300),
    ) {
        let budget = budget(Ratio::percent(ratio), minimum);
        let (mut calls, mut permits) = (0_u64, Vec::new());
        for event in events {
            match event {
                0..=2 => {
                    budget.on_start();
                    calls += 1;
                }
                3 if calls > 0 => {
                    budget.on_end();
                    calls -= 1;
                }
                4 => _ = permits.pop(),
                _ => {
                    let most = u64::from(minimum).max(calls * u64::from(ratio) / 100);
                    let held = permits.len() as u64;
                    let permit = Arc::clone(&budget).withdraw(TokenClass::Transient, at(0));
                    prop_assert_eq!(permit.is_some(), held < most);
                    permits.extend(permit);
                }
            }
            prop_assert_eq!((budget.in_flight(), budget.retries()), (calls, permits.len() as u64));
        }
    }
}
