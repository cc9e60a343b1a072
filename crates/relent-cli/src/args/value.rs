//! How single values are written on the command line.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use relent_config::{DurationError, parse_duration};
use relent_core::{Growth, Jitter, Ratio, Steps};

/// A length such as `250ms`, `1.5s` or `1m30s`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| match error {
        DurationError::NoUnit => format!("{error}; write {text}ms or {text}s"),
        DurationError::TooLong => format!("{error}; the longest is 365 days, 8760h"),
        _ => format!("{error}; write a number and its unit, such as 250ms, 1.5s or 1m30s"),
    })
}

/// A length, or `none`: no such bound.
pub(super) fn bound(text: &str) -> Result<super::Bound<Duration>, String> {
    if text == "none" { Ok(super::Bound::None) } else { duration(text).map(super::Bound::Of) }
}

/// A share such as `0.1`, or `none`.
pub(super) fn share(text: &str) -> Result<super::Bound<Ratio>, String> {
    if text == "none" { Ok(super::Bound::None) } else { ratio(text).map(super::Bound::Of) }
}

/// A number such as `2` or `1.5`.
pub(super) fn ratio(text: &str) -> Result<Ratio, String> {
    text.parse().map_err(|error: relent_core::RatioError| error.to_string())
}

/// The name of a jitter, with its x where it has one: `proportional=0.2`.
/// A law by its name, or the waits one by one.
pub(super) fn growth(text: &str) -> Result<Growth, String> {
    match text.split_once('=') {
        None if text == "exponential" => Ok(Growth::Exponential),
        None if text == "linear" => Ok(Growth::Linear),
        None if text == "fibonacci" => Ok(Growth::Fibonacci),
        Some(("steps", waits)) => {
            let waits = waits.split(',').map(duration).collect::<Result<Vec<_>, _>>()?;
            if waits.len() > Steps::MOST {
                return Err(format!("{} waits are too many: list at most {}", waits.len(), Steps::MOST));
            }
            Ok(Growth::Steps(Steps::new(&waits)))
        }
        _ => Err("take exponential, linear, fibonacci, or steps=1s,5s,30s".into()),
    }
}

pub(super) fn jitter(text: &str) -> Result<Jitter, String> {
    let (name, x) = match text.split_once('=') {
        Some((name, x)) => (name, Some(ratio(x).map_err(|error| format!("{x} is {error}"))?)),
        None => (text, None),
    };
    match (name, x) {
        ("none", None) => Ok(Jitter::None),
        ("full", None) => Ok(Jitter::Full),
        ("equal", None) => Ok(Jitter::Equal),
        ("decorrelated", None) => Ok(Jitter::Decorrelated),
        ("decorrelated-bounded", None) => Ok(Jitter::DecorrelatedBounded),
        ("proportional", Some(x)) => Ok(Jitter::Proportional(x)),
        ("additive", Some(x)) => Ok(Jitter::Additive(x)),
        ("proportional" | "additive", None) => Err(format!("{name} needs its share; write {name}=0.2")),
        ("none" | "full" | "equal" | "decorrelated" | "decorrelated-bounded", Some(_)) => {
            Err(format!("{name} takes no share; write {name}"))
        }
        _ => Err(
            "no such jitter; write none, full, equal, decorrelated, decorrelated-bounded, proportional=0.2 \
                  or additive=0.2"
                .into(),
        ),
    }
}

/// A rate above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerSecond(pub(crate) f64);

/// A rate such as `0.5` or `200`.
pub(super) fn per_second(text: &str) -> Result<PerSecond, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(PerSecond(rate)),
        Ok(rate) if rate > 1e9 => Err("at most 1000000000 calls per second".into()),
        _ => Err("not a rate; write a number above zero, such as 0.5 or 200".into()),
    }
}

/// Exit codes to retry on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExitCodes(Vec<RangeInclusive<u8>>);

impl ExitCodes {
    /// Whether `code` is one of them.
    pub(crate) fn contains(&self, code: u8) -> bool {
        self.0.iter().any(|range| range.contains(&code))
    }
}

/// Codes and ranges of codes: `1,75` or `1-9,75`.
impl FromStr for ExitCodes {
    type Err = String;

    fn from_str(text: &str) -> Result<ExitCodes, String> {
        text.split(',').map(exit_code_range).collect::<Result<_, _>>().map(ExitCodes)
    }
}

fn exit_code_range(text: &str) -> Result<RangeInclusive<u8>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (exit_code(first)?, exit_code(last)?);
    if first > last {
        return Err(format!("{text} runs backwards; write {last}-{first}"));
    }
    if let Some(code) = [126, 127].into_iter().find(|code| (first..=last).contains(code)) {
        return Err(format!(
            "{code} (not executable, not found) fails the same way again; leave 126 and 127 out"
        ));
    }
    Ok(first..=last)
}

fn exit_code(text: &str) -> Result<u8, String> {
    match text.trim().parse::<u8>() {
        Ok(0) => Err("0 is success, there is nothing to retry; write codes from 1 to 255".into()),
        Ok(code) => Ok(code),
        Err(_) => Err(format!("{text:?} is no exit code; write codes from 1 to 255, such as 1,75 or 1-9")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_name_the_mend() {
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        for (text, said) in [
            ("5", "no unit; write 5ms or 5s"),
            ("-1s", "negative; write a number and its unit"),
            ("", "empty; write"),
            ("1d", "unknown unit; write"),
            ("0.5ns", "finer than a nanosecond"),
            ("99999999999999h", "too long; the longest"),
        ] {
            let error = duration(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn growths() {
        let steps = Steps::new(&[Duration::from_secs(1), Duration::from_millis(2500)]);
        assert_eq!(growth("steps=1s,2.5s"), Ok(Growth::Steps(steps)));
        assert_eq!(growth("linear"), Ok(Growth::Linear));
        assert!(growth("steps=1s,,2s").is_err() && growth("steps").is_err() && growth("linear=2").is_err());
        assert!(growth(&format!("steps={}1s", "1s,".repeat(16))).is_err());
    }

    #[test]
    fn jitters() {
        assert_eq!(jitter("decorrelated-bounded"), Ok(Jitter::DecorrelatedBounded));
        assert_eq!(jitter("proportional=0.2"), Ok(Jitter::Proportional(Ratio::percent(20))));
        for (text, said) in
            [("ful", "no such jitter"), ("additive", "write additive=0.2"), ("full=0.1", "takes no share")]
        {
            let error = jitter(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn codes_to_retry_on() {
        let codes: ExitCodes = "1-9,75".parse().unwrap();
        assert_eq!([1, 9, 10, 75, 126].map(|code| codes.contains(code)), [true, true, false, true, false]);
        for (text, said) in [
            ("0", "0 is success"),
            ("256", "codes from 1 to 255"),
            ("9-1", "write 1-9"),
            ("100-200", "leave 126 and 127 out"),
            ("1,,2", "is no exit code"),
        ] {
            let error = text.parse::<ExitCodes>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
