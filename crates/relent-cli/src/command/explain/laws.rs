//! What a wait can be, retry by retry: its range, its mean, and how probably it is the cap.
//!
//! The ranges are the engine's own. Every jitter but `decorrelated` draws uniformly between two bounds that follow from the
//! retry's number, so mean and probability are exact; the two decorrelated walks grow from the last wait and are followed
//! by their distribution (see [`Walk`]).

use std::time::Duration;

use relent_core::{Backoff, Jitter};

use super::walk::Walk;

/// The wait before one retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Wait {
    /// By the curve, before jitter.
    pub(super) unjittered: Duration,
    /// The least that can be drawn.
    pub(super) min: Duration,
    /// The greatest that can be drawn.
    pub(super) max: Duration,
    /// The mean, in nanoseconds.
    pub(super) mean: f64,
    /// How probably the draw is the cap.
    pub(super) at_cap: f64,
}

/// The waits of a policy, from the first retry on, without end.
#[derive(Debug)]
pub(super) struct Waits<'a> {
    backoff: &'a Backoff,
    retry: u32,
    last: Option<Wait>,
    walk: Option<Walk>,
}

impl<'a> Waits<'a> {
    pub(super) fn new(backoff: &'a Backoff) -> Waits<'a> {
        Waits { backoff, retry: 0, last: None, walk: Walk::of(backoff) }
    }

    /// Whether every further wait is like the last one.
    pub(super) fn is_steady(&self) -> bool {
        match &self.walk {
            Some(walk) => walk.is_steady(),
            None => self.last.is_some() && self.backoff.is_steady_from(self.retry),
        }
    }

    /// The least that follows the least, and the greatest that follows the greatest: only the walks depend on it.
    fn range(&self) -> (Duration, Duration) {
        let (min, max) = self.last.map_or_else(Default::default, |wait| (wait.min, wait.max));
        (self.backoff.range(self.retry, min).0, self.backoff.range(self.retry, max).1)
    }
}

impl Iterator for Waits<'_> {
    type Item = Wait;

    fn next(&mut self) -> Option<Wait> {
        self.retry = self.retry.saturating_add(1);
        let unjittered = self.backoff.unjittered(self.retry);
        let (min, max) = self.range();
        let (mean, at_cap) = match &mut self.walk {
            Some(walk) => {
                walk.step();
                (walk.mean(), walk.at_cap())
            }
            None => uniform(min, max, self.backoff.cap()),
        };
        let wait = Wait { unjittered, min, max, mean, at_cap };
        self.last = Some(wait);
        Some(wait)
    }
}

/// Mean and probability of the cap of a draw from the whole nanoseconds between two bounds.
fn uniform(min: Duration, max: Duration, cap: Duration) -> (f64, f64) {
    let (low, high) = (min.as_nanos() as f64, max.as_nanos() as f64);
    let at_cap = if max == cap { 1.0 / (high - low + 1.0) } else { 0.0 };
    (f64::midpoint(low, high), at_cap)
}

/// Whether the jitter leaves the curve aside.
pub(super) fn walks(jitter: Jitter) -> bool {
    matches!(jitter, Jitter::Decorrelated | Jitter::DecorrelatedBounded)
}

#[cfg(test)]
mod tests {
    use relent_core::{Policy, Ratio, Rng};

    use super::*;

    /// Mean and share at the cap of each of the first retries, drawn by the engine.
    fn sampled(backoff: &Backoff, retries: u32, walks: u32) -> Vec<(f64, f64)> {
        let mut rng = Rng::seeded(2);
        let mut sums = vec![(0.0, 0.0); retries as usize];
        for _ in 0..walks {
            let mut previous = Duration::ZERO;
            for (retry, sum) in (1..).zip(&mut sums) {
                previous = backoff.draw(retry, previous, rng.next());
                sum.0 += previous.as_nanos() as f64;
                sum.1 += f64::from(u8::from(previous == backoff.cap()));
            }
        }
        sums.into_iter().map(|(mean, at_cap)| (mean / f64::from(walks), at_cap / f64::from(walks))).collect()
    }

    #[test]
    fn the_laws_are_those_of_the_engine() {
        let x = Ratio::percent(20);
        let jitters = [
            Jitter::None,
            Jitter::Full,
            Jitter::Equal,
            Jitter::Decorrelated,
            Jitter::DecorrelatedBounded,
            Jitter::Proportional(x),
            Jitter::Additive(x),
        ];
        for jitter in jitters {
            let (base, cap) = (Duration::from_millis(100), Duration::from_secs(3));
            let floor = Duration::from_millis(40);
            let policy = Policy::exponential(base, cap).jitter(jitter).floor(floor).build().unwrap();
            let measured = sampled(policy.backoff(), 12, 40_000);
            for (retry, (wait, (mean, at_cap))) in (1..).zip(Waits::new(policy.backoff()).zip(measured)) {
                let off = (wait.mean - mean).abs() / mean;
                assert!(off < 0.012, "{jitter:?}, retry {retry}: mean {} drawn {mean}", wait.mean);
                let off = (wait.at_cap - at_cap).abs();
                assert!(off < 0.01, "{jitter:?}, retry {retry}: at the cap {} drawn {at_cap}", wait.at_cap);
                assert!(wait.min <= wait.max && wait.max <= cap, "{jitter:?}, retry {retry}: {wait:?}");
            }
        }
    }

    #[test]
    fn decorrelated_sits_at_the_cap_often_and_bounded_never() {
        let backoff = |jitter| Policy::builder().jitter(jitter).build().unwrap();
        let at_cap = |jitter| Waits::new(backoff(jitter).backoff()).nth(60).unwrap().at_cap;
        assert!(at_cap(Jitter::Decorrelated) > 0.3);
        assert!(at_cap(Jitter::DecorrelatedBounded) == 0.0);
    }
}
