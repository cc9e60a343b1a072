//! The ratio budget under every interleaving of two threads, and of three with a bound on preemptions.

use alloc::sync::Arc;
use core::time::Duration;

use loom::thread;

use super::{Budget, Permit, RatioBudget, RatioState, TokenClass};
use crate::sync::loom_lock::LoomLock;
use crate::{Deposit, Instant, Ratio, RatioConfig};

type LoomBudget = RatioBudget<LoomLock<RatioState>>;

const WINDOW: Duration = Duration::from_secs(10);

/// Later than any budget here was made, by more than a turn and less than a window.
const NOW: Instant = Instant::from_nanos(5_000_000_000);

fn budget(ratio: Ratio, reserve: u32) -> Arc<LoomBudget> {
    let config = RatioConfig { window: WINDOW, reserve: Some(reserve), ..RatioConfig::new(ratio) };
    Arc::new(RatioBudget::new(&config, 3, Instant::ZERO))
}

fn withdraw(budget: &Arc<LoomBudget>) -> Option<Permit> {
    Arc::clone(budget).withdraw(TokenClass::Transient, NOW)
}

fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

#[test]
fn loom_two_that_ask_for_one_token() {
    explore(None, || {
        let budget = budget(Ratio::ZERO, 1);
        let other = Arc::clone(&budget);
        let there = thread::spawn(move || withdraw(&other));
        let here = withdraw(&budget);
        let there = there.join().unwrap();
        assert!(here.is_some() != there.is_some(), "one gets it");
        drop((here, there));
        assert_eq!(budget.balance(NOW), 1, "and gives it back");
    });
}

#[test]
fn loom_three_that_ask_for_two_tokens_of_both_sources() {
    explore(Some(2), || {
        let budget = budget(Ratio::ONE, 1);
        budget.on_success(1, Some(NOW));
        let others = [0, 1].map(|_| {
            let budget = Arc::clone(&budget);
            thread::spawn(move || withdraw(&budget))
        });
        let mut granted = alloc::vec![withdraw(&budget)];
        granted.extend(others.map(|other| other.join().unwrap()));
        assert_eq!(granted.iter().flatten().count(), 2);
    });
}

#[test]
fn loom_no_deposit_is_lost_at_a_turn() {
    for clocked in [None, Some(NOW)] {
        explore(None, move || {
            let budget = budget(Ratio::ONE, 0);
            let other = Arc::clone(&budget);
            let depositor = thread::spawn(move || {
                other.on_success(1, clocked);
                other.on_success(1, clocked);
            });
            let seen = budget.balance(NOW);
            assert!(seen <= 2);
            depositor.join().unwrap();
            // Without a clock the deposits may be taken to have come evenly over the 5 s, all of which the window holds.
            assert_eq!(budget.balance(NOW), 2);
        });
    }
}

#[test]
fn loom_two_clocked_successes_that_both_find_the_window_old() {
    explore(None, || {
        let budget = budget(Ratio::ONE, 0);
        let other = Arc::clone(&budget);
        let there = thread::spawn(move || other.on_success(1, Some(NOW)));
        budget.on_success(1, Some(NOW));
        there.join().unwrap();
        assert_eq!(budget.balance(NOW), 2, "the one that does not get the lock deposits all the same");
    });
}

#[test]
fn loom_one_deposit_pays_for_one_of_two_that_ask_while_it_comes() {
    explore(Some(3), || {
        let budget = budget(Ratio::ONE, 0);
        let depositor = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.on_success(1, None))
        };
        let asker = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || withdraw(&budget))
        };
        let here = withdraw(&budget);
        depositor.join().unwrap();
        let there = asker.join().unwrap();
        let held = u64::from(here.is_some()) + u64::from(there.is_some());
        assert!(held <= 1);
        assert_eq!(budget.balance(NOW), 1 - held);
        drop((here, there));
        assert_eq!(budget.balance(NOW), 1);
    });
}

#[test]
fn loom_a_token_given_back_while_another_asks() {
    explore(None, || {
        let budget = budget(Ratio::ZERO, 1);
        let permit = withdraw(&budget);
        assert!(permit.is_some());
        let giver = thread::spawn(move || drop(permit));
        let granted = withdraw(&budget);
        giver.join().unwrap();
        let held = u64::from(granted.is_some());
        assert_eq!(budget.balance(NOW), 1 - held);
        drop(granted);
        assert_eq!(budget.balance(NOW), 1, "neither lost nor doubled");
    });
}

#[test]
fn loom_a_request_deposits_and_its_success_feeds_the_reserve() {
    explore(None, || {
        let open = RatioConfig { window: WINDOW, reserve: Some(1), ..RatioConfig::new(Ratio::ONE) };
        let config = RatioConfig { deposit: Deposit::Request, reserve_per_second: Ratio::ONE, ..open };
        let budget = Arc::new(LoomBudget::new(&config, 3, Instant::ZERO));
        let mut spent = withdraw(&budget);
        spent.as_mut().expect("the reserve is full at the start").spend();
        let other = Arc::clone(&budget);
        let call = thread::spawn(move || {
            other.on_start();
            other.on_success(1, None);
        });
        let _ = budget.balance(NOW);
        call.join().unwrap();
        // The reserve's token was spent in this window: what was put back has to wait until that is forgotten.
        assert_eq!(budget.balance(NOW), 1);
        assert_eq!(budget.balance(NOW + WINDOW * 2), 1);
    });
}
