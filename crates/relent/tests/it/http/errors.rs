//! Errors, however deeply wrapped, and what they mean.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use relent::http::HttpRetryLayer;
use relent::timer::Manual;
use relent::{Boxed, Cause, Classify, Standard, StopReason, Verdict};
use tower::{Layer, ServiceExt};

use super::client::{hyper_client, policy, retry};
use super::service::Told;

#[derive(Debug)]
struct Wrapped(Box<dyn Error + Send + Sync>);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wrapped")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

fn wrapped(error: impl Error + Send + Sync + 'static, depth: usize) -> Wrapped {
    (1..depth).fold(Wrapped(error.into()), |inner, _| Wrapped(inner.into()))
}

#[test]
fn a29_a_timeout_is_known_at_any_depth() {
    let failure = Standard.classify(&wrapped(io::Error::from(ErrorKind::TimedOut), 4));
    assert_eq!((failure.verdict(), failure.kind()), (Verdict::Transient, Cause::Timeout));
    assert!(failure.is_ambiguous());
}

#[test]
fn what_an_io_error_wraps_is_looked_into() {
    let refused = reqwest_refusal();
    let inside = io::Error::other(wrapped(io::Error::other(refused), 3));
    assert_eq!(Standard.classify(&inside).verdict(), Verdict::Rejected);
}

/// An error of reqwest's own making, before anything is sent.
fn reqwest_refusal() -> reqwest::Error {
    reqwest::Client::new().get("no URL").build().unwrap_err()
}

#[test]
fn a_request_that_cannot_be_built_was_never_sent() {
    let failure = Standard.classify(&reqwest_refusal());
    assert_eq!((failure.verdict(), failure.is_ambiguous()), (Verdict::Rejected, false));
    let invalid = Request::builder().header("in valid", "x").body(()).unwrap_err();
    assert_eq!(Standard.classify(&invalid).verdict(), Verdict::Rejected);
}

/// hyper-util refuses these itself.
#[tokio::test]
async fn a_request_that_the_client_will_not_send_was_never_sent() {
    for request in
        [Request::get("/relative"), Request::get("http://a.example/").version(http::Version::HTTP_09)]
    {
        let service = HttpRetryLayer::new(retry(policy(), &Manual::new())).layer(hyper_client());
        let error = service.oneshot(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap_err();
        assert_eq!(
            (error.reason(), error.attempts(), error.ambiguous()),
            (StopReason::NotRetryable, 1, false)
        );
    }
}

#[tokio::test]
async fn an_error_that_nobody_knows_is_not_retried_and_may_have_been_executed() {
    let time = Manual::new();
    let told = Told::new(&time, [Err(io::Error::other("what is this"))]);
    let service = HttpRetryLayer::new(retry(policy(), &time)).layer(told.clone());
    let error = service.oneshot(Request::new(Empty::<Bytes>::new())).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts(), error.ambiguous()), (StopReason::NotRetryable, 1, true));
}

#[tokio::test]
async fn boxed_errors_are_looked_into() {
    let time = Manual::new();
    let told = Told::new(&time, [Err(ErrorKind::ConnectionReset.into())]);
    let boxed = tower::ServiceBuilder::new().map_err(tower::BoxError::from).service(told.clone());
    let service = HttpRetryLayer::new(retry(policy(), &time).classify(Boxed)).layer(boxed);
    assert_eq!(service.oneshot(Request::new(Empty::<Bytes>::new())).await.unwrap().status(), 200);
    assert_eq!(told.times().len(), 2);
}

#[tokio::test]
async fn a58_the_last_real_error_comes_back_untouched() {
    let time = Manual::new();
    let told = Told::new(
        &time,
        (0..3).map(|n| Err(io::Error::new(ErrorKind::ConnectionReset, format!("reset {n}")))),
    );
    let service = HttpRetryLayer::new(retry(policy(), &time)).layer(told);
    let error = service.oneshot(Request::new(Empty::<Bytes>::new())).await.unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts(), error.ambiguous()),
        (StopReason::AttemptsExhausted, 3, true)
    );
    assert_eq!(error.source().unwrap().to_string(), "reset 2");
}
