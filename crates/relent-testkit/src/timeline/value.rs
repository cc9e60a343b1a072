//! The small values of a script: lengths, numbers, ratios, `key=value` pairs.

use std::str::FromStr;
use std::time::Duration;

/// What is wrong with a piece of text; the caller adds where.
pub(super) type Wrong = String;

/// `250ms`, `1.5s`, `2m`, `700us`, `9ns`: exact.
pub(super) fn length(text: &str) -> Result<Duration, Wrong> {
    let wrong = || format!("`{text}` is no length such as 250ms or 1.5s");
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let unit: u128 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        _ => return Err(wrong()),
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || !number.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(wrong());
    }
    let places = u32::try_from(decimals.len()).map_err(|_| wrong())?;
    let scale = 10_u128.checked_pow(places).ok_or_else(wrong)?;
    let digits: u128 = format!("{whole}{decimals}").parse().map_err(|_| wrong())?;
    let scaled = digits.checked_mul(unit).ok_or_else(wrong)?;
    if scaled % scale != 0 {
        return Err(format!("`{text}` is finer than a nanosecond"));
    }
    u64::try_from(scaled / scale).map(Duration::from_nanos).map_err(|_| wrong())
}

/// A number or a ratio.
pub(super) fn number<T: FromStr>(text: &str) -> Result<T, Wrong> {
    text.parse().map_err(|_| format!("`{text}` is not a number that fits here"))
}

/// One of a few words.
pub(super) fn one_of<T: Copy>(words: &[(&str, T)], text: &str) -> Result<T, Wrong> {
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            Err(format!("`{text}` is not one of: {}", known.join(", ")))
        }
    }
}

/// `key=value` pairs, separated by blanks.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = Result<(&str, &str), Wrong>> {
    text.split_whitespace()
        .map(|pair| pair.split_once('=').ok_or_else(|| format!("`{pair}` is not key=value")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_exact() {
        let check = |text: &str, nanos: Option<u64>| {
            assert_eq!(length(text).ok(), nanos.map(Duration::from_nanos), "{text}");
        };
        check("0ms", Some(0));
        check("250ms", Some(250_000_000));
        check("1.5s", Some(1_500_000_000));
        check("2m", Some(120_000_000_000));
        check("0.1us", Some(100));
        check("12.3456789ms", None);
        check("ms", None);
        check("5", None);
        check("-5ms", None);
        check("1.2.3s", None);
        check("0.1ns", None);
        check("99999999999999999999s", None);
    }
}
