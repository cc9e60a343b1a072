//! The `adaptive` budget: the SRE book's formula, exactly and without chance.

use std::sync::Arc;

use relent_core::{
    AdaptiveConfig, Budget, BudgetConfig, Health, Instant, Policy, PolicyError, Ratio, TokenClass, Verdict,
};

use crate::rig::{at, budget_of, secs};

fn budget(config: AdaptiveConfig) -> Arc<dyn Budget> {
    budget_of(&BudgetConfig::from(config), 3)
}

fn fails(budget: &Arc<dyn Budget>, now: Instant) {
    budget.on_failure(Verdict::Transient, Health::Bad, now);
}

fn asks(budget: &Arc<dyn Budget>, now: Instant) -> bool {
    Arc::clone(budget).withdraw(TokenClass::Transient, now).is_some()
}

#[test]
fn a_target_that_accepts_half_loses_no_retry() {
    let budget = budget(AdaptiveConfig::SRE);
    for _ in 0..1000 {
        budget.on_success(1, Some(at(1)));
        fails(&budget, at(1));
        assert!(asks(&budget, at(1)));
    }
    assert_eq!(budget.balance(at(1)), u64::MAX);
}

#[test]
fn of_a_target_that_accepts_nothing_the_retries_thin_out() {
    let budget = budget(AdaptiveConfig::SRE);
    let granted = (0..10_000).filter(|_| {
        fails(&budget, at(1));
        asks(&budget, at(1))
    });
    // The sum of 1 / (requests + 1), and every refusal is a request more: the logarithm of it.
    let granted = granted.count();
    assert!((4..12).contains(&granted), "{granted}");
    assert_eq!(budget.balance(at(1)), 0);
    let counts = budget.counts().unwrap();
    assert_eq!(counts.granted + counts.refused, 10_000);
}

#[test]
fn the_share_is_that_of_the_formula() {
    // A quarter is accepted: 1 - 2 / 4 of all requests, the refused ones among them, is refused in the long run.
    let budget = budget(AdaptiveConfig::SRE);
    let (mut requests, mut refused) = (0_u32, 0_u32);
    for _ in 0..20_000 {
        budget.on_success(1, Some(at(1)));
        requests += 1;
        for _ in 0..3 {
            fails(&budget, at(1));
            requests += 1;
            if !asks(&budget, at(1)) {
                requests += 1;
                refused += 1;
            }
        }
    }
    // With a accepted, r requests: each ask is refused with p = 1 - 2a/r, and r grows by 4 + 3p for one that is accepted.
    let p = f64::from(refused) / 60_000.0;
    let r = f64::from(requests) / 20_000.0;
    assert!((p - (1.0 - 2.0 / r)).abs() < 0.01, "{p} of {r}");
}

#[test]
fn it_recovers_with_the_target_and_forgets_after_the_window() {
    let config = AdaptiveConfig { window: secs(10), ..AdaptiveConfig::SRE };
    let budget = budget(config);
    for _ in 0..100 {
        fails(&budget, at(0));
    }
    assert_eq!(budget.balance(at(0)), 1);
    assert_eq!(budget.balance(at(11_000)), u64::MAX);
    for _ in 0..100 {
        fails(&budget, at(11_000));
    }
    for _ in 0..100 {
        budget.on_success(1, Some(at(11_000)));
    }
    assert_eq!(budget.balance(at(11_500)), u64::MAX);
}

#[test]
fn what_failed_for_good_was_accepted_and_what_was_never_sent_counts_for_nothing() {
    let budget = budget(AdaptiveConfig::SRE);
    for _ in 0..100 {
        budget.on_failure(Verdict::Permanent, Health::Good, at(0));
        budget.on_failure(Verdict::Rejected, Health::Unknown, at(0));
    }
    assert_eq!(budget.balance(at(0)), u64::MAX);
    for _ in 0..100 {
        fails(&budget, at(0));
    }
    // 200 requests, 100 accepted, twice that allowed.
    assert_eq!(budget.balance(at(0)), u64::MAX);
    fails(&budget, at(0));
    assert!(budget.balance(at(0)) < 1000);
}

#[test]
fn values_that_contradict_themselves_are_refused() {
    let refused = |config: AdaptiveConfig| Policy::builder().budget(config).build().unwrap_err();
    let half = Ratio::percent(50);
    let below = AdaptiveConfig { factor: half, ..AdaptiveConfig::SRE };
    assert_eq!(refused(below), PolicyError::FactorBelowOne(half));
    let never = AdaptiveConfig { window: secs(0), ..AdaptiveConfig::SRE };
    assert_eq!(refused(never), PolicyError::Zero("budget.window"));
    let long = AdaptiveConfig { window: secs(366 * 86_400), ..AdaptiveConfig::SRE };
    assert!(matches!(refused(long), PolicyError::TooLong { field: "budget.window", .. }));
}
