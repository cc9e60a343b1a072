//! The `windowed` budget against the tests that Finagle and tower publish, and against their arithmetic, which truncates.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use relent_core::{Budget, BudgetConfig, Instant, Permit, Ratio, TokenClass, WindowedConfig};

use crate::rig::{at, budget_of, millis, secs};

fn budget(ttl: Duration, min_per_second: u32, ratio: Ratio) -> Arc<dyn Budget> {
    budget_of(&WindowedConfig { ratio, min_per_second, ttl }.into(), 3)
}

fn withdraw(budget: &Arc<dyn Budget>, now: Instant) -> bool {
    // What a retry that is launched leaves behind: the token is gone.
    let permit = Arc::clone(budget).withdraw(TokenClass::Transient, now);
    permit.map(std::mem::forget::<Permit>).is_some()
}

/// A call starts, and succeeds at once, its driver knowing the time.
fn call(budget: &Arc<dyn Budget>, now: Instant) {
    budget.on_start();
    budget.on_success(1, Some(now));
}

/// `RetryBudgetTest.testBudget` of Finagle: retries of 10 000 requests, each of which asks for one.
fn retried(ttl: Duration, min_per_second: u32, ratio: Ratio) -> u64 {
    let budget = budget(ttl, min_per_second, ratio);
    let reserve = ttl.as_secs() * u64::from(min_per_second);
    assert_eq!(budget.balance(at(0)), reserve);
    let mut retried = 0;
    for _ in 0..10_000 {
        budget.on_start();
        if withdraw(&budget, at(0)) {
            retried += 1;
        } else {
            assert_eq!(budget.balance(at(0)), 0);
        }
    }
    retried
}

#[test]
fn finagle_percent_can_retry_exactly() {
    for millionths in [100_000, 500_000, 250_000, 750_000, 990_000, 999_000, 999_900, 10_000, 1_000, 100] {
        let ratio = Ratio::from_parts_per_million(millionths);
        let expected = 10_000 * u64::from(millionths) / 1_000_000;
        // Finagle's own test allows one more or less.
        assert_eq!(retried(secs(60), 0, ratio), expected, "{ratio}");
    }
}

#[test]
fn finagle_min_retries_and_percent() {
    assert_eq!(retried(secs(1), 10, Ratio::ZERO), 10);
    assert_eq!(retried(secs(2), 5, Ratio::ZERO), 10);
    assert_eq!(retried(secs(1), 10, Ratio::percent(10)), 1_010);
    assert_eq!(retried(secs(2), 5, Ratio::percent(50)), 5_010);
}

#[test]
fn finagle_more_than_one_retry_per_request() {
    let budget = budget(secs(60), 0, Ratio::of(2, 1));
    assert!(!withdraw(&budget, at(0)));
    for _ in 0..10_000 {
        budget.on_start();
    }
    assert_eq!(budget.balance(at(0)), 20_000);
}

#[test]
fn finagle_nothing_of_nothing() {
    let empty = budget(secs(10), 0, Ratio::ZERO);
    empty.on_start();
    assert!(!withdraw(&empty, at(0)) && empty.balance(at(0)) == 0);
}

/// What Finagle and tower grant of 1000 calls that all want a retry, by their own arithmetic.
fn peers(ratio: f64) -> (u64, u64) {
    let finagle = 1_000 * 1_000 / (1_000.0 / ratio) as u64;
    let tower = 1_000 / (1.0 / ratio) as u64;
    (finagle, tower)
}

#[test]
fn a40_the_ratio_is_exact_where_peers_truncate() {
    for (tenths, finagle, tower) in
        [(3, 300, 333), (4, 400, 500), (6, 600, 1_000), (7, 700, 1_000), (9, 900, 1_000)]
    {
        let exact = budget(secs(10), 0, Ratio::of(tenths, 10));
        for _ in 0..1_000 {
            exact.on_start();
        }
        let granted = (0..1_000).filter(|_| withdraw(&exact, at(0))).count();
        assert_eq!(granted, tenths as usize * 100);
        assert_eq!(peers(f64::from(tenths) / 10.0), (finagle, tower), "0.{tenths}");
    }
}

#[test]
fn tower_tps_empty_and_leaky() {
    let empty = budget(secs(1), 0, Ratio::ONE);
    assert!(!withdraw(&empty, at(0)));
    call(&empty, at(20));
    assert!(!withdraw(&empty, at(3_020)), "a deposit fades");
}

