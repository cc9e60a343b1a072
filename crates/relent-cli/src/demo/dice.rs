//! Seeded chance by name: every draw is a function of the seed, what it is for, the call and a number.
//!
//! So all lanes meet the same arrivals, and a call's first try the same work and the same fault in each of them,
//! whatever the lanes did before (common random numbers: differences between lanes are the policies').

use std::time::Duration;

use relent_core::Rng;

/// What a draw is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    /// The gap before a call.
    Arrival = 1,
    /// Whether it is a payment.
    Payment,
    /// The work that one of its requests costs.
    Work,
    /// What goes wrong with one of its requests.
    Fault,
    /// The textbook lane's wait.
    Jitter,
}

/// The chance of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice {
    seed: u64,
}

impl Dice {
    pub(crate) fn seeded(seed: u64) -> Dice {
        Dice { seed }
    }

    /// A number in (0, 1), never either end.
    pub(crate) fn roll(self, stream: Stream, call: u32, number: u32) -> f64 {
        let first = Rng::seeded(self.seed).next();
        let second = Rng::seeded(first ^ stream as u64).next();
        let bits = Rng::seeded(second ^ (u64::from(call) << 32 | u64::from(number))).next();
        ((bits >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// An exponentially distributed length.
    pub(crate) fn exponential(self, mean: Duration, stream: Stream, call: u32, number: u32) -> Duration {
        mean.mul_f64(-ln(self.roll(stream, call, number)))
    }
}

/// The natural logarithm of a normal number above zero, to some 15 digits: without libm, whose pages would stay with a
/// proxy that never draws.
fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let exponent = (x.to_bits() >> 52) as i32 - 1023;
    let mantissa = f64::from_bits(x.to_bits() & MANTISSA | ONE);
    // ln m = 2 artanh ((m - 1) / (m + 1)), for m from 1 to 2.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let series = (0..16).rev().fold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * t * series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_the_libraries() {
        for x in [1e-300, 1e-16, 0.1, 0.5, 0.999_999, 1.0, 1.5, 2.0, 3.0, 1e9] {
            assert!((ln(x) - f64::ln(x)).abs() <= 1e-14 * f64::ln(x).abs().max(1.0), "{x}: {}", ln(x));
        }
    }

    #[test]
    fn a_draw_depends_on_all_of_its_names() {
        let dice = Dice::seeded(7);
        let draw = dice.roll(Stream::Work, 3, 1);
        assert_eq!(draw, Dice::seeded(7).roll(Stream::Work, 3, 1));
        for other in [
            Dice::seeded(8).roll(Stream::Work, 3, 1),
            dice.roll(Stream::Fault, 3, 1),
            dice.roll(Stream::Work, 4, 1),
            dice.roll(Stream::Work, 3, 2),
        ] {
            assert_ne!(draw, other);
        }
    }

    #[test]
    fn lengths_have_the_mean_and_the_spread_of_their_law() {
        let mean = Duration::from_millis(25);
        let draws: Vec<f64> = (0..20_000)
            .map(|call| Dice::seeded(1).exponential(mean, Stream::Work, call, 1).as_secs_f64() * 40.0)
            .collect();
        let average = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|d| (d - average).powi(2)).sum::<f64>() / draws.len() as f64;
        assert!((average - 1.0).abs() < 0.03, "{average}");
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
    }
}
