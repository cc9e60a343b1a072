//! `grpc-previous-rpc-attempts`: how many attempts of a call went before this one.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// How many attempts went before (gRFC A6); absent on the first. Repeats that no server has seen don't count.
pub const GRPC_PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

/// For servers: how many attempts of this call went before, by the client's word. A field that is missing, doubled or
/// unreadable is 0.
///
/// ```
/// use http::HeaderMap;
/// use relent::grpc::{GRPC_PREVIOUS_ATTEMPTS, previous_attempts};
///
/// let mut headers = HeaderMap::new();
/// assert_eq!(previous_attempts(&headers), 0);
/// headers.insert(GRPC_PREVIOUS_ATTEMPTS, "2".parse()?);
/// assert_eq!(previous_attempts(&headers), 2);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn previous_attempts(headers: &HeaderMap) -> u32 {
    let mut values = headers.get_all(GRPC_PREVIOUS_ATTEMPTS).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return 0 };
    let digits = value.as_bytes();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    let grow = |number: u32, digit: &u8| number.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    digits.iter().fold(0, grow)
}

/// Says so with an attempt, in place of whatever a hop before said.
pub(super) fn stamp(headers: &mut HeaderMap, previous: u32) {
    match previous {
        0 => headers.remove(GRPC_PREVIOUS_ATTEMPTS),
        number => headers.insert(GRPC_PREVIOUS_ATTEMPTS, HeaderValue::from(number)),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_none_before() {
        let read = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(GRPC_PREVIOUS_ATTEMPTS, HeaderValue::from_static(value));
            }
            previous_attempts(&headers)
        };
        for (values, number) in [
            (&["3"][..], 3),
            (&["0"], 0),
            (&["99999999999"], u32::MAX),
            (&[""], 0),
            (&["-1"], 0),
            (&["+1"], 0),
            (&["1", "1"], 0),
        ] {
            assert_eq!(read(values), number, "{values:?}");
        }
    }
}
