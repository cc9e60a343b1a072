//! gRPC's own text form of time (gRPC over HTTP/2, "Timeout"): at most 8 digits and a unit.

use std::time::Duration;

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// The time that the sender gives a gRPC call, from now on.
pub const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// More digits than this are no timeout.
const MOST_DIGITS: usize = 8;
/// What that many digits can say.
const MOST: u128 = 99_999_999;

/// Whether a message is gRPC's, by its content type: `application/grpc`, also with a suffix (`+proto`, `-web`).
#[must_use]
pub fn is_grpc(headers: &HeaderMap) -> bool {
    const TYPE: &[u8] = b"application/grpc";
    let Some(value) = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes) else { return false };
    match value.split_at_checked(TYPE.len()) {
        Some((start, rest)) => {
            start.eq_ignore_ascii_case(TYPE) && matches!(rest.first(), None | Some(b'+' | b'-' | b';' | b' '))
        }
        None => false,
    }
}

/// The time that a gRPC request gives. A field that is missing, doubled or unreadable is `None`. Zero is a time: it is up.
#[must_use]
pub fn time_given(headers: &HeaderMap) -> Option<Duration> {
    let mut values = headers.get_all(GRPC_TIMEOUT).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    parse(value)
}

/// Reads a `grpc-timeout`: one to eight digits, and H, M, S, m, u or n for hours down to nanoseconds.
///
/// ```
/// use std::time::Duration;
/// use http::HeaderValue;
/// use relent::http::grpc_timeout;
///
/// assert_eq!(grpc_timeout::parse(&HeaderValue::from_static("250m")), Some(Duration::from_millis(250)));
/// assert_eq!(grpc_timeout::parse(&HeaderValue::from_static("250ms")), None);
/// ```
#[must_use]
pub fn parse(value: &HeaderValue) -> Option<Duration> {
    let (unit, digits) = value.as_bytes().split_last()?;
    if digits.is_empty() || digits.len() > MOST_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number: u64, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => Duration::from_secs(number * 3600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Writes a `grpc-timeout` that never says more than `time`, rounded down by less than a tenth; `None` if no time is left,
/// which is not to be told but kept to: nothing is sent then.
///
/// ```
/// use std::time::Duration;
/// use relent::http::grpc_timeout;
///
/// assert_eq!(grpc_timeout::format(Duration::from_micros(250_900)).unwrap(), "250m");
/// assert_eq!(grpc_timeout::format(Duration::ZERO), None);
/// ```
#[must_use]
pub fn format(time: Duration) -> Option<HeaderValue> {
    let (milliseconds, microseconds, nanoseconds) = (time.as_millis(), time.as_micros(), time.as_nanos());
    // Milliseconds, as most peers write them, unless that would lose or overflow too much.
    let (number, unit) = match time {
        Duration::ZERO => return None,
        _ if microseconds < 10 => (nanoseconds, 'n'),
        _ if milliseconds < 10 => (microseconds, 'u'),
        _ if milliseconds <= MOST => (milliseconds, 'm'),
        _ => (u128::from(time.as_secs()).min(MOST), 'S'),
    };
    Some(HeaderValue::try_from(format!("{number}{unit}")).expect("digits and a letter make a header value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        let read = |text: &[u8]| parse(&HeaderValue::from_bytes(text).unwrap());
        for (text, time) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("99999999n", Duration::from_nanos(99_999_999)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
            ("00000001S", Duration::from_secs(1)),
            ("0m", Duration::ZERO),
        ] {
            assert_eq!(read(text.as_bytes()), Some(time), "{text}");
        }
        for bad in [
            &b""[..],
            b"S",
            b"1",
            b"12",
            b"1s",
            b"1h",
            b"1ms",
            b"-1S",
            b"+1S",
            b"123456789S",
            b"1 S",
            b" 1S",
            b"1S ",
            b"1.5S",
            b"1e3m",
            b"0x1S",
            b"1\xffS",
            b"1S,2S",
            b"\xd9\xa1S",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_doubled_field_counts_as_absent() {
        let mut headers = HeaderMap::new();
        assert_eq!(time_given(&headers), None);
        headers.append(GRPC_TIMEOUT, HeaderValue::from_static("1S"));
        assert_eq!(time_given(&headers), Some(Duration::from_secs(1)));
        headers.append(GRPC_TIMEOUT, HeaderValue::from_static("1S"));
        assert_eq!(time_given(&headers), None);
    }

    #[test]
    fn what_is_written_never_says_more() {
        let write = |time| format(time).map(|value| value.to_str().unwrap().to_owned());
        for (time, text) in [
            (Duration::from_nanos(1), "1n"),
            (Duration::from_nanos(9_999), "9999n"),
            (Duration::from_nanos(10_999), "10u"),
            (Duration::from_nanos(1_999_999), "1999u"),
            (Duration::from_micros(10_999), "10m"),
            (Duration::from_millis(4750), "4750m"),
            (Duration::from_millis(99_999_999), "99999999m"),
            (Duration::from_millis(100_000_500), "100000S"),
            (Duration::MAX, "99999999S"),
        ] {
            assert_eq!(write(time).as_deref(), Some(text));
            let read = parse(&HeaderValue::from_str(text).unwrap()).unwrap();
            assert!(read <= time && (read >= time.mul_f64(0.9) || text == "99999999S"), "{text}");
        }
        assert_eq!(write(Duration::ZERO), None);
    }

    #[test]
    fn grpc_is_known_by_its_content_type() {
        for (text, expected) in [
            ("application/grpc", true),
            ("Application/gRPC+proto", true),
            ("application/grpc;charset=utf-8", true),
            ("application/grpc-web+proto", true),
            ("application/grpcish", false),
            ("application/json", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(text))]);
            assert_eq!(is_grpc(&headers), expected, "{text}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }
}
