//! The header fields that tell how much time a request has.

use std::time::Duration;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use super::wire::EXPECTED_TIMEOUT;
use super::{GRPC_TIMEOUT, grpc_timeout};

/// What a header field of your own counts time in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeUnit {
    /// Whole milliseconds: `250`.
    Milliseconds,
    /// Seconds, with a fraction where there is one: `0.25`.
    Seconds,
}

impl TimeUnit {
    /// The time in the field `name`. One that is missing, doubled or unreadable is `None`, and so is zero, since many say
    /// "no bound" with it.
    pub(super) fn read(self, headers: &HeaderMap, name: &HeaderName) -> Option<Duration> {
        let mut values = headers.get_all(name).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let text = value.as_bytes().trim_ascii();
        let time = match self {
            TimeUnit::Milliseconds => Duration::from_millis(number(text)?),
            TimeUnit::Seconds => seconds(text)?,
        };
        (!time.is_zero()).then_some(time)
    }

    /// Never more than `time`; `None` if that is nothing.
    fn write(self, time: Duration) -> Option<HeaderValue> {
        let milliseconds = time.as_millis();
        let text = match (self, milliseconds) {
            (_, 0) => return None,
            (TimeUnit::Milliseconds, _) => milliseconds.min(u64::MAX.into()).to_string(),
            (TimeUnit::Seconds, _) if time.subsec_millis() == 0 => time.as_secs().to_string(),
            (TimeUnit::Seconds, _) => format!("{}.{:03}", time.as_secs(), time.subsec_millis()),
        };
        Some(HeaderValue::try_from(text).expect("digits and a dot make a header value"))
    }
}