#[test]
fn tower_tps_slots() {
    let half = budget(secs(1), 0, Ratio::percent(50));
    call(&half, at(0));
    call(&half, at(0));
    assert!(withdraw(&half, at(901)), "901 ms later the deposits still count");
    let later = 901 + 2_001;
    call(&half, at(later));
    call(&half, at(later + 301));
    call(&half, at(later + 1_102));
    assert!(withdraw(&half, at(later + 1_102)), "the first has faded, the second and third pay together");
    assert!(!withdraw(&half, at(later + 1_102)));
}

#[test]
fn tower_tps_reserve() {
    let five = budget(secs(1), 5, Ratio::ONE);
    let granted: Vec<bool> = (0..6).map(|_| withdraw(&five, at(0))).collect();
    assert_eq!(granted, [true, true, true, true, true, false]);
    assert!(withdraw(&five, at(1_100)), "a ttl later they are there again");
}

/// Nothing is timed here: a walk over the windows of an idle spell would be 10^14 steps, and never end.
#[test]
fn b4_a_century_without_a_call_costs_what_a_second_does() {
    let century = secs(100 * 365 * 24 * 3_600);
    let budget = budget(millis(1), 0, Ratio::ONE);
    let mut now = at(0);
    for _ in 0..5 {
        (0..100).for_each(|_| call(&budget, now));
        assert!(budget.balance(now) >= 100, "what was paid in just now counts");
        (0..100).for_each(|_| call(&budget, now));
        now = now + century;
        // Deposits of which nobody knew the time are spread over the time since, and one stands at its end.
        assert!(budget.balance(now) <= 1, "what was paid in a century ago does not");
    }
}

#[test]
fn the_presets_have_the_peers_numbers() {
    let config = WindowedConfig { ratio: Ratio::percent(20), min_per_second: 10, ttl: secs(10) };
    for name in ["finagle", "linkerd"] {
        assert_eq!(BudgetConfig::preset(name), Some(config.into()));
        assert_eq!(
            BudgetConfig::preset(name).unwrap().build::<crate::rig::StdLocks>(3, at(0)).balance(at(0)),
            100
        );
    }
    assert_eq!(BudgetConfig::preset("nobody"), None);
}

#[test]
fn a_token_given_back_counts_no_more_and_is_counted() {
    let one = budget(secs(1), 1, Ratio::ZERO);
    let permit = Arc::clone(&one).withdraw(TokenClass::Transient, at(0));
    assert_eq!(one.balance(at(0)), 0);
    drop(permit);
    assert!(withdraw(&one, at(10)) && !withdraw(&one, at(10)));
    let counts = one.counts().unwrap();
    assert_eq!((counts.granted, counts.refused, counts.returned), (2, 1, 1));
}

/// One thing that happens: calls start, somebody asks, time passes (hundredths of the ttl).
#[derive(Clone, Copy, Debug)]
enum Event {
    Start(u8),
    Ask,
    Pass(u64),
}

proptest! {
    /// In no ttl more than the rule allows; and where the budget is asked every tenth of it, never less than what the rule
    /// allows of the last 89 hundredths.
    #[test]
    fn never_too_many_and_hardly_too_few(
        millionths in prop_oneof![Just(1_000_000_u32), 0..3_000_000_u32],
        min_per_second in 0..5_u32,
        events in prop::collection::vec(prop_oneof![
            (1..20_u8).prop_map(Event::Start), Just(Event::Ask), Just(Event::Ask), (0..10_u64).prop_map(Event::Pass),
        ], 1..200),
    ) {
        let ratio = Ratio::from_parts_per_million(millionths);
        let budget = budget(secs(1), min_per_second, ratio);
        let (mut now, mut starts, mut spent) = (at(5_000), Vec::new(), Vec::new());
        let _ = budget.balance(now);
        let within = |times: &[Instant], now: Instant, span: Duration| {
            times.iter().filter(|when| now.since(**when) < span).count() as u64
        };
        let rule = |calls: u64, spent: u64| {
            let earned = u64::from(min_per_second) * 1_000_000 + calls * u64::from(millionths);
            earned.saturating_sub(spent * 1_000_000) / 1_000_000
        };
        for event in events {
            match event {
                Event::Start(calls) => {
                    for _ in 0..calls {
                        budget.on_start();
                        starts.push(now);
                    }
                    let _ = budget.balance(now);
                }
                Event::Ask => {
                    let most = rule(within(&starts, now, secs(1)), within(&spent, now, secs(1)));
                    let least = rule(within(&starts, now, millis(890)), within(&spent, now, millis(1_010)));
                    let granted = withdraw(&budget, now);
                    prop_assert!(!granted || most > 0, "one too many");
                    prop_assert!(granted || least == 0, "one too few");
                    if granted {
                        spent.push(now);
                    }
                }
                Event::Pass(hundredths) => {
                    now = now + millis(hundredths * 10);
                    let _ = budget.balance(now);
                }
            }
        }
    }
}
