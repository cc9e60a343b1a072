//! gRPC's own words for time and attempts (gRPC over HTTP/2; gRFC A6).

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// Retries so far, in a request.
pub(super) const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

/// More digits than this are no timeout.
const MOST_DIGITS: usize = 8;

pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// A `grpc-timeout`: digits and a unit.
pub(super) fn read_timeout(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > MOST_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// The longest text that does not say more than `time`; `None` where nothing useful is left.
pub(super) fn write_timeout(time: Duration) -> Option<HeaderValue> {
    let milliseconds = time.as_millis();
    let text = match milliseconds {
        0 => return None,
        1..=99_999_999 => format!("{milliseconds}m"),
        _ => format!("{}S", time.as_secs().min(99_999_999)),
    };
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        let read = |text: &'static str| read_timeout(&HeaderValue::from_static(text));
        assert_eq!(read("1H"), Some(Duration::from_secs(3600)));
        assert_eq!(read("2M"), Some(Duration::from_secs(120)));
        assert_eq!(read("3S"), Some(Duration::from_secs(3)));
        assert_eq!(read("4m"), Some(Duration::from_millis(4)));
        assert_eq!(read("5u"), Some(Duration::from_micros(5)));
        assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for bad in ["", "S", "1", "1s", "-1S", "123456789S", "1 S", "1.5S"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_written_never_says_more() {
        let write = |time| write_timeout(time).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(write(Duration::from_micros(1999)).as_deref(), Some("1m"));
        assert_eq!(write(Duration::from_micros(999)), None);
        assert_eq!(write(Duration::from_millis(100_000_500)).as_deref(), Some("100000S"));
        assert_eq!(write(Duration::MAX).as_deref(), Some("99999999S"));
    }
}
