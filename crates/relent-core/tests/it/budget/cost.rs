//! The `cost` budget against the numbers of the AWS SDKs.

use std::sync::Arc;

use proptest::prelude::*;
use relent_core::{
    Budget, BudgetConfig, CostBudget, CostConfig, Failure, Policy, Step, StopReason, TokenClass, Used,
    Verdict,
};

use crate::rig::{Rig, at, launched, millis, stopped, waits};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

fn bucket(config: CostConfig) -> Arc<CostBudget> {
    Arc::new(CostBudget::new(&config))
}

fn rig(budget: &Arc<CostBudget>, attempts: u32) -> Rig {
    let mut rig = Rig::new(Policy::constant(millis(10)).attempts(attempts).build().unwrap());
    rig.budget = Some(Arc::clone(budget) as Arc<dyn Budget>);
    rig
}

/// One call: it fails so, then succeeds.
fn call(rig: &Rig, failures: &[Failure]) -> Option<StopReason> {
    let (mut session, mut launch) = rig.begun(at(0));
    for failure in failures {
        match session.failed(&rig.context(), launch.id, *failure, at(0)) {
            Step::Wait { until } => launch = launched(session.due(&rig.context(), until)),
            Step::Stop(stop) => return Some(stop.reason),
            Step::Launch(free) => launch = free,
        }
    }
    session.succeeded(&rig.context(), launch.id, Used::Unsaid, None);
    None
}

#[test]
fn the_prices_of_the_standard_mode() {
    let throttled = Failure::new(Verdict::Throttled { hint: None });
    for (name, prices) in [("aws-standard", [5, 10, 5]), ("aws-2026", [14, 14, 5])] {
        let Some(BudgetConfig::Cost(config)) = BudgetConfig::preset(name) else {
            panic!("{name} is a cost budget")
        };
        for (failure, price) in [TRANSIENT, Failure::timed_out(), throttled].into_iter().zip(prices) {
            let budget = bucket(config);
            let rig = rig(&budget, 3);
            let (mut session, launch) = rig.begun(at(0));
            let until = waits(session.failed(&rig.context(), launch.id, failure, at(0)));
            assert_eq!(budget.tokens(), 500 - price, "{name}: taken at the decision");
            let retry = launched(session.due(&rig.context(), until));
            session.succeeded(&rig.context(), retry.id, Used::Unsaid, None);
            assert_eq!(budget.tokens(), 500, "{name}: a retry that succeeds costs nothing in the end");
        }
    }
}

/// The tests of the SDKs' standard mode: a call that takes three attempts pays twice, and gets its last price back.
#[test]
fn the_last_price_comes_back_and_no_other() {
    let budget = bucket(CostConfig::AWS_STANDARD);
    let rig = rig(&budget, 5);
    assert_eq!(call(&rig, &[TRANSIENT, TRANSIENT]), None);
    assert_eq!(budget.tokens(), 495);
    assert_eq!(call(&rig, &[Failure::timed_out(), TRANSIENT]), None);
    assert_eq!(budget.tokens(), 485, "ten for the one after a timeout are gone");
    assert_eq!(call(&rig, &[TRANSIENT, Failure::timed_out()]), None);
    assert_eq!(budget.tokens(), 480);
}

#[test]
fn max_attempts_and_no_tokens_as_the_sdks_have_them() {
    // "Retry eventually succeeds", "fail due to max attempts" and "retry quota reached after a single retry" of the
    // standard mode's test cases: quota 500, 500 and 5.
    let budget = bucket(CostConfig::AWS_STANDARD);
    assert_eq!(call(&rig(&budget, 3), &[TRANSIENT; 3]), Some(StopReason::AttemptsExhausted));
    assert_eq!(budget.tokens(), 490);
    let small = bucket(CostConfig { capacity: 10, ..CostConfig::AWS_STANDARD });
    small.lower_to(1, at(0));
    assert_eq!((small.tokens(), small.balance(at(0))), (5, 1));
    assert_eq!(call(&rig(&small, 3), &[TRANSIENT; 3]), Some(StopReason::BudgetExhausted));
    assert_eq!(small.tokens(), 0);
    assert_eq!(call(&rig(&small, 3), &[TRANSIENT]), Some(StopReason::BudgetExhausted));
}

