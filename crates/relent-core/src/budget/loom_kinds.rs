//! The budgets of the peers under every interleaving of two threads, and of three with a bound on preemptions.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use loom::thread;

use super::{
    AdaptiveBudget, AdaptiveState, Budget, ConcurrencyBudget, CostBudget, Permit, Presence, ThrottleBudget,
    TokenClass, WindowedBudget, WindowedState,
};
use crate::sync::loom_lock::LoomLock;
use crate::{
    AdaptiveConfig, ConcurrencyConfig, CostConfig, Health, Instant, Ratio, ThrottleConfig, Verdict,
    WindowedConfig,
};

/// Later than any budget here was made, by more than a turn and less than a window.
const NOW: Instant = Instant::from_nanos(5_000_000_000);

fn withdraw<B: Budget + 'static>(budget: &Arc<B>) -> Option<Permit> {
    Arc::clone(budget).withdraw(TokenClass::Transient, NOW)
}

fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// Three ask, and hold what they get: how many got something.
fn three_ask<B: Budget + 'static>(budget: &Arc<B>) -> Vec<Permit> {
    let others = [0, 1].map(|_| {
        let budget = Arc::clone(budget);
        thread::spawn(move || withdraw(&budget))
    });
    let mut granted: Vec<Permit> = withdraw(budget).into_iter().collect();
    for other in others {
        granted.extend(other.join().expect("it does not panic"));
    }
    granted
}

fn cost(capacity: u32) -> Arc<CostBudget> {
    Arc::new(CostBudget::new(&CostConfig { capacity, ..CostConfig::AWS_STANDARD }))
}

#[test]
fn loom_cost_three_that_ask_for_two_prices() {
    explore(Some(2), || {
        let budget = cost(10);
        let granted = three_ask(&budget);
        assert_eq!((granted.len(), budget.tokens()), (2, 0));
        drop(granted);
        assert_eq!(budget.tokens(), 10);
    });
}

#[test]
fn loom_cost_b12_a_price_that_comes_back_while_a_success_pays_in() {
    explore(None, || {
        let budget = cost(20);
        let mut paid = withdraw(&budget).expect("full");
        let unspent = withdraw(&budget).expect("half full");
        paid.spend();
        let other = Arc::clone(&budget);
        let there = thread::spawn(move || {
            paid.succeed();
            other.on_success(1, None);
        });
        drop(unspent);
        budget.on_success(1, None);
        there.join().expect("it does not panic");
        assert_eq!(budget.tokens(), 20, "neither lost nor over the capacity");
    });
}

#[test]
fn loom_cost_a_taker_beside_a_giver() {
    explore(None, || {
        let budget = cost(5);
        let permit = withdraw(&budget);
        assert!(permit.is_some());
        let giver = thread::spawn(move || drop(permit));
        let granted = withdraw(&budget);
        giver.join().expect("it does not panic");
        assert_eq!(budget.tokens(), if granted.is_some() { 0 } else { 5 });
        drop(granted);
        assert_eq!(budget.tokens(), 5);
    });
}

#[test]
fn loom_throttle_loses_neither_a_failure_nor_a_success() {
    explore(None, || {
        let config = ThrottleConfig { max_tokens: 4, token_ratio: Ratio::percent(50) };
        let budget = Arc::new(ThrottleBudget::new(&config));
        budget.on_failure(Verdict::Transient, Health::Bad, NOW);
        let other = Arc::clone(&budget);
        let there = thread::spawn(move || {
            other.on_failure(Verdict::Transient, Health::Bad, NOW);
            withdraw(&other).is_some()
        });
        budget.on_success(1, None);
        let granted = there.join().expect("it does not panic");
        assert_eq!(budget.thousandths(), 2_500);
        // 2 of 4 is not over half; with the success it is.
        let _either = granted;
        assert!(withdraw(&budget).is_some());
    });
}

#[test]
fn loom_throttle_never_under_nothing_nor_over_full() {
    explore(None, || {
        let config = ThrottleConfig { max_tokens: 1, token_ratio: Ratio::ONE };
        let budget = Arc::new(ThrottleBudget::new(&config));
        let other = Arc::clone(&budget);
        let there = thread::spawn(move || {
            other.on_failure(Verdict::Transient, Health::Bad, NOW);
            other.on_success(1, None);
        });
        budget.on_failure(Verdict::Transient, Health::Bad, NOW);
        budget.on_success(1, None);
        there.join().expect("it does not panic");
        assert_eq!(budget.thousandths(), 1_000);
    });
}

