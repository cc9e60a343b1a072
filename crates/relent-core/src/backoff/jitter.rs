//! The randomness laid over the curve.

use crate::Ratio;
use crate::ratio::MILLION;

/// How the wait before a retry is drawn from the curve e = min(cap, base × multiplier^(k−1)).
///
/// `Full` is the default: in the published comparison (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015)
/// it does the least work for nearly the shortest time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// e itself: every caller that failed at one moment returns at one moment.
    None,
    /// U\[0, e\], or U\[floor, e\] where a floor is set.
    Full,
    /// e/2 + U\[0, e/2\].
    Equal,
    /// min(cap, U\[base, 3 × the last wait\]): the published law. It sits at the cap often.
    Decorrelated,
    /// U\[base, min(cap, 3 × the last wait)\]: the same walk, without the heap at the cap.
    DecorrelatedBounded,
    /// c × U\[1−x, 1+x\] with c = min(e, cap / (1+x)): x both ways, the cap kept, the spread kept.
    Proportional(Ratio),
    /// c + U\[0, x × c\] with c = min(e, cap / (1+x)): x upwards only.
    Additive(Ratio),
}

impl Jitter {
    /// The least and the greatest draw around e, for every law that has no memory.
    pub(super) const fn bounds(self, e: u64, cap: u64) -> (u64, u64) {
        match self {
            Jitter::Full => (0, e),
            Jitter::Equal => (e / 2, e),
            Jitter::Proportional(x) => {
                let centre = centre(e, cap, x);
                let spread = x.of_nanos(centre);
                (centre.saturating_sub(spread), centre.saturating_add(spread))
            }
            Jitter::Additive(x) => {
                let centre = centre(e, cap, x);
                (centre, centre.saturating_add(x.of_nanos(centre)))
            }
            Jitter::None | Jitter::Decorrelated | Jitter::DecorrelatedBounded => (e, e),
        }
    }

    /// The least and the greatest draw of the laws that grow from the last wait.
    pub(super) fn walk(self, base: u64, cap: u64, previous: u64) -> (u64, u64) {
        let high = previous.saturating_mul(3);
        let high = if self == Jitter::DecorrelatedBounded { high.min(cap) } else { high };
        (base.min(high), high)
    }
}

/// min(e, cap / (1+x)), so that even the greatest draw stays under the cap.
const fn centre(e: u64, cap: u64, x: Ratio) -> u64 {
    let highest = cap as u128 * MILLION as u128 / (MILLION + x.parts_per_million() as u64) as u128;
    if (e as u128) < highest { e } else { highest as u64 }
}
