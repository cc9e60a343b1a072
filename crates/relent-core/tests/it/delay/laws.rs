//! Every jitter that has no memory, over multipliers, bases and caps: the law that its documentation states, computed
//! here a second time.

use std::time::Duration;

use relent_core::{Jitter, Ratio, Rng};

use super::{backoff, every_jitter};
use crate::chi_square;
use crate::rig::{millis, secs};

const DRAWS: usize = 100_000;

/// min(cap, base × multiplier^(k−1)) step by step, in 2^-32 of a nanosecond.
fn curve(base: Duration, cap: Duration, multiplier: Ratio, retry: u32) -> u64 {
    let cap = cap.as_nanos() << 32;
    let mut e = (base.as_nanos() << 32).min(cap);
    for _ in 1..retry {
        let millionths = u128::from(multiplier.parts_per_million());
        e = e / 1_000_000 * millionths + e % 1_000_000 * millionths / 1_000_000;
        if e >= cap {
            e = cap;
            break;
        }
    }
    ((e + (1 << 31)) >> 32) as u64
}

/// The bounds between which the draw before retry `retry` is uniform.
fn law(jitter: Jitter, e: u64, cap: u64) -> (u64, u64) {
    let centre = |x: Ratio| {
        let x = u128::from(x.parts_per_million());
        let c = u128::from(e).min(u128::from(cap) * 1_000_000 / (1_000_000 + x));
        (c as u64, (c * x / 1_000_000) as u64)
    };
    match jitter {
        Jitter::None => (e, e),
        Jitter::Full => (0, e),
        Jitter::Equal => (e / 2, e),
        Jitter::Proportional(x) => {
            let (c, spread) = centre(x);
            (c - spread, c + spread)
        }
        Jitter::Additive(x) => {
            let (c, spread) = centre(x);
            (c, c + spread)
        }
        other => panic!("{other:?} has a memory"),
    }
}

fn has_no_memory(jitter: &Jitter) -> bool {
    !matches!(jitter, Jitter::Decorrelated | Jitter::DecorrelatedBounded)
}

const BASES: [Duration; 4] =
    [Duration::from_nanos(700), millis(1), millis(100), Duration::from_nanos(3_000_000_007)];
const CAPS: [Duration; 3] = [millis(3_100), secs(10), secs(300)];

fn multipliers() -> [Ratio; 4] {
    [Ratio::ONE, Ratio::of(3, 2), Ratio::of(2, 1), Ratio::of(10, 1)]
}

#[test]
fn the_curve_is_base_times_a_power_up_to_the_cap() {
    for (base, cap, m) in combinations() {
        let backoff = backoff(base, cap, m, Jitter::None);
        for retry in 1..70 {
            let (expected, got) = (curve(base, cap, m, retry), backoff.unjittered(retry).as_nanos() as u64);
            assert!(got.abs_diff(expected) <= 1, "{base:?} × {m}^{} up to {cap:?}: {got}", retry - 1);
            if m.parts_per_million() % 1_000_000 == 0 {
                assert_eq!(got, expected, "whole multipliers are exact");
            }
        }
    }
}

#[test]
fn bounds_and_range_are_the_laws_for_every_combination() {
    let bits: Vec<u64> = (0..50).scan(Rng::seeded(3), |rng, _| Some(rng.next())).collect();
    for (base, cap, m) in combinations() {
        for jitter in every_jitter().into_iter().filter(has_no_memory) {
            let backoff = backoff(base, cap, m, jitter);
            for retry in [1, 2, 3, 5, 9, 30] {
                let e = backoff.unjittered(retry).as_nanos() as u64;
                let (low, high) = law(jitter, e, cap.as_nanos() as u64);
                let bounds = (Duration::from_nanos(low), Duration::from_nanos(high));
                let what = format!("{jitter:?}, {base:?} × {m}, cap {cap:?}, retry {retry}");
                assert_eq!(backoff.range(retry, Duration::ZERO), bounds, "{what}");
                assert!(bounds.1 <= cap, "{what}");
                assert_eq!(backoff.draw(retry, Duration::ZERO, 0), bounds.0, "{what}: the lowest bits");
                assert_eq!(backoff.draw(retry, Duration::ZERO, u64::MAX), bounds.1, "{what}: the highest");
                for bits in &bits {
                    let wait = backoff.draw(retry, Duration::ZERO, *bits);
                    assert!(wait >= bounds.0 && wait <= bounds.1, "{what}: {wait:?}");
                }
            }
        }
    }
}

