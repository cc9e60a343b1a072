//! The two laws that grow from the last wait: one step as stated, and the whole walk against a numeric solution.

use std::time::Duration;

use relent_core::{Jitter, Ratio, Rng};

use super::backoff;
use crate::chi_square;
use crate::rig::{millis, secs};

const DRAWS: usize = 100_000;
const BASE: u64 = 100_000_000;
const CAP: u64 = 10_000_000_000;

fn step(jitter: Jitter, previous: u64, draws: usize, seed: u64) -> Vec<u64> {
    let backoff = backoff(millis(100), secs(10), Ratio::of(2, 1), jitter);
    let mut rng = Rng::seeded(seed);
    let previous = Duration::from_nanos(previous);
    (0..draws).map(|_| backoff.draw(2, previous, rng.next()).as_nanos() as u64).collect()
}

#[test]
fn the_first_step_grows_from_the_base() {
    for jitter in [Jitter::Decorrelated, Jitter::DecorrelatedBounded] {
        let backoff = backoff(millis(100), secs(10), Ratio::of(2, 1), jitter);
        assert_eq!(backoff.range(1, Duration::ZERO), (millis(100), millis(300)));
        let mut rng = Rng::seeded(21);
        let draws = (0..DRAWS).map(|_| backoff.draw(1, Duration::ZERO, rng.next()).as_nanos() as u64);
        assert_eq!(chi_square::uniform(draws, BASE, 3 * BASE), Ok(()), "{jitter:?}");
    }
}

#[test]
fn below_the_cap_a_step_is_uniform_up_to_three_times_the_last() {
    for jitter in [Jitter::Decorrelated, Jitter::DecorrelatedBounded] {
        let draws = step(jitter, 2_000_000_000, DRAWS, 22);
        assert_eq!(chi_square::uniform(draws.into_iter(), BASE, 6_000_000_000), Ok(()), "{jitter:?}");
    }
}

#[test]
fn a13_the_published_walk_heaps_at_the_cap_as_documented() {
    let last = 5_000_000_000;
    let draws = step(Jitter::Decorrelated, last, DRAWS, 23);
    let (at_cap, below): (Vec<u64>, Vec<u64>) = draws.into_iter().partition(|draw| *draw == CAP);
    // P(cap) = (3s − cap) / (3s − base).
    let heap = (3 * last - CAP) as f64 / (3 * last - BASE) as f64;
    let counts = [at_cap.len() as u64, below.len() as u64];
    assert_eq!(chi_square::fits(&counts, &[heap, 1.0 - heap]), Ok(()));
    assert_eq!(chi_square::uniform(below.into_iter(), BASE, CAP), Ok(()));
}

#[test]
fn a13_the_bounded_walk_has_no_heap() {
    let draws = step(Jitter::DecorrelatedBounded, 5_000_000_000, DRAWS, 24);
    assert!(draws.iter().filter(|draw| **draw == CAP).count() < 3);
    assert_eq!(chi_square::uniform(draws.into_iter(), BASE, CAP), Ok(()));
}

#[test]
fn a13_the_eighth_wait_is_distributed_as_the_walk_says() {
    for (jitter, seed) in [(Jitter::Decorrelated, 25), (Jitter::DecorrelatedBounded, 26)] {
        let backoff = backoff(millis(100), secs(10), Ratio::of(2, 1), jitter);
        let law = Law::after(jitter, 8);
        let mut rng = Rng::seeded(seed);
        let mut counts = vec![0; GRID + 1];
        for _ in 0..DRAWS {
            let mut wait = Duration::ZERO;
            for retry in 1..=8 {
                wait = backoff.draw(retry, wait, rng.next());
            }
            counts[cell(wait.as_nanos() as u64)] += 1;
        }
        let heap = counts[GRID] as f64 / DRAWS as f64;
        assert!((heap - law.0[GRID]).abs() < 0.005, "{jitter:?}: {heap} at the cap, not {}", law.0[GRID]);
        // Twenty cells at a time: the grid below is finer than what the draws can show.
        let coarse = |n: usize| n.min(GRID - 1) / 20 + usize::from(n == GRID);
        let (mut seen, mut expected) = (vec![0; GRID / 20 + 1], vec![0.0; GRID / 20 + 1]);
        for n in 0..=GRID {
            seen[coarse(n)] += counts[n];
            expected[coarse(n)] += law.0[n];
        }
        assert_eq!(chi_square::fits(&seen, &expected), Ok(()), "{jitter:?}");
    }
}

const GRID: usize = 600;

/// Probabilities of `GRID` equal cells between base and cap, and of the cap itself.
struct Law(Vec<f64>);

impl Law {
    /// The walk's law after so many steps, by summing over the cells' centres.
    fn after(jitter: Jitter, steps: u32) -> Law {
        let (base, cap) = (BASE as f64, CAP as f64);
        let width = (cap - base) / GRID as f64;
        // The first step by its own law, so that the start is no point mass on the grid.
        let mut law = Law(vec![0.0; GRID + 1]);
        law.spread(1.0, base, jitter, width);
        for _ in 1..steps {
            let mut next = Law(vec![0.0; GRID + 1]);
            for (n, p) in law.0.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                if n == GRID {
                    next.spread(*p, cap, jitter, width);
                } else {
                    // Thirds of a cell, against the grid's own rounding.
                    for third in [1.0, 3.0, 5.0] {
                        next.spread(p / 3.0, base + (n as f64 + third / 6.0) * width, jitter, width);
                    }
                }
            }
            law = next;
        }
        law
    }

    /// Adds p × the law of one step from `previous`.
    fn spread(&mut self, p: f64, previous: f64, jitter: Jitter, width: f64) {
        let (base, cap) = (BASE as f64, CAP as f64);
        let mut high = 3.0 * previous;
        if jitter == Jitter::DecorrelatedBounded {
            high = high.min(cap);
        }
        let density = p / (high - base);
        for n in 0..GRID {
            let (from, to) = (base + n as f64 * width, base + (n + 1) as f64 * width);
            if from >= high {
                break;
            }
            self.0[n] += density * (to.min(high) - from);
        }
        if high > cap {
            self.0[GRID] += density * (high - cap);
        }
    }
}

fn cell(wait: u64) -> usize {
    assert!((BASE..=CAP).contains(&wait), "{wait}");
    if wait == CAP {
        GRID
    } else {
        (u128::from(wait - BASE) * GRID as u128 / u128::from(CAP - BASE)) as usize
    }
}
