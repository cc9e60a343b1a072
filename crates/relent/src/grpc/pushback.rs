//! `grpc-retry-pushback-ms`: a server's own word on when to retry, if at all (gRFC A6).

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// How many milliseconds to wait before a retry; a negative number asks for none.
pub const GRPC_RETRY_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// What a server asks of a client whose call it fails.
///
/// ```
/// use std::time::Duration;
/// use http::HeaderMap;
/// use relent::grpc::Pushback;
///
/// let mut metadata = HeaderMap::new();
/// Pushback::After(Duration::from_millis(300)).write(&mut metadata);
/// assert_eq!(metadata["grpc-retry-pushback-ms"], "300");
/// assert_eq!(Pushback::read(&metadata), Some(Pushback::After(Duration::from_millis(300))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushback {
    /// Retry after exactly this time: no jitter, no backoff. The next backoff is the first one again.
    After(Duration),
    /// Don't retry.
    Stop,
}

/// The greatest number that every client reads: 32 bits, signed.
const MOST: u128 = i32::MAX as u128;

impl Pushback {
    /// What the metadata of a failure asks for; `None` without the field. A number that is negative, too large or no
    /// number, and a field that comes twice, all mean [`Stop`](Pushback::Stop).
    #[must_use]
    pub fn read(headers: &HeaderMap) -> Option<Pushback> {
        let mut values = headers.get_all(GRPC_RETRY_PUSHBACK).iter();
        let first = values.next()?;
        let readable = if values.next().is_none() { milliseconds(first) } else { None };
        Some(readable.map_or(Pushback::Stop, Pushback::After))
    }

    /// For servers: writes it to the metadata of a failure, in whole milliseconds, rounded up.
    pub fn write(self, headers: &mut HeaderMap) {
        let value = match self {
            Pushback::Stop => HeaderValue::from_static("-1"),
            Pushback::After(wait) => {
                let whole = wait.as_nanos().div_ceil(1_000_000).min(MOST);
                HeaderValue::from(u64::try_from(whole).unwrap_or(u64::MAX))
            }
        };
        headers.insert(GRPC_RETRY_PUSHBACK, value);
    }
}

fn milliseconds(value: &HeaderValue) -> Option<Duration> {
    let digits = value.as_bytes();
    if digits.is_empty() || digits.len() > 10 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number: u64, digit| number * 10 + u64::from(digit - b'0'));
    (u128::from(number) <= MOST).then(|| Duration::from_millis(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&[u8]]) -> Option<Pushback> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(GRPC_RETRY_PUSHBACK, HeaderValue::from_bytes(value).unwrap());
        }
        Pushback::read(&headers)
    }

    #[test]
    fn every_form_is_a_wait_or_a_stop() {
        let after = |ms| Some(Pushback::After(Duration::from_millis(ms)));
        let stop = Some(Pushback::Stop);
        let table: [(&[&[u8]], Option<Pushback>); 15] = [
            (&[], None),
            (&[b"0"], after(0)),
            (&[b"300"], after(300)),
            (&[b"007"], after(7)),
            (&[b"2147483647"], after(2_147_483_647)),
            (&[b"2147483648"], stop),
            (&[b"99999999999999999999"], stop),
            (&[b"-1"], stop),
            (&[b"-0"], stop),
            (&[b"+1"], stop),
            (&[b"1.5"], stop),
            (&[b" 1"], stop),
            (&[b""], stop),
            (&[b"soon\xff"], stop),
            (&[b"1", b"1"], stop),
        ];
        for (values, expected) in table {
            assert_eq!(read(values), expected, "{values:?}");
        }
    }

    #[test]
    fn what_is_written_is_never_less() {
        for (wait, text) in [
            (Duration::ZERO, "0"),
            (Duration::from_nanos(1), "1"),
            (Duration::from_micros(1500), "2"),
            (Duration::from_secs(2), "2000"),
            (Duration::MAX, "2147483647"),
        ] {
            let mut headers = HeaderMap::new();
            Pushback::Stop.write(&mut headers);
            assert_eq!(headers[GRPC_RETRY_PUSHBACK], "-1");
            Pushback::After(wait).write(&mut headers);
            assert_eq!(headers.get_all(GRPC_RETRY_PUSHBACK).iter().collect::<Vec<_>>(), [text]);
        }
    }
}
