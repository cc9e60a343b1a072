//! Shares and factors without floating point: parts per million.

use core::fmt;

/// A non-negative number with six decimal places: a share (0.1), a factor (1.5) or a rate per second.
///
/// ```
/// use relent_core::Ratio;
///
/// assert_eq!(Ratio::percent(10), Ratio::of(1, 10));
/// assert_eq!(Ratio::of(3, 2).to_string(), "1.5");
/// assert_eq!("0.25".parse(), Ok(Ratio::percent(25)));
/// assert!("-1".parse::<Ratio>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

/// One, in parts per million.
pub(crate) const MILLION: u64 = 1_000_000;

impl Ratio {
    /// Nothing.
    pub const ZERO: Ratio = Ratio(0);
    /// The whole.
    pub const ONE: Ratio = Ratio(MILLION as u32);

    /// Hundredths: `percent(10)` is 0.1.
    #[must_use]
    pub const fn percent(hundredths: u16) -> Ratio {
        Ratio(hundredths as u32 * 10_000)
    }

    /// `part` of `whole`, rounded down to six decimal places.
    ///
    /// # Panics
    /// If `whole` is zero or the quotient is over 4294: a constant of the program is wrong then.
    #[must_use]
    pub const fn of(part: u32, whole: u32) -> Ratio {
        assert!(whole > 0, "a ratio needs a whole above zero");
        let parts = part as u64 * MILLION / whole as u64;
        assert!(parts <= u32::MAX as u64, "a ratio is at most 4294");
        Ratio(parts as u32)
    }

    /// Millionths.
    #[must_use]
    pub const fn from_parts_per_million(parts: u32) -> Ratio {
        Ratio(parts)
    }

    /// Millionths.
    #[must_use]
    pub const fn parts_per_million(self) -> u32 {
        self.0
    }

    /// `self` × `value`, rounded down, saturating.
    #[must_use]
    pub const fn of_nanos(self, value: u64) -> u64 {
        let scaled = value as u128 * self.0 as u128 / MILLION as u128;
        if scaled > u64::MAX as u128 { u64::MAX } else { scaled as u64 }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut rest) = (self.0 / MILLION as u32, self.0 % MILLION as u32);
        write!(f, "{whole}")?;
        if rest == 0 {
            return Ok(());
        }
        let mut places = 6;
        while rest.is_multiple_of(10) {
            rest /= 10;
            places -= 1;
        }
        write!(f, ".{rest:0places$}")
    }
}

impl fmt::Debug for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is not a [`Ratio`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RatioError {
    /// Not a plain decimal number such as `0.1` or `2`.
    NotANumber,
    /// More than six decimal places.
    TooFine,
    /// Over 4294.967295.
    TooLarge,
}

impl fmt::Display for RatioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RatioError::NotANumber => "not a plain non-negative number such as 0.1",
            RatioError::TooFine => "more than six decimal places",
            RatioError::TooLarge => "too large: at most 4294",
        })
    }
}

impl core::error::Error for RatioError {}

impl core::str::FromStr for Ratio {
    type Err = RatioError;

    fn from_str(text: &str) -> Result<Ratio, RatioError> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) {
            return Err(RatioError::NotANumber);
        }
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > 6 {
            return Err(RatioError::TooFine);
        }
        let mut parts = whole.parse::<u64>().map_err(|_| RatioError::TooLarge)?;
        let mut unit = MILLION;
        parts = parts.checked_mul(MILLION).ok_or(RatioError::TooLarge)?;
        for digit in decimals.bytes() {
            unit /= 10;
            parts += u64::from(digit - b'0') * unit;
        }
        u32::try_from(parts).map(Ratio).map_err(|_| RatioError::TooLarge)
    }
}
