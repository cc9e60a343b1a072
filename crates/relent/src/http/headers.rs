//! What relent says to the next hop with each attempt, and hears from it: names and text forms on the wire.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use relent_core::{Launch, StopScope};

use super::fields;

/// Attempt credit: `left=2` with a request, `used=1` with a response (a structured-field dictionary).
pub const ATTEMPTS: HeaderName = HeaderName::from_static("relent-attempts");
/// "Do not retry this", with a scope: `scope=host, reason=budget`.
pub const STOP: HeaderName = HeaderName::from_static("relent-stop");
/// The attempt's number, from 1.
pub const ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");
/// The time that the sender gives this attempt, in milliseconds.
pub const EXPECTED_TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");
/// Envoy's own stop mark.
pub const RATE_LIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");

/// Takes from a request what only the hop before could mean: its attempt credit.
pub(super) fn clean(headers: &mut HeaderMap) {
    headers.remove(ATTEMPTS);
}

/// Writes number, time and credit of an attempt upon a copy of the pristine request. Each is set, never appended.
pub(super) fn stamp(headers: &mut HeaderMap, launch: &Launch) {
    headers.insert(ATTEMPT_COUNT, HeaderValue::from(launch.number));
    if let Some(time) = launch.time_below() {
        let told = headers.get(EXPECTED_TIMEOUT).and_then(milliseconds);
        headers.insert(
            EXPECTED_TIMEOUT,
            HeaderValue::from(whole_milliseconds(time).min(told.unwrap_or(u64::MAX))),
        );
    }
    if let Some(left) = launch.left {
        let text = HeaderValue::try_from(format!("left={left}"));
        headers.insert(ATTEMPTS, text.expect("letters and digits make a header value"));
    }
}

/// Extra attempts that the next hop reports, or `None` if it says nothing readable.
pub(super) fn used(headers: &HeaderMap) -> Option<u32> {
    fields::number(headers, &ATTEMPTS, "used")
}

/// The peer's "do not retry this". A mark whose scope can't be read is one still: whoever sent it wanted no retry.
pub(super) fn stop_mark(headers: &HeaderMap) -> Option<StopScope> {
    if headers.contains_key(STOP) {
        return Some(match fields::member(headers, &STOP, "scope") {
            Some(b"service") => StopScope::Service,
            Some(b"chain") => StopScope::Chain,
            _ => StopScope::Host,
        });
    }
    headers.contains_key(RATE_LIMITED).then_some(StopScope::Service)
}

/// Takes from a response what was meant for this hop. A stop mark for the whole chain is passed up.
pub(super) fn consume(headers: &mut HeaderMap) {
    headers.remove(ATTEMPTS);
    if headers.contains_key(STOP) && stop_mark(headers) != Some(StopScope::Chain) {
        headers.remove(STOP);
    }
}

/// Rounded down, and never 0: that would mean "no bound" to some. An attempt too short for this isn't started.
fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// What the caller wrote himself only ever lowers the time told.
fn milliseconds(value: &HeaderValue) -> Option<u64> {
    value.to_str().ok()?.parse().ok().filter(|told| *told > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&HeaderName, &'static str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| ((*name).clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn times_are_rounded_down_and_never_zero() {
        assert_eq!(whole_milliseconds(Duration::from_micros(1999)), 1);
        assert_eq!(whole_milliseconds(Duration::from_micros(999)), 1);
        assert_eq!(whole_milliseconds(Duration::from_millis(250)), 250);
        assert_eq!(whole_milliseconds(Duration::MAX), u64::MAX);
    }

    #[test]
    fn stop_marks_of_every_scope() {
        for (field, scope) in [
            ("scope=host, reason=budget", StopScope::Host),
            ("reason=breaker, scope=service", StopScope::Service),
            ("scope=chain", StopScope::Chain),
            ("reason=budget", StopScope::Host),
            ("scope=galaxy", StopScope::Host),
            ("%&/", StopScope::Host),
        ] {
            assert_eq!(stop_mark(&headers(&[(&STOP, field)])), Some(scope), "{field}");
        }
        assert_eq!(stop_mark(&headers(&[(&RATE_LIMITED, "true")])), Some(StopScope::Service));
        assert_eq!(stop_mark(&headers(&[])), None);
    }

    #[test]
    fn only_a_mark_for_the_chain_is_passed_up() {
        for (field, passed) in [("scope=host", false), ("scope=service", false), ("scope=chain", true)] {
            let mut headers = headers(&[(&STOP, field), (&ATTEMPTS, "used=1")]);
            consume(&mut headers);
            assert_eq!((headers.contains_key(STOP), headers.contains_key(ATTEMPTS)), (passed, false));
        }
    }
}
