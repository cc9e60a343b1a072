//! How long attempts take: a histogram over about a minute, for hedges at a measured quantile.

use alloc::boxed::Box;
use core::time::Duration;

use crate::ratio::MILLION;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::time::nanos;
use crate::{Instant, Ratio};

/// Buckets per doubling: a bucket is at most an eighth wide, so a quantile is at most 12.5 % too long.
const PER_OCTAVE: usize = 8;
/// The first bucket ends here: 2^13 ns, about 8 µs.
const SMALLEST: u32 = 13;
/// From there to 2^43 ns, about two hours and a half.
const OCTAVES: usize = 30;
const BUCKETS: usize = OCTAVES * PER_OCTAVE + 1;

/// How long one of the two halves is filled.
const HALF: Duration = Duration::from_secs(30);
/// So many measured before a quantile says anything.
const FEWEST: u64 = 20;

/// The times of a handle's attempts over the last half to full minute. Two kilobytes; a measurement is one relaxed add.
pub struct Latencies {
    halves: Box<[[AtomicU32; BUCKETS]; 2]>,
    /// When the halves last changed places, doubled, and which of them is filled now in the lowest bit.
    turned: AtomicU64,
}

impl Latencies {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(now: Instant) -> Latencies {
        let half = || core::array::from_fn(|_| AtomicU32::new(0));
        Latencies { halves: Box::new([half(), half()]), turned: AtomicU64::new(packed(now, 0)) }
    }

    /// An attempt took so long (or at least so long, if it was dropped as a hedge's loser).
    pub fn record(&self, took: Duration, now: Instant) {
        let half = self.turn(now);
        self.halves[half][bucket(nanos(took))].fetch_add(1, Ordering::Relaxed);
    }

    /// The time in which this share of attempts ended; `None` while too few are known.
    #[must_use]
    pub fn quantile(&self, quantile: Ratio, now: Instant) -> Option<Duration> {
        self.turn(now);
        let count = |bucket: usize| -> u64 {
            self.halves.iter().map(|half| u64::from(half[bucket].load(Ordering::Relaxed))).sum()
        };
        let all: u64 = (0..BUCKETS).map(count).sum();
        if all < FEWEST {
            return None;
        }
        let rank = (u128::from(all) * u128::from(quantile.parts_per_million())).div_ceil(u128::from(MILLION));
        let mut sooner = 0;
        let found = (0..BUCKETS).find(|bucket| {
            sooner += u128::from(count(*bucket));
            sooner >= rank
        });
        Some(Duration::from_nanos(upper_end(found.unwrap_or(BUCKETS - 1))))
    }

    /// Lets the halves change places where that is due, and answers which one is filled.
    fn turn(&self, now: Instant) -> usize {
        let before = self.turned.load(Ordering::Relaxed);
        let (since, half) = (Instant::from_nanos(before & !1), (before & 1) as usize);
        let age = now.since(since);
        if age < HALF {
            return half;
        }
        let turned = packed(now, 1 - half);
        if self.turned.compare_exchange(before, turned, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return 1 - half;
        }
        self.clear(1 - half);
        if age >= 2 * HALF {
            self.clear(half);
        }
        1 - half
    }

    fn clear(&self, half: usize) {
        for bucket in &self.halves[half] {
            bucket.store(0, Ordering::Relaxed);
        }
    }
}

impl core::fmt::Debug for Latencies {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Latencies")
    }
}

/// Nanoseconds without the lowest bit, and the half in its place.
fn packed(now: Instant, half: usize) -> u64 {
    (now.as_nanos() & !1) | half as u64
}

fn bucket(nanos: u64) -> usize {
    if nanos >> SMALLEST == 0 {
        return 0;
    }
    let octave = nanos.ilog2();
    let within = (nanos >> (octave - 3)) & 7;
    let number = (octave - SMALLEST) as usize * PER_OCTAVE + within as usize + 1;
    number.min(BUCKETS - 1)
}

/// The longest time that falls into a bucket.
fn upper_end(bucket: usize) -> u64 {
    if bucket == 0 {
        return 1 << SMALLEST;
    }
    let (octave, within) = ((bucket - 1) / PER_OCTAVE, (bucket - 1) % PER_OCTAVE);
    let octave = u32::try_from(octave).unwrap_or(0) + SMALLEST;
    (8 + within as u64 + 1) << (octave - 3)
}

#[cfg(all(test, not(relent_loom)))]
mod tests {
    use super::*;

    fn millis(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn every_time_falls_into_the_bucket_that_ends_at_or_after_it() {
        for nanos in (0..62).flat_map(|shift| [1_u64 << shift, (1_u64 << shift) + 1, (3_u64 << shift) / 2]) {
            let bucket = bucket(nanos);
            assert!(upper_end(bucket) >= nanos || bucket == BUCKETS - 1, "{nanos}");
            assert!(bucket == 0 || upper_end(bucket - 1) <= nanos || nanos >> SMALLEST == 0, "{nanos}");
        }
    }

    #[test]
    fn a_quantile_is_at_most_an_eighth_too_long() {
        let latencies = Latencies::new(at(0));
        for n in 1..=100 {
            latencies.record(millis(n), at(1));
        }
        for (quantile, exact) in [(50, 50), (90, 90), (95, 95), (99, 99)] {
            let got = latencies.quantile(Ratio::percent(quantile), at(1)).expect("a hundred are enough");
            assert!(got >= millis(exact) && got <= millis(exact) * 9 / 8, "{quantile}: {got:?}");
        }
    }

    #[test]
    fn too_few_say_nothing() {
        let latencies = Latencies::new(at(0));
        for _ in 0..19 {
            latencies.record(millis(5), at(1));
        }
        assert_eq!(latencies.quantile(Ratio::percent(95), at(1)), None);
        latencies.record(millis(5), at(1));
        assert!(latencies.quantile(Ratio::percent(95), at(1)).is_some());
    }

    #[test]
    fn what_is_older_than_a_minute_is_forgotten() {
        let latencies = Latencies::new(at(0));
        for _ in 0..50 {
            latencies.record(millis(500), at(1));
        }
        for _ in 0..50 {
            latencies.record(millis(5), at(31));
        }
        let slow = latencies.quantile(Ratio::percent(95), at(59)).expect("both halves count");
        assert!(slow >= millis(500));
        for _ in 0..50 {
            latencies.record(millis(5), at(62));
        }
        assert!(latencies.quantile(Ratio::percent(95), at(62)).expect("enough") < millis(10));
        assert_eq!(latencies.quantile(Ratio::percent(95), at(200)), None);
    }
}
