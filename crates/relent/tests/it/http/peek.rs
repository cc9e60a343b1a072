//! Responses that are judged by the caller's own rules, and bodies that are looked into and handed on whole.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use relent::http::{HttpRetryLayer, Stopped};
use relent::timer::Manual;
use relent::{Cause, Failure, Hint, StopReason, Verdict};
use tower::{Layer, ServiceExt, service_fn};

use super::client::{Handle, passing, policy, retry};
use super::service::{Told, answer};

const MILLI: Duration = Duration::from_millis(1);

/// What a body does next.
#[derive(Clone, Debug)]
enum Next {
    Data(&'static str),
    Trailer,
    Break,
    Hang,
}

#[derive(Clone, Debug)]
struct Scripted(VecDeque<Next>);

impl Body for Scripted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let trailer = || HeaderMap::from_iter([(http::header::ETAG, "x".parse().unwrap())]);
        match self.0.pop_front() {
            None => Poll::Ready(None),
            Some(Next::Data(data)) => Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(data.as_bytes()))))),
            Some(Next::Trailer) => Poll::Ready(Some(Ok(Frame::trailers(trailer())))),
            Some(Next::Break) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            Some(Next::Hang) => {
                self.0.push_front(Next::Hang);
                Poll::Pending
            }
        }
    }
}

type Layered = HttpRetryLayer<relent::Standard, Manual>;

/// A 429 says in JSON when to come back.
fn hint_in_json(handle: Handle, limit: u64) -> Layered {
    HttpRetryLayer::new(handle).peek_body(
        limit,
        [StatusCode::TOO_MANY_REQUESTS, StatusCode::OK],
        |parts, body| {
            let text = std::str::from_utf8(body).ok()?;
            if parts.status == StatusCode::OK {
                return text.contains("errors").then(|| Verdict::Transient.into());
            }
            let wait = text.strip_prefix("{\"retry_in\":")?.strip_suffix('}')?.parse().ok()?;
            let hint = Hint::exactly(Duration::from_secs(wait));
            Some(Failure::new(Verdict::Throttled { hint: Some(hint) }).cause(Cause::Status(429)))
        },
    )
}

/// A call to a server that answers by this script and then with an empty 204; and how often it was asked.
async fn call(
    time: &Manual,
    layer: Layered,
    script: impl IntoIterator<Item = (u16, Vec<Next>)>,
) -> (Response<relent::http::RetryBody<Scripted>>, usize) {
    let script: Arc<Mutex<VecDeque<_>>> = Arc::new(Mutex::new(script.into_iter().collect()));
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let service = layer.layer(service_fn(move |_| {
        *count.lock().unwrap() += 1;
        let (status, body) = script.lock().unwrap().pop_front().unwrap_or((204, Vec::new()));
        let response = Response::builder().status(status).body(Scripted(body.into())).unwrap();
        async move { Ok::<_, io::Error>(response) }
    }));
    let request = Request::get("http://a.example/").body(Empty::<Bytes>::new()).unwrap();
    let response = passing(time, service.oneshot(request)).await.unwrap();
    let asked = *asked.lock().unwrap();
    (response, asked)
}

fn status<B>(response: &Response<B>) -> u16 {
    response.status().as_u16()
}

fn reason<B>(response: &Response<B>) -> Option<StopReason> {
    response.extensions().get::<Stopped>().map(|stopped| stopped.reason)
}

#[tokio::test]
async fn a62_a_hint_in_a_json_body_is_kept_to() {
    let time = Manual::new();
    let script = [(429, vec![Next::Data("{\"retry_"), Next::Data("in\":3}")])];
    let (response, asked) = call(&time, hint_in_json(retry(policy(), &time), 64), script).await;
    assert_eq!((status(&response), asked, time.elapsed()), (204, 2, Duration::from_secs(3)));
}

#[tokio::test]
async fn a62_what_was_looked_into_is_handed_on_whole() {
    let body = || vec![Next::Data("{\"retry_"), Next::Data("in\":3600}"), Next::Trailer];
    let time = Manual::new();
    let (response, _) = call(&time, hint_in_json(retry(policy(), &time), 64), [(429, body())]).await;
    assert_eq!(reason(&response), Some(StopReason::HintTooLong));
    assert_eq!(response.body().size_hint().exact(), Some(17));
    let whole = response.into_body().collect().await.unwrap();
    assert!(whole.trailers().is_some_and(|trailers| trailers.contains_key("etag")));
    assert_eq!(whole.to_bytes(), "{\"retry_in\":3600}");
    // Also one that is kept over a wait, since the retry then finds no time.
    let time = Manual::new();
    let impatient = policy().attempts(2);
    let script = [(429, vec![Next::Data("{\"retry_in\":1}")]), (429, vec![Next::Data("{\"retry_in\":2}")])];
    let (response, asked) = call(&time, hint_in_json(retry(impatient, &time), 64), script).await;
    assert_eq!((reason(&response), asked), (Some(StopReason::AttemptsExhausted), 2));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "{\"retry_in\":2}");
}

