//! The share at every ratio and rate: exact at every grant, and really there.

use std::time::Duration;

use relent_core::{Random, Ratio};

use super::books::{Books, config};
use crate::rig::{Bits, secs};

/// 0.05, 0.1, … 1.0.
fn ratios() -> impl Iterator<Item = Ratio> {
    (1..=20).map(|n| Ratio::percent(5 * n))
}

/// Calls per 100 seconds, and how many to make.
const RATES: [(u64, u32); 4] = [(1, 400), (100, 1_500), (10_000, 4_000), (1_000_000, 24_000)];

/// Arrivals of a Poisson process.
fn gap(bits: &Bits, per_100s: u64) -> Duration {
    let uniform = (bits.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    Duration::from_secs_f64((-(1.0 - uniform).ln() * 100.0 / per_100s as f64).max(1e-9))
}

/// Whether the driver knows the time when a call succeeds.
#[derive(Clone, Copy, PartialEq)]
enum Driver {
    Clocked,
    Unclocked,
}

/// So many calls, of which some fail; each failure asks for a retry, which fails as often.
fn traffic(books: &mut Books, bits: &Bits, (per_100s, calls): (u64, u32), errors: f64, driver: Driver) {
    for _ in 0..calls {
        books.pass(gap(bits, per_100s));
        let mut attempts = 1;
        let succeeded = loop {
            if !bits.chance(errors) {
                break true;
            }
            if attempts == 3 || !books.retry() {
                break false;
            }
            attempts += 1;
        };
        match (succeeded, driver) {
            (true, Driver::Clocked) => books.success(),
            (true, Driver::Unclocked) => books.success_unclocked(),
            (false, _) => {}
        }
    }
}

#[test]
fn exact_at_every_grant_for_every_ratio_and_rate() {
    for ratio in ratios() {
        for rate in RATES {
            for reserve in [0, 3] {
                let mut books = Books::of(config(ratio, secs(10), reserve));
                traffic(&mut books, &Bits::seeded(1), rate, 0.5, Driver::Clocked);
            }
        }
    }
}

#[test]
fn exact_without_a_clock_where_failures_are_frequent() {
    for ratio in ratios() {
        for rate in [(10_000, 4_000), (1_000_000, 24_000)] {
            let mut books = Books::of(config(ratio, secs(10), 0));
            traffic(&mut books, &Bits::seeded(2), rate, 0.5, Driver::Unclocked);
        }
    }
}

#[test]
fn exact_after_idle_spells() {
    for ratio in [Ratio::percent(5), Ratio::percent(30), Ratio::ONE] {
        for rate in RATES {
            let mut books = Books::of(config(ratio, secs(10), 0));
            let bits = Bits::seeded(3);
            for idle in [1, 5, 9, 10, 11, 60, 3_600, 86_400 * 30] {
                traffic(&mut books, &bits, (rate.0, rate.1 / 20), 0.05, Driver::Clocked);
                books.pass(secs(idle));
                books.drain();
                traffic(&mut books, &bits, (rate.0, rate.1 / 20), 0.5, Driver::Clocked);
                books.drain();
            }
        }
    }
}

#[test]
fn in_dense_traffic_the_share_is_really_there() {
    for ratio in ratios() {
        for (per_100s, calls) in [(10_000, 6_000), (1_000_000, 24_000)] {
            let window = if per_100s == 10_000 { secs(10) } else { secs(1) };
            for driver in [Driver::Clocked, Driver::Unclocked] {
                let mut books = Books::of(config(ratio, window, 0));
                let bits = Bits::seeded(4);
                let mut granted = 0;
                for call in 0..calls {
                    books.pass(gap(&bits, per_100s));
                    match driver {
                        Driver::Clocked => books.success(),
                        Driver::Unclocked => books.success_unclocked(),
                    }
                    if call % 8 == 0 {
                        granted += books.drain();
                    }
                }
                let earned = f64::from(calls) * f64::from(ratio.parts_per_million()) / 1e6;
                let share = granted as f64 / earned;
                assert!(
                    share > 0.97,
                    "ratio {ratio}, {per_100s} calls in 100 s: {share:.3} of it was granted"
                );
            }
        }
    }
}

#[test]
fn after_a_calm_without_any_turn_the_share_is_there() {
    // Nobody reads a clock and nothing fails for ten windows: the deposits are taken to have come evenly.
    for ratio in [Ratio::percent(10), Ratio::percent(50), Ratio::ONE] {
        let mut books = Books::of(config(ratio, secs(10), 0));
        for _ in 0..10_000 {
            books.pass(Duration::from_millis(10));
            books.success_unclocked();
        }
        let (granted, share) = (books.drain(), books.share());
        assert!(granted as f64 > 0.97 * share as f64, "{granted} of {share}");
    }
}

#[test]
fn after_an_idle_spell_the_share_builds_up_as_before() {
    for idle in [11, 600, 86_400] {
        let mut books = Books::of(config(Ratio::percent(20), secs(10), 0));
        let bits = Bits::seeded(5);
        for _ in 0..2 {
            traffic(&mut books, &bits, (10_000, 2_000), 0.0, Driver::Clocked);
            let (granted, share) = (books.drain(), books.share());
            assert!(granted as f64 > 0.97 * share as f64, "{granted} of {share}");
            books.pass(secs(idle));
            assert_eq!(books.drain(), 0, "nothing is left of it after {idle} s");
        }
    }
}