fn number(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if digits { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

fn seconds(text: &[u8]) -> Option<Duration> {
    const MOST_DIGITS: usize = 9;
    let mut halves = text.splitn(2, |byte| *byte == b'.');
    let whole = Duration::from_secs(number(halves.next()?)?);
    let Some(fraction) = halves.next() else { return Some(whole) };
    let power = MOST_DIGITS.checked_sub(fraction.len())?;
    let nanoseconds = number(fraction)? * 10_u64.pow(u32::try_from(power).ok()?);
    whole.checked_add(Duration::from_nanos(nanoseconds))
}

/// Which fields tell time, on either side: gRPC's own for gRPC; Envoy's, and one of the user's.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeFields {
    own: Option<(HeaderName, TimeUnit)>,
}

impl TimeFields {
    pub(super) fn also(&mut self, name: HeaderName, unit: TimeUnit) {
        self.own = Some((name, unit));
    }

    /// The least of what a request tells.
    pub(super) fn read(&self, headers: &HeaderMap) -> Option<Duration> {
        let grpc = if grpc_timeout::is_grpc(headers) { grpc_timeout::time_given(headers) } else { None };
        let envoy = TimeUnit::Milliseconds.read(headers, &EXPECTED_TIMEOUT);
        let own = self.own.as_ref().and_then(|(name, unit)| unit.read(headers, name));
        [grpc, envoy, own].into_iter().flatten().min()
    }

    /// Tells no more than `time`, nor more than the request told already. `None`: that is nothing, and nothing is told.
    pub(super) fn write(&self, headers: &mut HeaderMap, time: Duration) -> Option<()> {
        let time = self.read(headers).unwrap_or(time).min(time);
        let own = match &self.own {
            Some((name, unit)) => Some((name, unit.write(time)?)),
            None => None,
        };
        if grpc_timeout::is_grpc(headers) {
            headers.insert(GRPC_TIMEOUT, grpc_timeout::format(time)?);
        } else {
            headers.insert(EXPECTED_TIMEOUT, TimeUnit::Milliseconds.write(time)?);
        }
        if let Some((name, text)) = own {
            headers.insert(name, text);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    const OWN: HeaderName = HeaderName::from_static("request-timeout");

    fn headers(fields: &[(&HeaderName, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn read(unit: TimeUnit, text: &'static str) -> Option<Duration> {
        unit.read(&headers(&[(&OWN, text)]), &OWN)
    }

    #[test]
    fn times_are_read_by_their_unit() {
        let (ms, s) = (TimeUnit::Milliseconds, TimeUnit::Seconds);
        assert_eq!(read(ms, "250"), Some(Duration::from_millis(250)));
        assert_eq!(read(ms, "18446744073709551615"), Some(Duration::from_millis(u64::MAX)));
        assert_eq!(read(s, "3"), Some(Duration::from_secs(3)));
        assert_eq!(read(s, "0.25"), Some(Duration::from_millis(250)));
        assert_eq!(read(s, "1.000000001"), Some(Duration::new(1, 1)));
        for bad in ["", "0", "-1", "+1", "1 2", "1,2", "1e3", "18446744073709551616", "250ms", "0x10"] {
            assert_eq!((read(ms, bad), read(s, bad)), (None, None), "{bad}");
        }
        for bad in ["1.5", "."] {
            assert_eq!(read(ms, bad), None, "{bad}");
        }
        for bad in [".", "1.", ".5", "1.0000000001", "1.-5", "0.0"] {
            assert_eq!(read(s, bad), None, "{bad}");
        }
    }

    #[test]
    fn a_doubled_field_counts_as_absent() {
        let doubled = headers(&[(&OWN, "5"), (&OWN, "5")]);
        assert_eq!(TimeUnit::Seconds.read(&doubled, &OWN), None);
    }

    #[test]
    fn what_is_written_never_says_more() {
        let write = |unit: TimeUnit, time| unit.write(time).map(|value| value.to_str().unwrap().to_owned());
        let time = Duration::from_micros(1_999_999);
        assert_eq!(write(TimeUnit::Milliseconds, time).as_deref(), Some("1999"));
        assert_eq!(write(TimeUnit::Seconds, time).as_deref(), Some("1.999"));
        assert_eq!(write(TimeUnit::Seconds, Duration::from_secs(2)).as_deref(), Some("2"));
        assert_eq!(write(TimeUnit::Seconds, Duration::from_micros(999)), None);
        assert_eq!(write(TimeUnit::Milliseconds, Duration::MAX).as_deref(), Some("18446744073709551615"));
    }

    #[test]
    fn the_least_of_all_fields_holds() {
        let mut fields = TimeFields::default();
        fields.also(OWN, TimeUnit::Seconds);
        let told = |told: &[(&HeaderName, &'static str)]| fields.read(&headers(told));
        let grpc = (&CONTENT_TYPE, "application/grpc");
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[(&OWN, "1"), (&EXPECTED_TIMEOUT, "900")]), Some(Duration::from_millis(900)));
        assert_eq!(told(&[(&GRPC_TIMEOUT, "1m")]), None, "it is gRPC's alone");
        assert_eq!(told(&[grpc, (&GRPC_TIMEOUT, "1m"), (&OWN, "1")]), Some(Duration::from_millis(1)));
        assert_eq!(told(&[grpc, (&GRPC_TIMEOUT, "0m")]), Some(Duration::ZERO));
        assert_eq!(told(&[grpc, (&GRPC_TIMEOUT, "soon"), (&OWN, "1")]), Some(Duration::from_secs(1)));
    }

    #[test]
    fn what_was_told_is_only_lowered() {
        let mut fields = TimeFields::default();
        fields.also(OWN, TimeUnit::Seconds);
        let mut told = headers(&[(&OWN, "1"), (&EXPECTED_TIMEOUT, "5000")]);
        assert_eq!(fields.write(&mut told, Duration::from_secs(3)), Some(()));
        assert_eq!(told, headers(&[(&OWN, "1"), (&EXPECTED_TIMEOUT, "1000")]));
        assert_eq!(fields.write(&mut told, Duration::from_millis(30)), Some(()));
        assert_eq!(told, headers(&[(&OWN, "0.030"), (&EXPECTED_TIMEOUT, "30")]));
        let before = told.clone();
        assert_eq!(fields.write(&mut told, Duration::from_micros(30)), None);
        assert_eq!(told, before);
    }
}
