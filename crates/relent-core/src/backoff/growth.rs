//! What the curve grows by.

use core::time::Duration;

use super::curve;
use crate::Ratio;
use crate::time::nanos;

/// How the wait grows from one retry to the next, before [`Jitter`](super::Jitter): the curve e(k) for retry k = 1, 2, ….
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Growth {
    /// min(cap, base × multiplier^(k−1)): the default.
    #[default]
    Exponential,
    /// min(cap, base × k): for a target that frees itself little by little.
    Linear,
    /// min(cap, base × F(k)) with F = 1, 1, 2, 3, 5, 8, …: once more at the first wait, and then by about 1.6 each.
    Fibonacci,
    /// The waits one by one, the last of them for all further retries; never over the cap.
    Steps(Steps),
}

impl Growth {
    /// The name in files and reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Growth::Exponential => "exponential",
            Growth::Linear => "linear",
            Growth::Fibonacci => "fibonacci",
            Growth::Steps(_) => "steps",
        }
    }

    /// e(k), where it is not the exponential law that is inlined.
    #[inline(never)]
    pub(super) fn at(&self, base: u64, cap: u64, multiplier: Ratio, retry: u32) -> u64 {
        match self {
            Growth::Exponential => curve::at(base, cap, multiplier, retry - 1),
            Growth::Linear => base.saturating_mul(u64::from(retry)).min(cap),
            Growth::Fibonacci => base.saturating_mul(fibonacci(retry)).min(cap),
            Growth::Steps(steps) => steps.at(retry).min(cap),
        }
    }
}

/// Waits one by one: from 1 to [`Steps::MOST`].
///
/// ```
/// use core::time::Duration;
/// use relent_core::Steps;
///
/// let steps = Steps::new(&[Duration::from_secs(1), Duration::from_secs(5)]);
/// assert_eq!((steps.len(), steps.get(2), steps.get(9)), (2, Duration::from_secs(5), Duration::from_secs(5)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How many were given, which may be more than there is room for: a policy with such a list is refused.
    given: usize,
    waits: [u64; Steps::MOST],
}

impl Steps {
    /// As many as a list may have.
    pub const MOST: usize = 16;

    /// These waits. A list that is empty or too long makes no policy.
    #[must_use]
    pub fn new(waits: &[Duration]) -> Steps {
        let mut steps = Steps { given: waits.len(), waits: [0; Steps::MOST] };
        for (room, wait) in steps.waits.iter_mut().zip(waits) {
            *room = nanos(*wait);
        }
        steps
    }

    /// How many there are.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "a policy's list is never empty")]
    pub const fn len(&self) -> usize {
        self.given
    }

    /// The wait before retry `retry` (1 is the first); the last one for all beyond the list.
    #[must_use]
    pub fn get(&self, retry: u32) -> Duration {
        Duration::from_nanos(self.at(retry))
    }

    /// The waits in order.
    pub fn iter(&self) -> impl Iterator<Item = Duration> {
        self.listed().iter().map(|wait| Duration::from_nanos(*wait))
    }

    pub(crate) const fn fits(&self) -> bool {
        1 <= self.given && self.given <= Steps::MOST
    }

    /// The longest of them.
    pub(crate) fn longest(&self) -> u64 {
        self.listed().iter().copied().max().unwrap_or(0)
    }

    fn listed(&self) -> &[u64] {
        &self.waits[..self.given.min(Steps::MOST)]
    }

    fn at(&self, retry: u32) -> u64 {
        let place = usize::try_from(retry.saturating_sub(1)).unwrap_or(usize::MAX);
        let last = self.given.clamp(1, Steps::MOST) - 1;
        self.waits[place.min(last)]
    }
}

/// F(k), saturating: the 94th is the first that 64 bits can't hold.
const fn fibonacci(k: u32) -> u64 {
    if k > 93 {
        return u64::MAX;
    }
    let (mut this, mut next, mut n) = (1_u64, 1_u64, 1);
    while n < k {
        (this, next) = (next, this.saturating_add(next));
        n += 1;
    }
    this
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fibonacci_s_numbers_are_exact_as_far_as_they_fit() {
        let first: [u64; 10] = core::array::from_fn(|k| fibonacci(k as u32 + 1));
        assert_eq!(first, [1, 1, 2, 3, 5, 8, 13, 21, 34, 55]);
        assert_eq!(fibonacci(93), 12_200_160_415_121_876_738);
        assert_eq!((fibonacci(94), fibonacci(u32::MAX)), (u64::MAX, u64::MAX));
    }
}
