//! What a gRPC status means for another attempt.

use std::time::SystemTime;

use http::header::{HeaderMap, HeaderName};
use http::{StatusCode, header, response};
use relent_core::{Cause, Failure, GrpcCode, Health, Hint, StopScope, Verdict};

use super::pushback::Pushback;
use crate::http::{failure_of_response as failure_of_http, grpc_timeout::is_grpc, wire};

/// How a call ended: a number, in trailers or in the head of a response that has nothing else.
pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The status in these headers or trailers; `None` where there is none. One that can't be read, and a number that gRPC
/// does not know, are [`GrpcCode::Unknown`].
#[must_use]
pub fn code_of(headers: &HeaderMap) -> Option<GrpcCode> {
    let value = headers.get(GRPC_STATUS)?;
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    Some(number.and_then(GrpcCode::numbered).unwrap_or(GrpcCode::Unknown))
}

/// The status that an HTTP answer without one stands for (gRPC's own table: "HTTP to gRPC Status Code Mapping").
#[must_use]
pub fn code_of_http(status: StatusCode) -> GrpcCode {
    match status.as_u16() {
        200 => GrpcCode::Ok,
        400 => GrpcCode::Internal,
        401 => GrpcCode::Unauthenticated,
        403 => GrpcCode::PermissionDenied,
        404 => GrpcCode::Unimplemented,
        429 | 502 | 503 | 504 => GrpcCode::Unavailable,
        _ => GrpcCode::Unknown,
    }
}

/// What a status and the metadata beside it say of another attempt; `None` for [`GrpcCode::Ok`].
///
/// | code | verdict | health | may have been executed |
/// |---|---|---|---|
/// | UNAVAILABLE, INTERNAL, UNKNOWN, DATA_LOSS | transient | bad | no: the server answers for itself |
/// | DEADLINE_EXCEEDED | transient | bad | yes |
/// | CANCELLED | transient | unknown | yes |
/// | RESOURCE_EXHAUSTED | throttled | unknown | no |
/// | all others | transient | good: the server did its work | no |
///
/// *Transient* here says no more than that the policy decides: only codes that its `retry_on` names are retried, by default
/// UNAVAILABLE and RESOURCE_EXHAUSTED. A [`Pushback`] becomes an exact hint, or a stop for the whole service; relent's
/// and Envoy's stop marks are carried along.
///
/// ```
/// use http::HeaderMap;
/// use relent::grpc::failure_of_code;
/// use relent::{Cause, GrpcCode, RetryOn};
///
/// let retried = |code| {
///     let failure = failure_of_code(code, &HeaderMap::new()).expect("it is none");
///     RetryOn::default().contains(failure.kind())
/// };
/// assert!(retried(GrpcCode::Unavailable) && retried(GrpcCode::ResourceExhausted));
/// assert!(!retried(GrpcCode::Aborted) && !retried(GrpcCode::Internal));
/// assert_eq!(failure_of_code(GrpcCode::Ok, &HeaderMap::new()), None);
/// ```
#[must_use]
pub fn failure_of_code(code: GrpcCode, metadata: &HeaderMap) -> Option<Failure> {
    let transient = Failure::new(Verdict::Transient);
    let failure = match code {
        GrpcCode::Ok => return None,
        GrpcCode::Unavailable | GrpcCode::Internal | GrpcCode::Unknown | GrpcCode::DataLoss => transient,
        GrpcCode::DeadlineExceeded => transient.ambiguous(),
        GrpcCode::Cancelled => transient.ambiguous().health(Health::Unknown),
        GrpcCode::ResourceExhausted => Failure::new(Verdict::Throttled { hint: None }),
        _ => transient.health(Health::Good),
    };
    Some(told(failure.cause(Cause::Grpc(code)), metadata))
}

