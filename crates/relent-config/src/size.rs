//! Numbers of bytes as policy files and flags write them: `"64KiB"`, `"1MB"`, `"512B"`.

use crate::decimal::{self, Inexact, is_number, split_number};

/// The units, in bytes; the first of each pair is what a lone letter is mended to.
const UNITS: [(&str, u64); 9] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
];

/// Longer texts are not tried to be mended.
const LONGEST_MENDED: usize = 32;

/// Why a text is no number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// Nothing is written.
    #[error("it is empty")]
    Empty,
    /// Below zero.
    #[error("a size can't be negative")]
    Negative,
    /// A number without a unit.
    #[error("it has no unit")]
    NoUnit,
    /// A unit that isn't B, KiB, KB, MiB, MB, GiB, GB, TiB or TB.
    #[error("it has an unknown unit")]
    UnknownUnit,
    /// No decimal number before the unit.
    #[error("it is no number with a unit")]
    NotANumber,
    /// A part of a byte.
    #[error("it is no whole number of bytes")]
    TooFine,
    /// Over `u64::MAX` bytes.
    #[error("it is too large")]
    TooLarge,
}

/// Reads a number of bytes with its unit: `B`, `KiB` (1024), `KB` or `kB` (1000), and so on with M, G, T; decimals where
/// they are exact.
///
/// # Errors
/// [`SizeError`] for everything else: a lone `K` is refused, since it means 1000 to some and 1024 to others.
///
/// ```
/// use relent_config::{SizeError, parse_size};
///
/// assert_eq!(parse_size("64KiB"), Ok(65_536));
/// assert_eq!(parse_size("1.5MB"), Ok(1_500_000));
/// assert_eq!(parse_size("64K"), Err(SizeError::UnknownUnit));
/// ```
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    if text.is_empty() {
        return Err(SizeError::Empty);
    }
    if text.starts_with('-') {
        return Err(SizeError::Negative);
    }
    let (number, word) = split_number(text);
    if !is_number(number) {
        return Err(SizeError::NotANumber);
    }
    let unit = match word {
        "" => return Err(SizeError::NoUnit),
        "kB" => 1_000,
        word => UNITS.iter().find(|(name, _)| *name == word).ok_or(SizeError::UnknownUnit)?.1,
    };
    decimal::scale(number, unit).map_err(|inexact| match inexact {
        Inexact::TooFine => SizeError::TooFine,
        Inexact::TooLarge => SizeError::TooLarge,
    })
}

/// Writes a number of bytes as [`parse_size`] reads it, in the largest unit that keeps it whole.
///
/// ```
/// assert_eq!(relent_config::format_size(65_536), "64KiB");
/// assert_eq!(relent_config::format_size(1_000), "1KB");
/// assert_eq!(relent_config::format_size(1_001), "1001B");
/// ```
pub fn format_size(bytes: u64) -> String {
    let fits = |unit: u64| bytes >= unit && bytes.is_multiple_of(unit);
    let (name, unit) = UNITS.iter().rev().find(|(_, unit)| fits(*unit)).unwrap_or(&UNITS[0]);
    format!("{}{name}", bytes / unit)
}

/// How to write `text` instead.
pub(crate) fn mend(text: &str) -> String {
    if let Some(mended) = mended(text) {
        return format!("write \"{mended}\"");
    }
    let mend = match parse_size(text) {
        Err(SizeError::TooFine) => "write it in whole bytes",
        _ => "write a number and its unit, such as \"64KiB\" or \"512B\" (B, KiB, KB, MiB, MB, GiB, GB)",
    };
    mend.to_owned()
}

/// `text` as it was probably meant, if that is a size.
fn mended(text: &str) -> Option<String> {
    if text.len() > LONGEST_MENDED {
        return None;
    }
    let bare: String = text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
    let (number, word) = split_number(&bare);
    let zero = if number.starts_with('.') { "0" } else { "" };
    let word = match word.to_lowercase().as_str() {
        "" | "byte" | "bytes" => "B".to_owned(),
        letter @ ("k" | "m" | "g" | "t") => format!("{letter}ib"),
        word => word.to_owned(),
    };
    let (unit, _) = UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word))?;
    let mended = format!("{zero}{number}{unit}");
    parse_size(&mended).is_ok().then_some(mended)
}