#[test]
fn a43_an_outage_is_throttled() {
    let budget = bucket(CostConfig::AWS_STANDARD);
    let rig = rig(&budget, 3);
    for _ in 0..1_000 {
        call(&rig, &[TRANSIENT; 3]);
    }
    let counts = budget.counts().unwrap();
    assert_eq!(
        (counts.granted, budget.tokens()),
        (100, 0),
        "500 tokens buy 100 retries of 1000 calls, and no more"
    );
    assert_eq!(counts.refused, 950);
}

#[test]
fn a44_a_drained_bucket_recovers_by_first_tries_that_succeed() {
    let budget = bucket(CostConfig::AWS_STANDARD);
    let rig = rig(&budget, 3);
    while call(&rig, &[TRANSIENT; 3]) != Some(StopReason::BudgetExhausted) {}
    assert_eq!(budget.balance(at(0)), 0);
    for n in 1..=5 {
        assert_eq!(call(&rig, &[]), None);
        assert_eq!(budget.tokens(), n);
    }
    assert_eq!(call(&rig, &[TRANSIENT]), None, "five of them pay for a retry");
    assert_eq!(budget.tokens(), 5);
    for _ in 0..1_000 {
        call(&rig, &[]);
    }
    assert_eq!(budget.tokens(), 500, "never more than full");
}

#[test]
fn b12_calls_at_once_hold_each_their_own_price() {
    let budget = bucket(CostConfig::AWS_STANDARD);
    let rig = rig(&budget, 3);
    let (mut dear, launch) = rig.begun(at(0));
    let dear_until = waits(dear.failed(&rig.context(), launch.id, Failure::timed_out(), at(0)));
    let (mut cheap, launch) = rig.begun(at(0));
    let cheap_until = waits(cheap.failed(&rig.context(), launch.id, TRANSIENT, at(0)));
    assert_eq!(budget.tokens(), 485);
    let retry = launched(cheap.due(&rig.context(), cheap_until));
    cheap.succeeded(&rig.context(), retry.id, Used::Unsaid, None);
    assert_eq!(budget.tokens(), 490, "its own five");
    let retry = launched(dear.due(&rig.context(), dear_until));
    assert_eq!(stopped(dear.failed(&rig.context(), retry.id, Verdict::Permanent.into(), at(20))).attempts, 2);
    assert_eq!(budget.tokens(), 490, "a retry that fails gets nothing back");
}

proptest! {
    /// Whatever is taken, spent, paid off and given back: never over the capacity, and the sums add up while nothing
    /// overflows it.
    #[test]
    fn the_books_balance(
        capacity in 14..600_u32,
        events in prop::collection::vec((0..5_u8, any::<bool>()), 0..300),
    ) {
        let budget = bucket(CostConfig { capacity, ..CostConfig::AWS_2026 });
        let mut tokens = capacity;
        let mut held = Vec::new();
        for (kind, throttled) in events {
            let class = if throttled { TokenClass::Throttled } else { TokenClass::Transient };
            let price = if throttled { 5 } else { 14 };
            match kind {
                0 | 1 => {
                    let permit = Arc::clone(&budget).withdraw(class, at(0));
                    prop_assert_eq!(permit.is_some(), tokens >= price);
                    if let Some(permit) = permit {
                        tokens -= price;
                        held.push((permit, price));
                    }
                }
                2 => {
                    if let Some((permit, price)) = held.pop() {
                        drop(permit);
                        tokens = capacity.min(tokens + price);
                    }
                }
                3 => {
                    budget.on_success(1, None);
                    tokens = capacity.min(tokens + 1);
                }
                _ => budget.on_success(2, None),
            }
            prop_assert_eq!(budget.tokens(), tokens);
        }
    }
}
