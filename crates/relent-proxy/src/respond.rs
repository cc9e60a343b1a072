//! Every error becomes a response here, and nowhere else.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use relent_core::{Cause, Stop, StopReason};
use serde_json::{Map, Value, json};

use crate::client::BodyFault;
use crate::framing::FaultKind;

/// A body of one text.
#[derive(Debug)]
pub(crate) struct OneText(Option<Bytes>);

impl OneText {
    pub(crate) fn new(text: Bytes) -> OneText {
        OneText(Some(text).filter(|text| !text.is_empty()))
    }
}

impl Body for OneText {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|text| Ok(Frame::data(text))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |text| text.len() as u64))
    }
}

/// Why the proxy itself has to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// What was sent is no proper request.
    BadRequest(&'static str),
    /// CONNECT.
    NoTunnels,
    /// No route is for this host, path and method.
    NoRoute,
    /// As many requests are in flight as are borne.
    Overloaded,
    /// The client's own body came to no end.
    Body(BodyFault),
    /// No attempt had an answer.
    Unanswered {
        stop: Stop,
        /// How the last attempt failed; `None`: none was made.
        cause: Option<Cause>,
        /// The last error, in words for the log; a client is not told what is behind the proxy.
        error: String,
    },
    /// A defect of the proxy.
    Panicked,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Refusal::BadRequest(_) => StatusCode::BAD_REQUEST,
            Refusal::NoTunnels => StatusCode::NOT_IMPLEMENTED,
            Refusal::NoRoute => StatusCode::NOT_FOUND,
            Refusal::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::Body(BodyFault::Stalled) => StatusCode::REQUEST_TIMEOUT,
            Refusal::Body(BodyFault::BrokenOff) => StatusCode::BAD_REQUEST,
            Refusal::Unanswered { stop, cause, .. } => unanswered(*stop, *cause),
            Refusal::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What was wrong, for the client.
    fn detail(&self) -> String {
        match self {
            Refusal::BadRequest(what) => (*what).to_owned(),
            Refusal::NoTunnels => "CONNECT is not for a reverse proxy".to_owned(),
            Refusal::NoRoute => "no route is for this host, path and method".to_owned(),
            Refusal::Overloaded => "too many requests are in flight".to_owned(),
            Refusal::Body(fault) => fault.to_string(),
            Refusal::Unanswered { stop, cause: Some(cause), .. } => {
                format!("no answer from the upstream ({cause}); {}", stop.reason)
            }
            Refusal::Unanswered { stop, .. } => stop.reason.to_string(),
            Refusal::Panicked => "the proxy failed".to_owned(),
        }
    }

    /// What was wrong, for the log.
    pub(crate) fn error(&self) -> String {
        match self {
            Refusal::Unanswered { error, .. } if !error.is_empty() => error.clone(),
            _ => self.detail(),
        }
    }

    /// The answer.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let status = self.status();
        let mut problem = problem(status, &self.detail());
        if let Refusal::Unanswered { stop, .. } = self {
            problem.insert("attempts".to_owned(), json!(stop.attempts));
            problem.insert("stop".to_owned(), json!(stop.reason.name()));
            problem.insert("ambiguous".to_owned(), json!(stop.ambiguous));
        }
        let mut response = Response::new(Bytes::from(Value::Object(problem).to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        if let Refusal::BadRequest(_) | Refusal::Body(_) = self {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

const PROBLEM: &str = "application/problem+json";

/// RFC 9457.
fn problem(status: StatusCode, detail: &str) -> Map<String, Value> {
    let title = status.canonical_reason().unwrap_or("Error");
    let fields = [("title", json!(title)), ("status", json!(status.as_u16())), ("detail", json!(detail))];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// 502 and 504 say that the request may have been executed; 503 says that it was not. A layer above goes by that.
fn unanswered(stop: Stop, cause: Option<Cause>) -> StatusCode {
    match (stop.reason, cause) {
        (StopReason::DeadlineExceeded, _) => StatusCode::GATEWAY_TIMEOUT,
        _ if !stop.ambiguous => StatusCode::SERVICE_UNAVAILABLE,
        (_, Some(Cause::Timeout)) => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::BAD_GATEWAY,
    }
}

/// The bytes that answer a head which hyper is not to see.
pub(crate) fn refused_head(kind: FaultKind) -> Vec<u8> {
    let status = StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let body = Value::Object(problem(status, &kind.to_string())).to_string();
    let head = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {PROBLEM}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        status.as_u16(),
        status.canonical_reason().unwrap_or("Error"),
        body.len()
    );
    head.into_bytes()
}