#[tokio::test]
async fn a_success_that_says_otherwise_in_its_body_is_retried_and_another_streams_on() {
    let time = Manual::new();
    let script =
        [(200, vec![Next::Data("{\"errors\":1}")]), (200, vec![Next::Data("fine"), Next::Data(".")])];
    let (response, asked) = call(&time, hint_in_json(retry(policy(), &time), 64), script).await;
    assert_eq!((status(&response), reason(&response), asked), (200, None, 2));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "fine.");
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_judged_and_comes_whole() {
    let time = Manual::new();
    // Of 8 bytes the first frame fits, the second one does not.
    let long = vec![Next::Data("errors"), Next::Data(" and more"), Next::Data(" and more"), Next::Trailer];
    let (response, asked) = call(&time, hint_in_json(retry(policy(), &time), 8), [(200, long)]).await;
    assert_eq!((status(&response), reason(&response), asked), (200, None, 1));
    let whole = response.into_body().collect().await.unwrap();
    assert!(whole.trailers().is_some());
    assert_eq!(whole.to_bytes(), "errors and more and more");
}

#[tokio::test]
async fn a_body_that_breaks_off_breaks_off_for_the_caller_too() {
    let time = Manual::new();
    let script = [(200, vec![Next::Data("errors"), Next::Break])];
    let (response, asked) = call(&time, hint_in_json(retry(policy(), &time), 64), script).await;
    assert_eq!((status(&response), asked), (200, 1));
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "errors");
    assert!(!body.is_end_stream());
    assert_eq!(body.frame().await.unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn a_body_that_does_not_come_in_time_is_not_waited_for() {
    let time = Manual::new();
    let handle = retry(policy().attempt_timeout(20 * MILLI), &time);
    let script = [(200, vec![Next::Data("errors"), Next::Hang])];
    let (response, asked) = call(&time, hint_in_json(handle, 64), script).await;
    assert_eq!((status(&response), reason(&response), asked, time.elapsed()), (200, None, 1, 20 * MILLI));
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "errors");
}

#[tokio::test]
async fn only_the_named_statuses_are_looked_into() {
    let time = Manual::new();
    let (response, _) = call(
        &time,
        hint_in_json(retry(policy(), &time), 64),
        [(404, vec![Next::Data("errors"), Next::Hang])],
    )
    .await;
    assert_eq!((status(&response), reason(&response)), (404, Some(StopReason::NotRetryable)));
    assert!(response.into_body().into_live().is_ok());
}

/// The attempts that a policy of three makes, by a rule on status and headers.
async fn by_parts<const N: usize>(
    answers: [(u16, &[(&str, &str)]); N],
) -> (Vec<Duration>, Option<StopReason>) {
    let time = Manual::new();
    let told = Told::new(&time, answers.map(|(status, headers)| answer(status, headers)));
    let layer =
        HttpRetryLayer::new(retry(policy(), &time)).classify_response(|parts| match parts.status.as_u16() {
            200 if parts.headers.contains_key("x-partial") => Some(Verdict::Transient),
            503 if parts.headers.contains_key("x-for-good") => Some(Verdict::Permanent),
            408 => Some(Verdict::Transient),
            _ => None,
        });
    let request = Request::get("http://a.example/").body(Empty::<Bytes>::new()).unwrap();
    let response = passing(&time, layer.layer(told.clone()).oneshot(request)).await.unwrap();
    (told.times(), reason(&response))
}

#[tokio::test]
async fn a_rule_on_status_and_headers_goes_before_the_ones_for_all() {
    let attempts = |(times, reason): (Vec<Duration>, _)| (times.len(), reason);
    assert_eq!(attempts(by_parts([(200, &[("x-partial", "1")])]).await), (2, None));
    assert_eq!(
        attempts(by_parts([(503, &[("x-for-good", "1")])]).await),
        (1, Some(StopReason::NotRetryable))
    );
    // Not in `retry_on`, which is asked about known causes only.
    assert_eq!(attempts(by_parts([(408, &[])]).await), (2, None));
    assert_eq!(attempts(by_parts([(503, &[])]).await), (2, None), "the rest goes by the usual rules");
    assert_eq!(attempts(by_parts([(404, &[])]).await), (1, Some(StopReason::NotRetryable)));
}

#[tokio::test]
async fn the_servers_own_word_counts_for_such_a_failure_too() {
    let (times, _) = by_parts([(200, &[("x-partial", "1"), ("retry-after", "4")])]).await;
    assert!(times[1] >= Duration::from_secs(4), "{times:?}");
    let stopped = by_parts([(200, &[("x-partial", "1"), ("relent-stop", "scope=host")])]).await;
    assert_eq!((stopped.0.len(), stopped.1), (1, Some(StopReason::StoppedByPeer)));
}

/// A dropped call drops the body that it was looking into.
#[tokio::test]
async fn a_dropped_call_lets_go_of_the_body() {
    struct Held(Arc<()>);
    impl Body for Held {
        type Data = Bytes;
        type Error = Infallible;
        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let _ = &self.0;
            Poll::Pending
        }
    }
    let time = Manual::new();
    let held = Arc::new(());
    let body = Arc::clone(&held);
    let service = hint_in_json(retry(policy(), &time), 64).layer(service_fn(move |_| {
        let response = Response::new(Held(Arc::clone(&body)));
        async move { Ok::<_, io::Error>(response) }
    }));
    let request = Request::get("http://a.example/").body(Empty::<Bytes>::new()).unwrap();
    let mut call = Box::pin(service.oneshot(request));
    assert!(futures_poll(&mut call).is_pending());
    assert_eq!(Arc::strong_count(&held), 3, "here, in the service, and in the body");
    drop(call);
    assert_eq!(Arc::strong_count(&held), 1);
}

fn futures_poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(std::task::Waker::noop()))
}
