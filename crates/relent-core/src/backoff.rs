//! How long to wait before the next attempt: a curve by retry number, and the randomness laid over it.
//!
//! The cap is a hard ceiling for every jitter, and the spread does not die at it. Everything is integer arithmetic on
//! nanoseconds, saturating, and costs the same for retry 1 and retry `u32::MAX`.

mod curve;
mod growth;
mod jitter;

pub use growth::{Growth, Steps};
pub use jitter::Jitter;

use core::time::Duration;

use crate::Ratio;
use crate::rng::uniform;
use crate::time::nanos;

/// Base, cap, growth, multiplier, jitter and floor: the wait before each retry, hints and holds aside.
///
/// [`Growth`] says what the curve e(k) is for retry k = 1, 2, … (by default min(cap, base × multiplier^(k−1))), and [`Jitter`]
/// what is drawn from it.
///
/// ```
/// use core::time::Duration;
/// use relent_core::Backoff;
///
/// let backoff = Backoff::exponential(Duration::from_millis(100), Duration::from_secs(10));
/// let (low, high) = backoff.range(3, Duration::ZERO);
/// assert_eq!((low, high), (Duration::ZERO, Duration::from_millis(400)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Lengths in nanoseconds, so that a draw need not convert.
    pub(crate) base: u64,
    pub(crate) cap: u64,
    pub(crate) floor: u64,
    pub(crate) growth: Growth,
    pub(crate) multiplier: Ratio,
    pub(crate) jitter: Jitter,
}

impl Backoff {
    /// From `base`, doubling, never over `cap`, with full jitter.
    #[must_use]
    pub const fn exponential(base: Duration, cap: Duration) -> Backoff {
        let multiplier = crate::defaults::MULTIPLIER;
        let growth = Growth::Exponential;
        Backoff { base: nanos(base), cap: nanos(cap), floor: 0, growth, multiplier, jitter: Jitter::Full }
    }

    /// The first wait, before jitter.
    #[must_use]
    pub const fn base(&self) -> Duration {
        Duration::from_nanos(self.base)
    }

    /// The hard ceiling of every wait.
    #[must_use]
    pub const fn cap(&self) -> Duration {
        Duration::from_nanos(self.cap)
    }

    /// How the wait grows from one retry to the next.
    #[must_use]
    pub const fn growth(&self) -> &Growth {
        &self.growth
    }

    /// What the wait grows by from one retry to the next, where it grows exponentially.
    #[must_use]
    pub const fn multiplier(&self) -> Ratio {
        self.multiplier
    }

    /// The randomness laid over the curve.
    #[must_use]
    pub const fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// The least wait, whatever the jitter draws.
    #[must_use]
    pub const fn floor(&self) -> Duration {
        Duration::from_nanos(self.floor)
    }

    /// e(k): the wait before retry `retry` (1 is the first) without jitter. Retry 0 waits for nothing.
    #[must_use]
    pub fn unjittered(&self, retry: u32) -> Duration {
        if retry == 0 {
            return Duration::ZERO;
        }
        Duration::from_nanos(self.curve(retry))
    }

    /// Whether e(k) is the same for `retry` and every retry after it.
    #[must_use]
    pub fn is_steady_from(&self, retry: u32) -> bool {
        let flat = match &self.growth {
            Growth::Exponential => self.multiplier <= Ratio::ONE,
            Growth::Steps(steps) => usize::try_from(retry).is_ok_and(|retry| retry >= steps.len()),
            _ => false,
        };
        let capped = !matches!(self.growth, Growth::Steps(_)) && self.curve(retry.max(1)) == self.cap;
        flat || capped || (self.base == 0 && !matches!(self.growth, Growth::Steps(_)))
    }

    /// The wait before retry `retry`, drawn with the random `bits`; `previous` is the wait before the last retry, which
    /// decorrelated jitter grows from.
    #[must_use]
    #[inline]
    pub fn draw(&self, retry: u32, previous: Duration, bits: u64) -> Duration {
        Duration::from_nanos(self.draw_nanos(retry, nanos(previous), bits))
    }

    /// The least and the greatest wait that [`draw`](Backoff::draw) can answer.
    #[must_use]
    pub fn range(&self, retry: u32, previous: Duration) -> (Duration, Duration) {
        let (low, high) = self.bounds(retry, nanos(previous));
        (Duration::from_nanos(low), Duration::from_nanos(high.min(self.cap)))
    }

    #[inline]
    pub(crate) fn draw_nanos(&self, retry: u32, previous: u64, bits: u64) -> u64 {
        let (low, high) = self.bounds(retry, previous);
        uniform(low, high, bits).min(self.cap)
    }

    /// What is drawn uniformly. Only `Decorrelated` may name a bound over the cap; its draw is cut back to it.
    #[inline]
    fn bounds(&self, retry: u32, previous: u64) -> (u64, u64) {
        if retry == 0 {
            return (0, 0);
        }
        let (low, high) = match self.jitter {
            Jitter::Full => (0, self.curve(retry)),
            _ => self.bounds_of_the_rarer(retry, previous),
        };
        (low.max(self.floor), high.max(self.floor))
    }

    #[inline(never)]
    fn bounds_of_the_rarer(&self, retry: u32, previous: u64) -> (u64, u64) {
        match self.jitter {
            Jitter::Decorrelated | Jitter::DecorrelatedBounded => {
                let last = if retry == 1 { self.base } else { previous.max(self.base) };
                self.jitter.walk(self.base, self.cap, last)
            }
            _ => self.jitter.bounds(self.curve(retry), self.cap),
        }
    }

    #[inline]
    fn curve(&self, retry: u32) -> u64 {
        match self.growth {
            Growth::Exponential => curve::at(self.base, self.cap, self.multiplier, retry - 1),
            _ => self.growth.at(self.base, self.cap, self.multiplier, retry),
        }
    }
}
