//! `Retry-After`: how long a server asks to be left alone (RFC 9110 §10.2.3).
//!
//! Two rules hold for every value that a server may send: nothing panics, and nothing is retried earlier than asked.
//! What can't be read (negative, fractional, misspelt) counts as absent, so that the ordinary backoff applies; a past date
//! asks for nothing; numbers too large saturate, so that `max_hint` ends the call; of several fields the longest wins.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

use super::date;

/// How long the server of a response with these headers asks to wait, or `None` if it says nothing readable.
///
/// A date is read against the response's own `Date`, so that a skewed clock on either side does no harm, and against
/// `now` where it has none.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
/// use http::HeaderMap;
/// use relent::http::retry_after;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "120".parse()?);
/// assert_eq!(retry_after(&headers, UNIX_EPOCH), Some(Duration::from_secs(120)));
///
/// headers.insert("date", "Sun, 06 Nov 1994 08:49:37 GMT".parse()?);
/// headers.insert("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT".parse()?);
/// assert_eq!(retry_after(&headers, UNIX_EPOCH), Some(Duration::from_secs(23)));
///
/// headers.insert("retry-after", "-1".parse()?);
/// assert_eq!(retry_after(&headers, UNIX_EPOCH), None);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let now = unix_seconds(now);
    let sent =
        headers.get(DATE).and_then(|value| date::parse(value.as_bytes().trim_ascii(), now)).unwrap_or(now);
    headers.get_all(RETRY_AFTER).iter().filter_map(|value| wait(value.as_bytes(), sent)).max()
}

/// One field's wait. Several in one line, as intermediaries join them, count as several fields: what can't be read of them
/// is passed over, and the longest wins.
fn wait(text: &[u8], sent: i64) -> Option<Duration> {
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b',').collect();
    let alone = parts.iter().map(|part| single(part, sent));
    // An IMF-fixdate has a comma of its own, after the day's name; so has the form of RFC 850.
    let dates = parts.windows(2).map(|pair| single(&pair.join(&b","[..]), sent));
    alone.chain(dates).flatten().max()
}

fn single(text: &[u8], sent: i64) -> Option<Duration> {
    let text = text.trim_ascii();
    match date::parse(text, sent) {
        Some(then) => Some(Duration::from_secs(u64::try_from(then.saturating_sub(sent)).unwrap_or(0))),
        None => seconds(text),
    }
}

/// Plain digits only: a sign, a fraction or an exponent is no delay-seconds.
fn seconds(text: &[u8]) -> Option<Duration> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let grow = |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(Duration::from_secs(text.iter().fold(0, grow)))
}

/// Rounded down, so that the wait until a later date is never too short.
fn unix_seconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(before) => {
            let seconds = before.duration().as_secs().saturating_add(1);
            i64::try_from(seconds).map_or(i64::MIN, |seconds| -seconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn read(values: &[&[u8]], date: Option<&str>, now: u64) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(RETRY_AFTER, HeaderValue::from_bytes(value).unwrap());
        }
        if let Some(date) = date {
            headers.insert(DATE, date.parse().unwrap());
        }
        retry_after(&headers, UNIX_EPOCH + Duration::from_secs(now))
    }

    #[test]
    fn hostile_values_never_panic_and_never_shorten_the_wait() {
        let seconds = |n| Some(Duration::from_secs(n));
        let table: [(&[&[u8]], Option<Duration>); 25] = [
            (&[], None),
            (&[b"0"], seconds(0)),
            (&[b" 7\t"], seconds(7)),
            (&[b"007"], seconds(7)),
            (&[b"-1"], None),
            (&[b"+1"], None),
            (&[b"1.5"], None),
            (&[b"1e9"], None),
            (&[b"1s"], None),
            (&[b""], None),
            (&[b"soon"], None),
            (&[b"\xff\xfe"], None),
            (&["٣".as_bytes()], None),
            (&[b"18446744073709551615"], seconds(u64::MAX)),
            (&[b"99999999999999999999"], seconds(u64::MAX)),
            (&[b"Thu, 01 Jan 1970 00:00:00 GMT"], seconds(0)),
            (&[b"Fri, 31 Dec 9999 23:59:59 GMT"], seconds(253_402_300_799 - 1_000_000_000)),
            (&[b"1", b"30", b"2"], seconds(30)),
            (&[b"-5", b"3", b"rubbish"], seconds(3)),
            (&[b"1, 30"], seconds(30)),
            (&[b"-5, 3"], seconds(3)),
            (&[b"3, soon,"], seconds(3)),
            (&[b",,"], None),
            (&[b"120, Sun, 09 Sep 2001 01:50:00 GMT"], seconds(200)),
            (&[b"Sun, 09 Sep 2001 01:46:45 GMT, Sun, 09 Sep 2001 01:50:00 GMT"], seconds(200)),
        ];
        for (values, wait) in table {
            assert_eq!(read(values, None, 1_000_000_000), wait, "{values:?}");
        }
    }

    #[test]
    fn a_date_is_read_against_the_responses_own() {
        let then: &[u8] = b"Sun, 06 Nov 1994 08:50:00 GMT";
        let own = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        for wall_clock in [0, 784_111_777, 4_000_000_000] {
            assert_eq!(read(&[then], own, wall_clock), Some(Duration::from_secs(23)));
        }
        assert_eq!(read(&[then], Some("no date"), 784_111_777), Some(Duration::from_secs(23)));
        assert_eq!(read(&[then], None, 784_111_770), Some(Duration::from_secs(30)));
    }

    #[test]
    fn a_clock_before_1970_is_a_clock() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "Thu, 01 Jan 1970 00:00:05 GMT".parse().unwrap());
        let before = UNIX_EPOCH - Duration::from_millis(500);
        assert_eq!(retry_after(&headers, before), Some(Duration::from_secs(6)));
    }
}
