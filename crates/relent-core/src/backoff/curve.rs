//! base × multiplier^k, capped: exact for whole multipliers, and as cheap for k = `u32::MAX` as for k = 1.

use crate::Ratio;
use crate::ratio::MILLION;

/// min(cap, base × multiplier^k).
#[inline]
pub(super) fn at(base: u64, cap: u64, multiplier: Ratio, k: u32) -> u64 {
    if multiplier.parts_per_million() as u64 == 2 * MILLION {
        return doubled(base, cap, k);
    }
    if base == 0 || multiplier <= Ratio::ONE {
        return base.min(cap);
    }
    grown(base, cap, multiplier, k)
}

/// Any other multiplier.
#[inline(never)]
fn grown(base: u64, cap: u64, multiplier: Ratio, k: u32) -> u64 {
    Scaled::from(multiplier).power(k).times(base).min(cap)
}

/// The common multiplier, by a shift.
#[inline]
fn doubled(base: u64, cap: u64, k: u32) -> u64 {
    match cap.checked_shr(k) {
        Some(room) if base <= room => base << k,
        _ if base == 0 => 0,
        _ => cap,
    }
}

/// A positive number as mantissa × 2^exponent, the mantissa's top bit set: a float whose rounding is ours, so that
/// every platform computes the same wait.
#[derive(Clone, Copy)]
struct Scaled {
    mantissa: u64,
    exponent: i32,
}

impl Scaled {
    const ONE: Scaled = Scaled { mantissa: 1 << 63, exponent: -63 };

    /// `product` × 2^`exponent`, rounded to the nearest mantissa.
    fn normal(product: u128, exponent: i32) -> Scaled {
        let drop = 64 - product.leading_zeros() as i32;
        if drop <= 0 {
            return Scaled { mantissa: (product as u64) << -drop, exponent: exponent + drop };
        }
        let rounded = (product >> drop) + ((product >> (drop - 1)) & 1);
        if rounded >> 64 == 0 {
            Scaled { mantissa: rounded as u64, exponent: exponent.saturating_add(drop) }
        } else {
            Scaled { mantissa: 1 << 63, exponent: exponent.saturating_add(drop + 1) }
        }
    }

    fn product(self, other: Scaled) -> Scaled {
        let exponent = self.exponent.saturating_add(other.exponent);
        Scaled::normal(u128::from(self.mantissa) * u128::from(other.mantissa), exponent)
    }

    /// By squaring: at most 32 steps. Stops as soon as any product with a base of 1 ns would pass every cap.
    fn power(self, mut k: u32) -> Scaled {
        let (mut result, mut square) = (Scaled::ONE, self);
        while k > 0 {
            if k & 1 == 1 {
                result = result.product(square);
            }
            k >>= 1;
            if result.exponent > 0 {
                break;
            }
            square = square.product(square);
        }
        result
    }

    /// `self` × `value`, rounded to the nearest nanosecond, saturating.
    fn times(self, value: u64) -> u64 {
        let product = u128::from(self.mantissa) * u128::from(value);
        let scaled = match (self.exponent, self.exponent.unsigned_abs()) {
            (0, _) => product,
            (..0, shift @ ..128) => (product >> shift) + ((product >> (shift - 1)) & 1),
            (..0, _) => 0,
            _ => return u64::MAX,
        };
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

impl From<Ratio> for Scaled {
    fn from(ratio: Ratio) -> Scaled {
        // 2^64 × parts / a million keeps more bits than the mantissa holds, so one rounding is made, not two.
        let parts = u128::from(ratio.parts_per_million());
        let scaled = (parts << 80) / u128::from(MILLION);
        Scaled::normal(scaled, -80)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_multipliers_are_exact() {
        for (multiplier, k, expected) in
            [(3_u32, 4_u32, 81_u64), (10, 9, 1_000_000_000), (7, 0, 1), (5, 20, 5_u64.pow(20))]
        {
            assert_eq!(at(1, u64::MAX, Ratio::of(multiplier, 1), k), expected, "{multiplier}^{k}");
        }
        assert_eq!(at(100, 1_000_000, Ratio::of(3, 2), 2), 225);
    }

    #[test]
    fn doubling_agrees_with_the_general_law() {
        for base in [1, 3, 100_000_000, u64::MAX / 3] {
            for k in [0, 1, 5, 31, 32, 33, 62, 63, 64, 65, 1024, u32::MAX] {
                for cap in [0, 1, 10_000_000_000, u64::MAX] {
                    let general = Scaled::from(Ratio::of(2, 1)).power(k).times(base).min(cap);
                    assert_eq!(doubled(base, cap, k), general, "base {base}, k {k}, cap {cap}");
                }
            }
        }
    }
}
