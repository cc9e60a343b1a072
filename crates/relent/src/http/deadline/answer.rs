//! What a caller is told whose time was up, in his own protocol.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body::Body;

use super::body::DeadlineBody;
use crate::http::{grpc_timeout, wire};
use crate::timer::Timer;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

const REFUSED: &str = "the deadline had passed before the request was handled; nothing was run";
const CUT_OFF: &str = "the deadline passed while the request was handled";

/// How a caller is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Http,
    Grpc,
    /// gRPC without trailers of HTTP's: browsers.
    GrpcWeb,
}

impl Dialect {
    pub(super) fn of(headers: &HeaderMap) -> Dialect {
        const WEB: &[u8] = b"application/grpc-web";
        if !grpc_timeout::is_grpc(headers) {
            return Dialect::Http;
        }
        let start = headers.get(CONTENT_TYPE).and_then(|value| value.as_bytes().get(..WEB.len()));
        let web = start.is_some_and(|start| start.eq_ignore_ascii_case(WEB));
        if web { Dialect::GrpcWeb } else { Dialect::Grpc }
    }

    /// The answer to a request that was not handled.
    pub(super) fn refused<B, T: Timer>(self, granted: Option<u32>) -> Response<DeadlineBody<B, T>>
    where
        B: Body,
    {
        self.answer(REFUSED, granted.map(|_| 0))
    }

    /// The answer to one whose handler was dropped.
    pub(super) fn cut_off<B, T: Timer>(self, used: Option<u32>) -> Response<DeadlineBody<B, T>>
    where
        B: Body,
    {
        self.answer(CUT_OFF, used)
    }

    /// What ends a body that is not complete: trailers, where they say more than a broken body does.
    pub(super) fn trailers(self) -> Option<HeaderMap> {
        (self == Dialect::Grpc).then(|| exceeded(CUT_OFF))
    }

    fn answer<B, T: Timer>(self, detail: &'static str, used: Option<u32>) -> Response<DeadlineBody<B, T>>
    where
        B: Body,
    {
        let mut response = match self {
            Dialect::Http => {
                let mut response = Response::new(DeadlineBody::text(problem(detail)));
                *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
                let problem = HeaderValue::from_static("application/problem+json");
                response.headers_mut().insert(CONTENT_TYPE, problem);
                response
            }
            // Trailers-only: the status stands in the head, and nothing follows it.
            grpc => {
                let mut response = Response::new(DeadlineBody::text(Bytes::new()));
                *response.headers_mut() = exceeded(detail);
                let web = grpc == Dialect::GrpcWeb;
                let name = if web { "application/grpc-web" } else { "application/grpc" };
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(name));
                response
            }
        };
        if let Some(used) = used {
            wire::report(response.headers_mut(), used);
        }
        response
    }
}

/// gRPC's status DEADLINE_EXCEEDED.
fn exceeded(detail: &'static str) -> HeaderMap {
    HeaderMap::from_iter([
        (GRPC_STATUS, HeaderValue::from_static("4")),
        (GRPC_MESSAGE, HeaderValue::from_static(detail)),
    ])
}

/// RFC 9457.
fn problem(detail: &str) -> Bytes {
    Bytes::from(format!(r#"{{"title":"Gateway Timeout","status":504,"detail":"{detail}"}}"#))
}