/// What the head of a response says of another attempt; `None` where it is no failure, or none yet. `now` is the wall
/// clock, for dates in `Retry-After`.
///
/// A `grpc-status` goes before all else. Without one, an HTTP status that is not 200 means what it means for HTTP (its
/// health, its `Retry-After`, whether it may have been executed), and is retried if the policy retries the status code that
/// it stands for ([`code_of_http`]); and a 200 whose content is not gRPC's is UNKNOWN.
#[must_use]
pub fn failure_of_response(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Option<Failure> {
    failure_of_head(status, headers, || now)
}

/// The same of a whole head.
pub(super) fn failure_of_parts(head: &response::Parts, now: impl FnOnce() -> SystemTime) -> Option<Failure> {
    failure_of_head(head.status, &head.headers, now)
}

fn failure_of_head(
    status: StatusCode,
    headers: &HeaderMap,
    now: impl FnOnce() -> SystemTime,
) -> Option<Failure> {
    if let Some(code) = code_of(headers) {
        return failure_of_code(code, headers);
    }
    if status == StatusCode::OK {
        let foreign = headers.contains_key(header::CONTENT_TYPE) && !is_grpc(headers);
        return if foreign { failure_of_code(GrpcCode::Unknown, headers) } else { None };
    }
    // A redirect, or whatever else is no answer to a call.
    let failure = failure_of_http(status, headers, now()).unwrap_or(Failure::new(Verdict::Permanent));
    Some(told(failure.cause(Cause::Grpc(code_of_http(status))), headers))
}

/// Adds what the server asks for.
fn told(failure: Failure, metadata: &HeaderMap) -> Failure {
    let failure = match wire::stop_mark(metadata) {
        Some(scope) => failure.stop(scope),
        None => failure,
    };
    match Pushback::read(metadata) {
        Some(Pushback::After(wait)) => failure.hint(Hint::exactly(wait)),
        Some(Pushback::Stop) => failure.stop(StopScope::Service),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::HeaderValue;
    use relent_core::RetryOn;

    use super::*;

    fn of(status: u16, fields: &[(&'static str, &'static str)]) -> Option<Failure> {
        let fields = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        failure_of_response(StatusCode::from_u16(status).unwrap(), &fields.collect(), UNIX_EPOCH)
    }

    fn cause(failure: Option<Failure>) -> Option<Cause> {
        failure.map(|failure| failure.kind())
    }

    #[test]
    fn every_code_has_its_row() {
        let transient = Failure::new(Verdict::Transient);
        for code in GrpcCode::all().skip(1) {
            let expected = match code.number() {
                2 | 13 | 14 | 15 => transient,
                4 => transient.ambiguous(),
                1 => transient.ambiguous().health(Health::Unknown),
                8 => Failure::new(Verdict::Throttled { hint: None }),
                _ => transient.health(Health::Good),
            };
            assert_eq!(failure_of_code(code, &HeaderMap::new()), Some(expected.cause(Cause::Grpc(code))));
        }
    }

    #[test]
    fn a_status_goes_before_all_else() {
        assert_eq!(of(200, &[]), None);
        assert_eq!(of(200, &[("grpc-status", "0")]), None);
        assert_eq!(of(503, &[("grpc-status", "0")]), None);
        assert_eq!(cause(of(503, &[("grpc-status", "5")])), Some(Cause::Grpc(GrpcCode::NotFound)));
        for unreadable in ["", "17", "-1", "1x", "99999999999999999999"] {
            let failure = of(200, &[("grpc-status", unreadable)]);
            assert_eq!(cause(failure), Some(Cause::Grpc(GrpcCode::Unknown)), "{unreadable}");
        }
    }

    #[test]
    fn without_a_status_the_http_answer_stands_for_one() {
        for (status, code) in [
            (204, GrpcCode::Unknown),
            (302, GrpcCode::Unknown),
            (400, GrpcCode::Internal),
            (401, GrpcCode::Unauthenticated),
            (403, GrpcCode::PermissionDenied),
            (404, GrpcCode::Unimplemented),
            (418, GrpcCode::Unknown),
            (429, GrpcCode::Unavailable),
            (500, GrpcCode::Unknown),
            (502, GrpcCode::Unavailable),
            (503, GrpcCode::Unavailable),
            (504, GrpcCode::Unavailable),
        ] {
            let failure = of(status, &[]).unwrap();
            let retried = matches!(failure.verdict(), Verdict::Transient | Verdict::Throttled { .. })
                && RetryOn::default().contains(failure.kind());
            assert_eq!(
                (failure.kind(), retried),
                (Cause::Grpc(code), code == GrpcCode::Unavailable),
                "{status}"
            );
        }
        assert!(of(504, &[]).unwrap().is_ambiguous());
        assert_eq!(cause(of(200, &[("content-type", "text/html")])), Some(Cause::Grpc(GrpcCode::Unknown)));
        assert_eq!(of(200, &[("content-type", "application/grpc+proto")]), None);
    }

    #[test]
    fn what_the_server_asks_for_rides_along() {
        let plain = of(200, &[("grpc-status", "14")]).unwrap();
        let asked = of(200, &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "300")]).unwrap();
        assert_eq!(asked, plain.hint(Hint::exactly(Duration::from_millis(300))));
        let stopped = of(200, &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "-1")]).unwrap();
        assert_eq!(stopped, plain.stop(StopScope::Service));
        let marked = of(200, &[("grpc-status", "14"), ("relent-stop", "scope=chain")]).unwrap();
        assert_eq!(marked, plain.stop(StopScope::Chain));
        let later = of(503, &[("retry-after", "2")]).unwrap();
        assert_eq!(later, of(503, &[]).unwrap().hint(Hint::at_least(Duration::from_secs(2))));
    }
}
