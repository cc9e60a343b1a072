//! Lengths of time as policy files and flags write them: `"250ms"`, `"1.5s"`, `"1m30s"`.

use std::time::Duration;

use crate::decimal::{self, Inexact, is_number, split_number, split_unit};

/// The units from large to small, in nanoseconds, with the other words that people write for them.
const UNITS: [(&str, u64, &[&str]); 6] = [
    ("h", 3_600_000_000_000, &["hr", "hrs", "hour", "hours"]),
    ("m", 60_000_000_000, &["min", "mins", "minute", "minutes"]),
    ("s", 1_000_000_000, &["sec", "secs", "second", "seconds"]),
    ("ms", 1_000_000, &["msec", "msecs", "millis", "millisecond", "milliseconds"]),
    ("us", 1_000, &["µs", "μs", "usec", "micros", "microsecond", "microseconds"]),
    ("ns", 1, &["nsec", "nanos", "nanosecond", "nanoseconds"]),
];

/// Longer texts are not tried to be mended.
const LONGEST_MENDED: usize = 32;

/// Why a text is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// Nothing is written.
    #[error("it is empty")]
    Empty,
    /// Below zero.
    #[error("a length can't be negative")]
    Negative,
    /// A number without a unit.
    #[error("it has no unit")]
    NoUnit,
    /// A unit that isn't ns, us, ms, s, m or h.
    #[error("it has an unknown unit")]
    UnknownUnit,
    /// What stands before a unit is no decimal number.
    #[error("it is no number with a unit")]
    NotANumber,
    /// A unit after a smaller one, or twice.
    #[error("its units do not go from large to small")]
    Order,
    /// Finer than a nanosecond.
    #[error("it is finer than a nanosecond")]
    TooFine,
    /// Over 584 years.
    #[error("it is too long")]
    TooLong,
}

/// Reads a length of time: numbers with the units `h`, `m`, `s`, `ms`, `us`, `ns`, from large to small, with decimals
/// where they are exact.
///
/// # Errors
/// [`DurationError`] for everything else: nothing is guessed, nothing is rounded.
///
/// ```
/// use std::time::Duration;
/// use relent_config::{DurationError, parse_duration};
///
/// assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
/// assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
/// assert_eq!(parse_duration("250"), Err(DurationError::NoUnit));
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text.starts_with('-') {
        return Err(DurationError::Negative);
    }
    let (mut rest, mut total, mut last) = (text, 0_u64, u64::MAX);
    while !rest.is_empty() {
        let (number, tail) = split_number(rest);
        let (word, tail) = split_unit(tail);
        if !is_number(number) {
            return Err(DurationError::NotANumber);
        }
        if word.is_empty() {
            return Err(DurationError::NoUnit);
        }
        let unit = unit(word).ok_or(DurationError::UnknownUnit)?;
        if unit >= last {
            return Err(DurationError::Order);
        }
        let part = decimal::scale(number, unit)?;
        total = total.checked_add(part).ok_or(DurationError::TooLong)?;
        (rest, last) = (tail, unit);
    }
    Ok(Duration::from_nanos(total))
}

/// Writes a length as [`parse_duration`] reads it, in its shortest form: `"1m30s"`, `"1.5s"`, `"250ms"`.
///
/// ```
/// use std::time::Duration;
/// use relent_config::format_duration;
///
/// assert_eq!(format_duration(Duration::from_millis(250)), "250ms");
/// assert_eq!(format_duration(Duration::from_secs(3600)), "1h");
/// ```
pub fn format_duration(length: Duration) -> String {
    // Beyond 584 years nothing is read either.
    let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    let mut text = String::new();
    let mut rest = nanos;
    for (name, unit, _) in &UNITS[..2] {
        if rest >= *unit {
            text += &format!("{}{name}", rest / unit);
            rest %= unit;
        }
    }
    if rest > 0 || text.is_empty() {
        let fits = UNITS[2..].iter().find(|(_, unit, _)| rest >= *unit);
        let (name, unit, _) = fits.unwrap_or(&UNITS[2]);
        text += &decimal::write_decimal(rest, *unit);
        text += name;
    }
    text
}

/// How to write `text` instead.
pub(crate) fn mend(text: &str) -> String {
    if let Some(mended) = mended(text) {
        // Whether seconds or milliseconds were meant, a thousandfold lies between: nobody but the author knows.
        return match mended.strip_suffix(UNSAID) {
            Some(number) => format!("write \"{number}s\" or \"{number}ms\""),
            None => format!("write \"{mended}\""),
        };
    }
    let mend = match parse_duration(text) {
        Err(DurationError::Order) => "write the units from large to small, each once, such as \"1m30s\"",
        Err(DurationError::TooFine) => "write it in whole nanoseconds",
        Err(DurationError::TooLong) => "write at most \"8760h\"",
        _ => "write a number and its unit, such as \"250ms\" or \"1m30s\" (h, m, s, ms, us, ns)",
    };
    mend.to_owned()
}

/// `text` as it was probably meant, if that is a length.
fn mended(text: &str) -> Option<String> {
    if text.len() > LONGEST_MENDED {
        return None;
    }
    let bare: String = text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
    let mut rest = bare.to_lowercase();
    let mut mended = String::new();
    while !rest.is_empty() {
        let (number, tail) = split_number(&rest);
        let (word, tail) = split_unit(tail);
        mended += if number.starts_with('.') { "0" } else { "" };
        mended += number;
        mended += match word {
            "" => UNSAID,
            word => UNITS.iter().find(|(name, _, others)| *name == word || others.contains(&word))?.0,
        };
        rest = tail.to_owned();
    }
    let read = mended.strip_suffix(UNSAID).map_or_else(|| mended.clone(), |number| format!("{number}ms"));
    parse_duration(&read).is_ok().then_some(mended)
}

/// Stands for a unit that was left out, which only the last one may be.
const UNSAID: &str = "?";

fn unit(word: &str) -> Option<u64> {
    let word = if matches!(word, "µs" | "μs") { "us" } else { word };
    UNITS.iter().find(|(name, ..)| *name == word).map(|(_, unit, _)| *unit)
}

impl From<Inexact> for DurationError {
    fn from(inexact: Inexact) -> DurationError {
        match inexact {
            Inexact::TooFine => DurationError::TooFine,
            Inexact::TooLarge => DurationError::TooLong,
        }
    }
}