#[test]
fn draws_follow_the_law() {
    let mut rng = Rng::seeded(11);
    for jitter in every_jitter().into_iter().filter(has_no_memory).filter(|j| *j != Jitter::None) {
        // Below the cap, at a cap that is not on the curve, and far beyond it.
        for (m, retry) in
            [(Ratio::of(2, 1), 1), (Ratio::of(3, 2), 4), (Ratio::of(2, 1), 7), (Ratio::of(10, 1), 30)]
        {
            let (base, cap) = (millis(100), millis(3_100));
            let backoff = backoff(base, cap, m, jitter);
            let (low, high) = law(jitter, curve(base, cap, m, retry), cap.as_nanos() as u64);
            let draws = (0..DRAWS).map(|_| backoff.draw(retry, Duration::ZERO, rng.next()).as_nanos() as u64);
            let what = format!("{jitter:?} × {m}, retry {retry}");
            assert_eq!(chi_square::uniform(draws, low, high), Ok(()), "{what}");
        }
    }
}

#[test]
fn p74_full_jitter_over_a_floor_is_uniform_above_it() {
    let (base, floor) = (millis(100), millis(60));
    let policy = relent_core::Policy::exponential(base, secs(10)).floor(floor).build().unwrap();
    let mut rng = Rng::seeded(5);
    for (retry, e) in [(1, millis(100)), (3, millis(400)), (40, secs(10))] {
        assert_eq!(policy.backoff().range(retry, Duration::ZERO), (floor, e));
        let draws =
            (0..DRAWS).map(|_| policy.backoff().draw(retry, Duration::ZERO, rng.next()).as_nanos() as u64);
        let (low, high) = (floor.as_nanos() as u64, e.as_nanos() as u64);
        assert_eq!(chi_square::uniform(draws, low, high), Ok(()), "retry {retry}");
    }
}

#[test]
fn p74_no_jitter_waits_less_than_the_floor() {
    let mut rng = Rng::seeded(6);
    for jitter in every_jitter() {
        let policy =
            relent_core::Policy::exponential(millis(100), secs(10)).jitter(jitter).floor(millis(100)).build();
        let policy = policy.unwrap();
        let mut previous = Duration::ZERO;
        for retry in 1..2_000 {
            previous = policy.backoff().draw(retry, previous, rng.next());
            assert!(
                previous >= millis(100) && previous <= secs(10),
                "{jitter:?}, retry {retry}: {previous:?}"
            );
        }
    }
}

#[test]
fn b2_jitter_is_finer_than_a_millisecond() {
    let mut rng = Rng::seeded(7);
    for base in [Duration::from_micros(1), millis(1), secs(1)] {
        let backoff = backoff(base, secs(30), Ratio::of(2, 1), Jitter::Full);
        let mut waits: Vec<Duration> =
            (0..200).map(|_| backoff.draw(1, Duration::ZERO, rng.next())).collect();
        assert!(
            waits.iter().any(|wait| wait.subsec_nanos() % 1_000 != 0),
            "{base:?}: whole microseconds only"
        );
        waits.sort();
        waits.dedup();
        assert!(waits.len() > 150, "{base:?}: {} waits of 200 differ", waits.len());
    }
}

#[test]
fn b9_the_base_is_the_first_wait() {
    let tenfold = backoff(millis(100), secs(1_000), Ratio::of(10, 1), Jitter::None);
    let waits: Vec<Duration> = (1..=5).map(|retry| tenfold.unjittered(retry)).collect();
    assert_eq!(waits, [millis(100), secs(1), secs(10), secs(100), secs(1_000)]);
}

#[test]
fn nine_default_attempts_wait_as_the_documentation_says() {
    let waits: Vec<u128> =
        (1..9).map(|retry| relent_core::Policy::default().backoff().unjittered(retry).as_millis()).collect();
    assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000]);
}

fn combinations() -> impl Iterator<Item = (Duration, Duration, Ratio)> {
    let with_cap = |base| CAPS.into_iter().map(move |cap| (base, cap)).chain([(base, base)]);
    let lengths = BASES.into_iter().flat_map(with_cap).filter(|(base, cap)| base <= cap);
    lengths.flat_map(|(base, cap)| multipliers().into_iter().map(move |m| (base, cap, m)))
}
