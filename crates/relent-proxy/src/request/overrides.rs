//! What a trusted peer orders, in the words that Envoy's router knows: the only thing on the wire that can raise a bound.

use std::time::Duration;

use http::HeaderMap;
use http::header::HeaderName;
use relent_core::Policy;

const MAX_RETRIES: HeaderName = HeaderName::from_static("x-envoy-max-retries");
const TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-upstream-rq-timeout-ms");
const PER_TRY_TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-upstream-rq-per-try-timeout-ms");

/// More retries than this nobody orders for one request.
const MOST_RETRIES: u32 = 100;

/// The orders of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    retries: Option<u32>,
    deadline: Option<Duration>,
    attempt_timeout: Option<Duration>,
}

impl Overrides {
    /// What can't be read is no order, and neither is a field that comes twice.
    pub(super) fn read(headers: &HeaderMap) -> Overrides {
        let length = |name| number(headers, name).filter(|told| *told > 0).map(Duration::from_millis);
        let retries = number(headers, &MAX_RETRIES).and_then(|told| u32::try_from(told).ok());
        Overrides {
            retries: retries.filter(|told| *told <= MOST_RETRIES),
            deadline: length(&TIMEOUT),
            attempt_timeout: length(&PER_TRY_TIMEOUT),
        }
    }

    /// `policy` with the orders obeyed; `None`: there are none, or they contradict it or each other.
    pub(crate) fn upon(&self, policy: &Policy) -> Option<Policy> {
        if *self == Overrides::default() {
            return None;
        }
        let mut builder = policy.rebuild();
        if let Some(retries) = self.retries {
            builder = builder.attempts(retries.saturating_add(1));
        }
        if let Some(deadline) = self.deadline {
            builder = builder.deadline(deadline);
            // Without an order of its own, an attempt may take the whole call's time.
            if self.attempt_timeout.is_none() && policy.attempt_timeout().is_some_and(|own| own >= deadline) {
                builder = builder.no_attempt_timeout();
            }
        }
        if let Some(timeout) = self.attempt_timeout {
            builder = builder.attempt_timeout(timeout);
        }
        builder.build().ok()
    }
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let text = value.to_str().ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upon(fields: &[(&'static str, &str)]) -> Option<(u32, Option<Duration>, Option<Duration>)> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().unwrap());
        }
        let policy = Overrides::read(&headers).upon(&Policy::default())?;
        Some((policy.attempts(), policy.attempt_timeout(), policy.deadline()))
    }

    #[test]
    fn orders_are_obeyed_together() {
        let (s, ms) = (Duration::from_secs, Duration::from_millis);
        assert_eq!(upon(&[("x-envoy-max-retries", "5")]), Some((6, Some(s(5)), Some(s(15)))));
        assert_eq!(upon(&[("x-envoy-max-retries", "0")]), Some((1, Some(s(5)), Some(s(15)))));
        assert_eq!(upon(&[("x-envoy-upstream-rq-timeout-ms", "60000")]), Some((3, Some(s(5)), Some(s(60)))));
        assert_eq!(upon(&[("x-envoy-upstream-rq-timeout-ms", "900")]), Some((3, None, Some(ms(900)))));
        assert_eq!(
            upon(&[
                ("x-envoy-upstream-rq-timeout-ms", "900"),
                ("x-envoy-upstream-rq-per-try-timeout-ms", "250")
            ]),
            Some((3, Some(ms(250)), Some(ms(900))))
        );
    }

    #[test]
    fn what_makes_no_sense_is_no_order() {
        for (name, value) in [
            ("x-envoy-max-retries", "many"),
            ("x-envoy-max-retries", "101"),
            ("x-envoy-max-retries", "-1"),
            ("x-envoy-upstream-rq-timeout-ms", "0"),
            ("x-envoy-upstream-rq-per-try-timeout-ms", "20000"),
        ] {
            assert_eq!(upon(&[(name, value)]), None, "{name}: {value}");
        }
        assert_eq!(upon(&[("x-envoy-max-retries", "5"), ("x-envoy-max-retries", "6")]), None);
    }
}
