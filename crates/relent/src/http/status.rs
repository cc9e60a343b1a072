//! What a response's status means for another attempt.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use relent_core::{Cause, Failure, Health, Hint, Verdict};

use super::retry_after::retry_after;
use super::wire;

/// What a response says of another attempt, or `None` where it is no failure (below 400).
///
/// | status | verdict | health | may have been executed |
/// |---|---|---|---|
/// | 502, 504 | transient | bad | yes: an intermediary gave up on what it had sent |
/// | 500, 503, other 5xx | transient | bad | no: the server answers for itself |
/// | 501, 505 | permanent | bad | no |
/// | 429 | throttled | unknown | no |
/// | 421 | unprocessed (RFC 9110 §15.5.20) | good | no |
/// | 408, 409, 425 | transient, where `retry_on` lists them | good | no |
/// | other 4xx | permanent | good | no |
///
/// A readable `Retry-After` becomes the hint of any of them, and a stop mark is carried along. `now` is the wall clock,
/// for dates in responses that have no `Date` of their own.
///
/// A 409 that says "still running" says so in its body, which is not read here: it counts as any other 409.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use relent::Verdict;
/// use relent::http::failure_of_response;
///
/// let now = std::time::UNIX_EPOCH;
/// let failure = |status| failure_of_response(status, &HeaderMap::new(), now);
/// assert!(failure(StatusCode::NO_CONTENT).is_none());
/// assert_eq!(failure(StatusCode::NOT_FOUND).unwrap().verdict(), Verdict::Permanent);
/// assert!(failure(StatusCode::BAD_GATEWAY).unwrap().is_ambiguous());
/// ```
#[must_use]
pub fn failure_of_response(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Option<Failure> {
    Some(with_fields(failure_of_status(status)?, headers, now))
}

/// The server's own word added: its hint, where the failure has none, and its stop mark.
pub(super) fn with_fields(mut failure: Failure, headers: &HeaderMap, now: SystemTime) -> Failure {
    if let (None, Some(wait)) = (failure.asked(), retry_after(headers, now)) {
        failure = failure.hint(Hint::at_least(wait));
    }
    if let (None, Some(scope)) = (failure.stopped(), wire::stop_mark(headers)) {
        failure = failure.stop(scope);
    }
    failure
}

/// The same from the status alone.
pub(super) fn failure_of_status(status: StatusCode) -> Option<Failure> {
    let code = status.as_u16();
    let failure = match code {
        ..=399 => return None,
        421 => Failure::new(Verdict::Unprocessed).health(Health::Good),
        429 => Failure::new(Verdict::Throttled { hint: None }).cause(Cause::Status(code)),
        408 | 409 | 425 => Failure::new(Verdict::Transient).cause(Cause::Status(code)).health(Health::Good),
        400..=499 => Failure::new(Verdict::Permanent).cause(Cause::Status(code)).health(Health::Good),
        501 | 505 => Failure::new(Verdict::Permanent).cause(Cause::Status(code)).health(Health::Bad),
        502 | 504 => Failure::new(Verdict::Transient).cause(Cause::Status(code)).ambiguous(),
        _ => Failure::new(Verdict::Transient).cause(Cause::Status(code)),
    };
    Some(failure)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::HeaderValue;
    use relent_core::{RetryOn, StopScope};

    use super::*;

    fn of(code: u16, fields: &[(&'static str, &'static str)]) -> Option<Failure> {
        let fields = fields
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        failure_of_response(StatusCode::from_u16(code).unwrap(), &fields.collect(), UNIX_EPOCH)
    }

    #[test]
    fn every_status_has_its_row() {
        let permanent = |health| Failure::new(Verdict::Permanent).health(health);
        let transient = Failure::new(Verdict::Transient);
        for code in 200..600 {
            let cause = Cause::Status(code);
            let expected = match code {
                200..=399 => None,
                408 | 409 | 425 => Some(transient.cause(cause).health(Health::Good)),
                421 => Some(Failure::new(Verdict::Unprocessed).health(Health::Good)),
                429 => Some(Failure::new(Verdict::Throttled { hint: None }).cause(cause)),
                400..=499 => Some(permanent(Health::Good).cause(cause)),
                501 | 505 => Some(permanent(Health::Bad).cause(cause)),
                502 | 504 => Some(transient.cause(cause).ambiguous()),
                _ => Some(transient.cause(cause)),
            };
            assert_eq!(of(code, &[]), expected, "{code}");
        }
    }

    #[test]
    fn only_the_default_statuses_are_retried_by_default() {
        let retried = |code: &u16| {
            let failure = of(*code, &[]).unwrap();
            let verdict = !matches!(failure.verdict(), Verdict::Permanent);
            verdict && RetryOn::default().contains(failure.kind())
        };
        let all: Vec<u16> = (400..600).filter(retried).collect();
        assert_eq!(all, [421, 429, 500, 502, 503, 504]);
    }

    #[test]
    fn hints_and_stop_marks_ride_along() {
        let hint = Hint::at_least(Duration::from_secs(3));
        let busy = of(503, &[("retry-after", "3")]).unwrap();
        assert_eq!(busy, Failure::new(Verdict::Transient).cause(Cause::Status(503)).hint(hint));
        let throttled = of(429, &[("retry-after", "3"), ("x-envoy-ratelimited", "true")]).unwrap();
        assert_eq!(throttled, of(429, &[]).unwrap().hint(hint).stop(StopScope::Service));
        assert_eq!(of(200, &[("retry-after", "3"), ("relent-stop", "scope=chain")]), None);
    }
}
