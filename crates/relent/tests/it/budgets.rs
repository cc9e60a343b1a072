//! Budgets of every kind under the drivers, shared by name, and observed.

use std::future::pending;
use std::sync::Arc;

use relent::timer::Manual;
use relent::{
    BudgetConfig, Budgets, BudgetsError, ConcurrencyConfig, CostConfig, Policy, Ratio, RatioConfig, Retry,
    StopReason, ThrottleConfig, WindowedConfig,
};

use crate::rig::{Busy, Transient, handle, unbounded};
use crate::stepper::Stepper;

fn fails(retry: &Retry<Transient, Manual>) -> StopReason {
    retry.run_blocking(|_| Err::<(), _>(Busy(1))).unwrap_err().reason()
}

fn recovers(retry: &Retry<Transient, Manual>) -> bool {
    retry.run_blocking(|attempt| if attempt.is_retry() { Ok(()) } else { Err(Busy(1)) }).is_ok()
}

#[test]
fn a49_every_kind_pays_and_refuses() {
    let kinds: [(BudgetConfig, u64); 5] = [
        (RatioConfig { reserve: Some(3), ..RatioConfig::new(Ratio::percent(10)) }.into(), 3),
        (
            WindowedConfig { ratio: Ratio::ZERO, min_per_second: 3, ttl: std::time::Duration::from_secs(1) }
                .into(),
            3,
        ),
        (ThrottleConfig { max_tokens: 8, token_ratio: Ratio::percent(10) }.into(), 3),
        (ConcurrencyConfig { ratio: Ratio::ZERO, minimum: 3 }.into(), 3),
        (CostConfig { capacity: 15, ..CostConfig::AWS_STANDARD }.into(), 3),
    ];
    for (config, full) in kinds {
        let retry = handle(unbounded(2).budget(config), &Manual::new());
        assert_eq!(retry.budget_balance(), Some(full), "{config:?}");
        let ends: Vec<_> = (0..5).map(|_| fails(&retry)).collect();
        let counts = retry.budget_counts().unwrap();
        assert_eq!(counts.granted + counts.refused, 5, "{config:?}");
        match config {
            // One after another: there is never more than one retry at once.
            BudgetConfig::Concurrency(_) => assert_eq!(counts.refused, 0),
            _ => assert!(ends.ends_with(&[StopReason::BudgetExhausted; 2]), "{config:?}: {ends:?}"),
        }
        let success = retry.run_blocking(|_| Ok::<_, Busy>(7)).unwrap();
        assert_eq!(success, 7, "{config:?}: a first try always goes");
    }
}

#[test]
fn a_call_in_flight_ends_for_a_concurrency_budget_wherever_it_is_dropped() {
    let half = ConcurrencyConfig { ratio: Ratio::percent(50), minimum: 0 };
    let time = Manual::new();
    let retry = handle(unbounded(2).budget(half), &time);
    let balance = || retry.budget_balance().unwrap();
    let mut calls: Vec<_> =
        (0..4).map(|_| Stepper::new(&time, retry.run(|_| pending::<Result<(), Busy>>()))).collect();
    assert_eq!(balance(), 0, "nothing runs before it is polled");
    for call in &mut calls {
        assert!(call.poll().is_pending());
    }
    assert_eq!(balance(), 2);
    assert!(recovers(&retry), "five in flight, and its own retry among them");
    drop(calls);
    assert_eq!(balance(), 0);

    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        retry.run_blocking(|_| -> Result<(), Busy> { panic!("in the first attempt") })
    }));
    assert!(unwound.is_err());
    assert_eq!(balance(), 0, "a panic ends a call, too");
}

#[test]
fn b12_a_retry_that_succeeds_gets_its_own_price_back() {
    let retry = handle(unbounded(3).budget(CostConfig::AWS_STANDARD), &Manual::new());
    for _ in 0..1_000 {
        assert!(recovers(&retry));
    }
    assert_eq!(retry.budget_balance(), Some(100), "a blip costs nothing in the end");
}

#[test]
fn handles_share_a_budget_by_its_name() {
    let time = Manual::new();
    let budgets = Budgets::with_timer(time.clone());
    let policy =
        unbounded(2).budget(CostConfig { capacity: 10, ..CostConfig::AWS_STANDARD }).build().unwrap();
    let named = |name| handle(policy.rebuild(), &time).budget(budgets.get(name, &policy).unwrap());
    let (reads, writes, others) = (named("payments"), named("payments"), named("orders"));
    assert_eq!([fails(&reads), fails(&writes)], [StopReason::AttemptsExhausted; 2]);
    assert_eq!(fails(&reads), StopReason::BudgetExhausted);
    assert_eq!((writes.budget_balance(), others.budget_balance()), (Some(0), Some(2)));

    let dearer =
        policy.rebuild().budget(CostConfig { capacity: 20, ..CostConfig::AWS_STANDARD }).build().unwrap();
    let conflict = budgets.get("payments", &dearer).unwrap_err();
    assert_eq!(conflict, BudgetsError::Conflict { name: "payments".to_owned() });
    assert!(conflict.to_string().contains("described otherwise"), "{conflict}");
    let free = policy.rebuild().no_budget().build().unwrap();
    assert_eq!(budgets.get("payments", &free).unwrap_err(), BudgetsError::NoBudget);
}

#[test]
fn a_budget_that_is_replaced_carries_its_balance_on() {
    let time = Manual::new();
    let budgets = Budgets::with_timer(time.clone());
    let of = |capacity| {
        let budget = CostConfig { capacity, ..CostConfig::AWS_STANDARD };
        unbounded(2).budget(budget).build().unwrap()
    };
    let old = budgets.get("payments", &of(100)).unwrap();
    let handle = handle(of(100).rebuild(), &time).budget(Arc::clone(&old));
    fails(&handle);
    assert!(Arc::ptr_eq(&old, &budgets.replace("payments", &of(100)).unwrap()), "nothing has changed");
    let balance =
        |policy: &Policy| budgets.replace("payments", policy).unwrap().balance(relent::Instant::ZERO);
    assert_eq!(balance(&of(500)), 19, "the old balance");
    assert_eq!(balance(&of(50)), 10, "the new capacity");
    assert_eq!(budgets.find("payments").unwrap().balance(relent::Instant::ZERO), 10);
    assert_eq!(
        balance(
            &unbounded(2).budget(ThrottleConfig { max_tokens: 100, ..ThrottleConfig::GRPC }).build().unwrap()
        ),
        10
    );
}

#[test]
fn a_registry_is_bounded() {
    let budgets = Budgets::new();
    for n in 0..1024 {
        assert!(budgets.get(&n.to_string(), &Policy::default()).is_ok());
    }
    assert_eq!(budgets.get("one more", &Policy::default()).unwrap_err(), BudgetsError::TooMany);
    assert_eq!(budgets.replace("one more", &Policy::default()).unwrap_err(), BudgetsError::TooMany);
    assert!(budgets.get("7", &Policy::default()).is_ok());
}
