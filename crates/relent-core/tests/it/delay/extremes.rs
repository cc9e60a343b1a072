//! Attempt numbers, bases and caps at which others overflowed, went negative, or stopped jittering.

use std::collections::HashSet;
use std::time::Duration;

use relent_core::{Backoff, Jitter, Policy, Ratio, Rng};

use super::{EXTREMES, EXTREMES_OF_FLOATS, backoff, every_jitter};
use crate::rig::{millis, secs};

const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

fn extremes() -> impl Iterator<Item = u32> {
    EXTREMES.into_iter().chain(EXTREMES_OF_FLOATS)
}

#[test]
fn a1_no_attempt_number_passes_the_cap() {
    let (base, cap) = (secs(2), secs(300));
    let backoff = backoff(base, cap, Ratio::of(2, 1), Jitter::Full);
    let mut rng = Rng::seeded(1);
    for retry in 0..10_000 {
        assert!(backoff.unjittered(retry) <= cap, "retry {retry}");
        assert!(backoff.draw(retry, Duration::ZERO, rng.next()) <= cap, "retry {retry}");
    }
    assert_eq!(backoff.unjittered(10_000), cap);
}

#[test]
fn a2_every_jitter_stays_in_its_range_at_every_extreme() {
    let multipliers =
        [Ratio::ONE, Ratio::from_parts_per_million(1_000_001), Ratio::of(2, 1), Ratio::of(4294, 1)];
    for jitter in every_jitter() {
        for m in multipliers {
            for (base, cap) in [(millis(100), secs(10)), (Duration::from_nanos(1), YEAR), (YEAR, YEAR)] {
                let backoff = backoff(base, cap, m, jitter);
                for retry in extremes() {
                    for previous in [Duration::ZERO, base, cap, Duration::MAX] {
                        let (low, high) = backoff.range(retry, previous);
                        assert!(low <= high && high <= cap, "{jitter:?}, {base:?} × {m}, retry {retry}");
                        for bits in [0, 1, u64::MAX / 2, u64::MAX] {
                            let wait = backoff.draw(retry, previous, bits);
                            assert!(wait >= low && wait <= high, "{jitter:?}, retry {retry}: {wait:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a3_a4_without_a_cap_the_wait_saturates() {
    let longest = Duration::from_nanos(u64::MAX);
    let uncapped = Backoff::exponential(secs(1), Duration::MAX);
    for retry in (1..1_000).chain(extremes()) {
        assert!(uncapped.unjittered(retry) <= longest);
        assert!(uncapped.draw(retry, Duration::MAX, u64::MAX) <= longest);
    }
    assert_eq!(uncapped.unjittered(1_000), longest);
}

#[test]
fn a5_the_unjittered_wait_never_falls() {
    let multipliers = [
        Ratio::ONE,
        Ratio::from_parts_per_million(1_000_001),
        Ratio::of(3, 2),
        Ratio::of(2, 1),
        Ratio::of(7, 3),
    ];
    for m in multipliers {
        for (base, cap) in
            [(secs(1), YEAR), (Duration::from_nanos(1), YEAR), (Duration::from_nanos(3), secs(10))]
        {
            let backoff = backoff(base, cap, m, Jitter::None);
            let mut last = Duration::ZERO;
            for retry in (1..2_000).chain([1_000_000, 20_000_000, 40_000_000, u32::MAX - 1, u32::MAX]) {
                let wait = backoff.unjittered(retry);
                assert!(wait >= last, "{base:?} × {m}: {last:?}, then {wait:?} at retry {retry}");
                last = wait;
            }
        }
    }
}

/// Nothing is timed here: a cost that grew with the attempt number would make this 10^14 steps, and never end.
#[test]
fn a7_the_last_attempt_number_costs_what_the_first_does() {
    for m in [Ratio::ONE, Ratio::from_parts_per_million(1_000_001), Ratio::of(2, 1), Ratio::of(3, 2)] {
        let backoff = backoff(millis(100), secs(10), m, Jitter::Full);
        for step in 0..20_000 {
            assert!(backoff.unjittered(u32::MAX - step) <= secs(10));
        }
    }
}

#[test]
fn a8_a_base_of_zero_stays_zero() {
    for jitter in every_jitter() {
        for m in [Ratio::ONE, Ratio::of(3, 2), Ratio::of(2, 1)] {
            let backoff = backoff(Duration::ZERO, secs(10), m, jitter);
            for retry in extremes() {
                assert_eq!(
                    backoff.draw(retry, Duration::ZERO, u64::MAX),
                    Duration::ZERO,
                    "{jitter:?}, {retry}"
                );
            }
        }
    }
}

#[test]
fn a10_the_cap_is_a_ceiling_for_every_jitter() {
    let mut rng = Rng::seeded(10);
    for jitter in every_jitter() {
        let backoff = backoff(millis(100), secs(10), Ratio::of(2, 1), jitter);
        let mut previous = secs(10);
        for _ in 0..100_000 {
            previous = backoff.draw(30, previous, rng.next());
            assert!(previous <= secs(10), "{jitter:?}: {previous:?}");
        }
    }
}

#[test]
fn a11_the_spread_does_not_die_at_the_cap() {
    // Standard deviation by the law, as a share of the cap; a uniform range has width / √12.
    let by_law = [
        (Jitter::Full, 0.2887),
        (Jitter::Equal, 0.1443),
        (Jitter::Proportional(Ratio::ONE), 0.2887),
        (Jitter::Proportional(Ratio::percent(50)), 0.1925),
        (Jitter::Additive(Ratio::ONE), 0.1443),
        (Jitter::Decorrelated, 0.2),
        (Jitter::DecorrelatedBounded, 0.2),
    ];
    let mut rng = Rng::seeded(12);
    for (jitter, least) in by_law {
        let backoff = backoff(millis(100), secs(10), Ratio::of(2, 1), jitter);
        let mut previous = Duration::ZERO;
        let mut waits = Vec::new();
        for _ in 0..20_000 {
            previous = backoff.draw(30, previous, rng.next());
            waits.push(previous.as_secs_f64());
        }
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let variance = waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / waits.len() as f64;
        let share = variance.sqrt() / 10.0;
        assert!(share > least * 0.97, "{jitter:?}: {share}");
        let distinct: HashSet<u64> = waits.iter().map(|wait| wait.to_bits()).collect();
        assert!(distinct.len() > 10_000, "{jitter:?}: {} distinct waits", distinct.len());
    }
}

#[test]
fn a14_jitter_as_large_as_the_wait_is_never_negative() {
    let backoff = backoff(millis(100), secs(10), Ratio::ONE, Jitter::Proportional(Ratio::ONE));
    let mut rng = Rng::seeded(14);
    assert_eq!(backoff.range(1, Duration::ZERO), (Duration::ZERO, millis(200)));
    for _ in 0..10_000 {
        assert!(backoff.draw(1, Duration::ZERO, rng.next()) <= millis(200));
    }
}

#[test]
fn b6_b7_b8_no_jitter_is_added_after_the_cap() {
    // What three peers ship: a base at the cap, and then up to twice, or half as much again.
    let jitters = [
        Jitter::Additive(Ratio::ONE),
        Jitter::Proportional(Ratio::percent(50)),
        Jitter::Additive(Ratio::percent(50)),
    ];
    for jitter in jitters {
        let backoff = backoff(secs(1), secs(1), Ratio::of(2, 1), jitter);
        for retry in extremes().filter(|retry| *retry > 0) {
            let (low, high) = backoff.range(retry, secs(1));
            assert!(low < high, "{jitter:?}: nothing is left to draw from");
            assert_eq!(backoff.draw(retry, secs(1), u64::MAX), high);
            assert!(high <= secs(1) && high > millis(999), "{jitter:?}, retry {retry}: {high:?}");
        }
    }
}

#[test]
fn b3_a_generator_that_yields_nothing_but_zeros_or_ones_is_legal() {
    let policy = Policy::default();
    assert_eq!(policy.backoff().draw(1, Duration::ZERO, 0), Duration::ZERO);
    assert_eq!(policy.backoff().draw(1, Duration::ZERO, u64::MAX), policy.backoff().base());
}

#[test]
fn retry_zero_waits_for_nothing() {
    for jitter in every_jitter() {
        let backoff = backoff(millis(100), secs(10), Ratio::of(2, 1), jitter);
        assert_eq!(backoff.unjittered(0), Duration::ZERO);
        assert_eq!(backoff.draw(0, secs(5), u64::MAX), Duration::ZERO, "{jitter:?}");
    }
}

#[test]
fn b15_full_jitter_survives_every_cap_and_every_attempt_number() {
    // 2^n as a float is beyond 63 bits from n = 63 on, and a ceiling of zero is none to some.
    for cap in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(u64::MAX)] {
        for base in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(u64::MAX)] {
            let backoff = Backoff::exponential(base, cap);
            for retry in [1, 2, 62, 63, 64, 65, 1_000, u32::MAX] {
                for bits in [0, 1, u64::MAX / 2, u64::MAX] {
                    assert!(backoff.draw(retry, Duration::ZERO, bits) <= cap);
                }
            }
        }
    }
}
