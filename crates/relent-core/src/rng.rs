//! A small seeded generator and the one way the engine turns random bits into a number in a range.

/// Where the engine's random bits come from: lent by the driver, never global.
pub trait Random {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;
}

impl<F: Fn() -> u64> Random for F {
    fn next_u64(&self) -> u64 {
        self()
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): eight bytes of state, every seed a full-period sequence.
///
/// Good for spreading retries; not for secrets.
///
/// ```
/// use relent_core::Rng;
///
/// assert_eq!(Rng::seeded(7).next(), Rng::seeded(7).next());
/// assert_ne!(Rng::seeded(7).next(), Rng::seeded(8).next());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// A generator that yields the same sequence for the same seed on every platform.
    #[must_use]
    pub const fn seeded(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The seed that goes on where this generator stands.
    #[must_use]
    pub const fn into_seed(self) -> u64 {
        self.0
    }

    /// The next 64 random bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// A number in `low..=high` from 64 random bits: the upper half of a 128-bit product. Each value's probability is
/// right to one part in 2^64 of the range, which no number of draws can show.
#[inline]
pub(crate) const fn uniform(low: u64, high: u64, bits: u64) -> u64 {
    debug_assert!(low <= high);
    // A range of all 2^64 values would lose its last one; no wait is that long.
    let span = (high - low).saturating_add(1);
    low + ((bits as u128 * span as u128) >> 64) as u64
}