#[test]
fn loom_concurrency_three_that_ask_for_two_places() {
    explore(Some(2), || {
        let budget = Arc::new(ConcurrencyBudget::new(&ConcurrencyConfig { ratio: Ratio::ZERO, minimum: 2 }));
        let granted = three_ask(&budget);
        assert_eq!((granted.len(), budget.retries()), (2, 2));
        drop(granted);
        assert_eq!((budget.retries(), budget.balance(NOW)), (0, 2));
    });
}

#[test]
fn loom_concurrency_no_call_in_flight_is_lost() {
    explore(None, || {
        let budget = Arc::new(ConcurrencyBudget::new(&ConcurrencyConfig { ratio: Ratio::ONE, minimum: 0 }));
        let shared = Arc::clone(&budget) as Arc<dyn Budget>;
        let here = Presence::begin(&shared);
        let there = thread::spawn(move || {
            let mut retry = {
                let call = Presence::begin(&shared);
                let retry = Arc::clone(&shared).withdraw(TokenClass::Transient, NOW);
                drop(call);
                retry
            };
            if let Some(retry) = &mut retry {
                retry.spend();
            }
            retry
        });
        let seen = budget.in_flight();
        assert!(seen <= 2);
        drop(here);
        let retry = there.join().expect("it does not panic");
        assert!(retry.is_some(), "its own call is in flight for whoever asks");
        assert_eq!((budget.in_flight(), budget.retries()), (0, 1));
        drop(retry);
        assert_eq!(budget.retries(), 0);
    });
}

fn windowed(ratio: Ratio, min_per_second: u32) -> Arc<WindowedBudget<LoomLock<WindowedState>>> {
    let config = WindowedConfig { ratio, min_per_second, ttl: Duration::from_secs(10) };
    Arc::new(WindowedBudget::new(&config, Instant::ZERO))
}

#[test]
fn loom_windowed_b4_two_that_ask_for_the_last_token() {
    explore(None, || {
        let budget = windowed(Ratio::ONE, 0);
        budget.on_start();
        let other = Arc::clone(&budget);
        let there = thread::spawn(move || withdraw(&other));
        let here = withdraw(&budget);
        let there = there.join().expect("it does not panic");
        assert!(here.is_some() != there.is_some(), "one gets it: asked and taken under one lock");
        drop((here, there));
        assert_eq!(budget.balance(NOW), 1, "and gives it back");
    });
}

#[test]
fn loom_windowed_no_start_is_lost_at_a_turn() {
    explore(None, || {
        let budget = windowed(Ratio::ONE, 0);
        let other = Arc::clone(&budget);
        let caller = thread::spawn(move || {
            other.on_start();
            other.on_start();
            other.on_success(1, Some(NOW));
        });
        assert!(budget.balance(NOW) <= 2);
        caller.join().expect("it does not panic");
        assert_eq!(budget.balance(NOW), 2);
    });
}

fn adaptive(factor: u32) -> Arc<AdaptiveBudget<LoomLock<AdaptiveState>>> {
    let config = AdaptiveConfig { factor: Ratio::of(factor, 1), ..AdaptiveConfig::SRE };
    Arc::new(AdaptiveBudget::new(&config, Instant::ZERO))
}

#[test]
fn loom_adaptive_the_share_is_kept_whoever_asks_first() {
    explore(Some(2), || {
        let budget = adaptive(2);
        // Three requests, none accepted: 3/4 of the retries are refused, and more of those after a refusal.
        for _ in 0..3 {
            budget.on_failure(Verdict::Transient, Health::Bad, NOW);
        }
        assert_eq!(three_ask(&budget).len(), 1);
    });
}

#[test]
fn loom_adaptive_no_success_is_lost_while_others_turn() {
    explore(None, || {
        let budget = adaptive(1);
        let other = Arc::clone(&budget);
        let there = thread::spawn(move || other.on_success(1, Some(NOW)));
        budget.on_success(1, None);
        budget.on_failure(Verdict::Permanent, Health::Good, NOW);
        there.join().expect("it does not panic");
        // All three were accepted, so one failure more than that is what is refused a part of.
        budget.on_failure(Verdict::Transient, Health::Bad, NOW);
        assert_eq!(budget.balance(NOW), 999_999 / 200_000);
    });
}
