//! Failed responses: handed on untouched at a refusal, kept over a wait, and off their connection meanwhile.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use relent::http::{HttpRetryLayer, RetryBody, Stopped};
use relent::timer::Manual;
use relent::{Deposit, PolicyBuilder, Ratio, RatioConfig, RetriesOnlyConfig, StopReason};
use tower::{Layer, ServiceExt};

use super::client::{BOTH, Call, Handle, hyper_client, passing, policy, reqwest_client, retry};
use super::connection::OneConnection;
use super::server::{Act, Server, reply};

const SECOND: Duration = Duration::from_secs(1);

fn get(server: &Server) -> Request<Empty<Bytes>> {
    Request::get(server.url()).body(Empty::new()).unwrap()
}

/// Waits a second before each retry.
fn patient() -> PolicyBuilder {
    policy().base(SECOND).cap(SECOND)
}

/// Lets a spawned call go on until it waits.
async fn until_it_waits(retry: &Handle) {
    while retry.waiting() == 0 {
        tokio::task::yield_now().await;
    }
}

/// A policy, a method, the answer to it, and why it is the last.
type Refusal<'a> = (PolicyBuilder, &'a Method, u16, &'a [(&'a str, &'a str)], StopReason);

/// P4, P5, P38, P68: whoever says no, the caller gets what the server said.
#[tokio::test]
async fn p5_every_refusal_hands_on_the_servers_response() {
    let no_budget =
        RatioConfig { deposit: Deposit::Success, reserve: Some(0), ..RatioConfig::new(Ratio::percent(10)) };
    let touchy = RetriesOnlyConfig { minimum_calls: 1, ..RetriesOnlyConfig::DEFAULT };
    let get = Method::GET;
    let cases: [Refusal<'_>; 9] = [
        (policy(), &get, 404, &[], StopReason::NotRetryable),
        (policy(), &get, 503, &[("relent-stop", "scope=chain")], StopReason::StoppedByPeer),
        (policy(), &Method::POST, 503, &[], StopReason::UnsafeToRepeat),
        (policy().replay_limit(2), &Method::PUT, 503, &[], StopReason::NotReplayable),
        (policy().attempts(1), &get, 503, &[], StopReason::AttemptsExhausted),
        (policy(), &get, 503, &[("retry-after", "3600")], StopReason::HintTooLong),
        (policy().deadline(SECOND), &get, 503, &[("retry-after", "2")], StopReason::DeadlineTooClose),
        (policy().breaker(touchy), &get, 503, &[], StopReason::BreakerOpen),
        (policy().budget(no_budget), &get, 503, &[], StopReason::BudgetExhausted),
    ];
    for (through, (policy, method, status, headers, reason)) in
        BOTH.into_iter().flat_map(|through| cases.clone().into_iter().map(move |case| (through, case)))
    {
        let time = Manual::new();
        let server = Server::start([Act::Answer(reply(status, headers, "{\"why\": \"because\"}"))]);
        let body = if *method == Method::GET { "" } else { "body" };
        let call = Call::new(method.clone(), server.url()).body(body);
        let outcome = through.call(retry(policy, &time), call).await;
        assert_eq!(outcome.reason, Some(reason));
        assert_eq!(
            (outcome.status, &outcome.body[..]),
            (Some(status), &b"{\"why\": \"because\"}"[..]),
            "{reason:?}"
        );
        assert_eq!((outcome.attempts, server.requests().len()), (1, 1), "{reason:?}");
        assert_eq!(time.elapsed(), Duration::ZERO, "{reason:?}");
    }
}

#[tokio::test]
async fn p68_b14_after_the_last_attempt_the_last_response_comes_back() {
    for through in BOTH {
        let time = Manual::new();
        let script = ["one", "two", "three"].map(|body| Act::Answer(reply(503, &[], body)));
        let server = Server::start(script);
        let outcome =
            passing(&time, through.call(retry(policy(), &time), Call::new(Method::GET, server.url()))).await;
        assert_eq!((outcome.status, &outcome.body[..]), (Some(503), &b"three"[..]));
        assert_eq!((outcome.reason, outcome.attempts), (Some(StopReason::AttemptsExhausted), 3));
    }
}

#[tokio::test]
async fn p64_no_header_of_a_failed_attempt_gets_through() {
    let time = Manual::new();
    let script = || {
        [(503, "a"), (200, "b")]
            .map(|(status, cookie)| Act::Answer(reply(status, &[("set-cookie", cookie)], "")))
    };
    let server = Server::start(script());
    let service = HttpRetryLayer::new(retry(policy(), &time)).layer(hyper_client());
    let response = passing(&time, service.oneshot(get(&server))).await.unwrap();
    assert_eq!(Vec::from_iter(response.headers().get_all("set-cookie")), ["b"]);
    assert!(response.extensions().get::<Stopped>().is_none());

    let server = Server::start(script());
    let client = reqwest_client(retry(policy(), &time));
    let response = passing(&time, client.send(client.inner().get(server.url()))).await.unwrap();
    assert_eq!(Vec::from_iter(response.headers().get_all("set-cookie")), ["b"]);
}

/// A pool of one connection: while one call waits, another one goes through, time standing still.
#[tokio::test]
async fn b8_b20_a_short_response_gives_its_connection_back_for_the_wait() {
    let (time, body) = (Manual::new(), "x".repeat(16 * 1024));
    let server = Server::start([Act::Answer(reply(503, &[], &body)), Act::ok(), Act::ok()]);
    let retry = retry(patient(), &time);
    let service = HttpRetryLayer::new(retry.clone()).layer(OneConnection::new(&server));
    let first = tokio::spawn(service.clone().oneshot(get(&server)));
    until_it_waits(&retry).await;
    assert_eq!(service.oneshot(get(&server)).await.unwrap().status(), StatusCode::OK);
    assert!(!first.is_finished());

    time.advance(SECOND);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!((server.seen().connections, server.requests().len()), (1, 3));
    assert!(server.requests().iter().all(|request| request.connection == 0));
}

#[tokio::test]
async fn b20_a_long_response_costs_its_connection_at_once() {
    // So long that nobody on the way has all of it at hand.
    let (time, body) = (Manual::new(), "x".repeat(8 << 20));
    let server = Server::start([Act::Answer(reply(503, &[], &body)), Act::ok(), Act::ok()]);
    let retry = retry(patient(), &time);
    let service = HttpRetryLayer::new(retry.clone()).layer(OneConnection::new(&server));
    let first = tokio::spawn(service.clone().oneshot(get(&server)));
    until_it_waits(&retry).await;
    assert_eq!(service.oneshot(get(&server)).await.unwrap().status(), StatusCode::OK);
    assert!(!first.is_finished());

    time.advance(SECOND);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    let connections: Vec<_> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1, 1]);
}

/// What never ends is cut off when the wait is over.
#[tokio::test]
async fn an_unfinished_response_costs_its_connection_when_the_wait_ends() {
    let time = Manual::new();
    let mut cut = reply(503, &[], "0123456789");
    cut.truncate(cut.len() - 3);
    let server = Server::start([Act::Answer(cut), Act::ok()]);
    let retry = retry(patient(), &time);
    let service = HttpRetryLayer::new(retry.clone()).layer(OneConnection::new(&server));
    let first = tokio::spawn(service.oneshot(get(&server)));
    until_it_waits(&retry).await;
    time.advance(SECOND);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
    let connections: Vec<_> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1]);
}

/// All that describes a body.
const OF_A_BODY: [(&str, &str); 7] = [
    ("content-encoding", "identity"),
    ("etag", "\"7\""),
    ("content-md5", "x"),
    ("digest", "x"),
    ("content-digest", "x"),
    ("repr-digest", "x"),
    ("x-mark", "1"),
];

/// A call that is refused after its wait, since its time is up by then. Answers headers, body, and the reason.
async fn refused_after_the_wait(
    answer: Vec<u8>,
    method: Method,
    finished: bool,
) -> (HeaderMap, Bytes, Stopped) {
    let time = Manual::new();
    let server = Server::start([Act::Answer(answer)]);
    let retry = retry(patient().deadline(5 * SECOND), &time);
    let client = OneConnection::new(&server);
    let service = HttpRetryLayer::new(retry.clone()).layer(client.clone());
    let request = Request::builder().method(method).uri(server.url()).body(Empty::<Bytes>::new()).unwrap();
    let call = tokio::spawn(service.oneshot(request));
    until_it_waits(&retry).await;
    if finished {
        client.idle().await;
    }
    time.advance(10 * SECOND);
    let response = call.await.unwrap().unwrap();
    assert_eq!((response.status(), server.requests().len()), (StatusCode::SERVICE_UNAVAILABLE, 1));
    let stopped = *response.extensions().get::<Stopped>().unwrap();
    let (parts, body) = response.into_parts();
    (parts.headers, body.collect().await.unwrap().to_bytes(), stopped)
}

#[tokio::test]
async fn a_refusal_after_the_wait_answers_with_what_was_kept() {
    let body = "x".repeat(4000);
    let (headers, kept, stopped) =
        refused_after_the_wait(reply(503, &OF_A_BODY, &body), Method::GET, true).await;
    assert_eq!((&kept[..], stopped.without_body), (body.as_bytes(), false));
    assert_eq!((stopped.reason, stopped.attempts), (StopReason::DeadlineExceeded, 1));
    assert_eq!(stopped.elapsed, 10 * SECOND);
    assert_eq!(headers["content-length"], "4000");
    assert!(OF_A_BODY.iter().all(|(name, value)| headers[*name] == value));
}

#[tokio::test]
async fn a_refusal_after_the_wait_answers_without_what_was_too_long() {
    let long = reply(503, &OF_A_BODY, &"x".repeat(20_000));
    let chunked = [
        &b"HTTP/1.1 503 Busy\r\ntransfer-encoding: chunked\r\nx-mark: 1\r\n\r\n4e20\r\n"[..],
        "x".repeat(20_000).as_bytes(),
        b"\r\n0\r\n\r\n",
    ]
    .concat();
    let mut unfinished = reply(503, &OF_A_BODY, "0123456789");
    unfinished.pop();
    for (answer, finished) in [(long, true), (chunked, true), (unfinished, false)] {
        let (headers, kept, stopped) = refused_after_the_wait(answer, Method::GET, finished).await;
        assert_eq!((&kept[..], stopped.without_body), (&b""[..], true));
        assert_eq!(stopped.reason, StopReason::DeadlineExceeded);
        assert_eq!(Vec::from_iter(headers.keys()), ["x-mark"]);
    }
}

/// A response to HEAD has a length and no body, and nothing is lost.
#[tokio::test]
async fn a_response_without_a_body_is_kept_as_it_is() {
    let body = "x".repeat(20_000);
    let (headers, kept, stopped) =
        refused_after_the_wait(reply(503, &OF_A_BODY, &body), Method::HEAD, true).await;
    assert_eq!((&kept[..], stopped.without_body), (&b""[..], false));
    assert_eq!(headers["content-length"], "20000");
}

/// Kept bytes count in the handle's memory: where there is no room, a response is as good as too long.
#[tokio::test]
async fn kept_responses_count_in_the_memory_of_the_handle() {
    let time = Manual::new();
    let policy = patient().deadline(5 * SECOND).replay_limit(50).replay_total(100);
    let retry = retry(policy, &time);
    let mut calls = Vec::new();
    for length in [60, 60] {
        let server = Server::start([Act::Answer(reply(503, &[], &"x".repeat(length)))]);
        let client = OneConnection::new(&server);
        let service = HttpRetryLayer::new(retry.clone()).layer(client.clone());
        calls.push(tokio::spawn(service.oneshot(get(&server))));
        while retry.waiting() < calls.len() as u32 {
            tokio::task::yield_now().await;
        }
        client.idle().await;
    }
    time.advance(10 * SECOND);
    let mut lost = Vec::new();
    for call in calls {
        lost.push(call.await.unwrap().unwrap().extensions().get::<Stopped>().unwrap().without_body);
    }
    assert_eq!(lost, [false, true]);
}

/// What was kept of a response that turned out to be too long is given back at once.
#[tokio::test]
async fn a_response_that_is_dropped_gives_its_memory_back() {
    let time = Manual::new();
    let retry = retry(patient().deadline(5 * SECOND).replay_limit(50).replay_total(100), &time);
    let chunk = format!("5a\r\n{}\r\n", "x".repeat(90));
    let chunked = format!("HTTP/1.1 503 Busy\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{chunk}0\r\n\r\n");
    let mut calls = Vec::new();
    for answer in [chunked.into_bytes(), reply(503, &[], &"x".repeat(90))] {
        let server = Server::start([Act::Answer(answer)]);
        let client = OneConnection::new(&server);
        calls.push(tokio::spawn(
            HttpRetryLayer::new(retry.clone()).layer(client.clone()).oneshot(get(&server)),
        ));
        while retry.waiting() < calls.len() as u32 {
            tokio::task::yield_now().await;
        }
        client.idle().await;
    }
    time.advance(10 * SECOND);
    let mut lost = Vec::new();
    for call in calls {
        lost.push(call.await.unwrap().unwrap().extensions().get::<Stopped>().unwrap().without_body);
    }
    assert_eq!(lost, [true, false]);
}

/// A body of nothing, for ever, and always at once.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
    }
}

#[tokio::test]
async fn a_response_of_nothing_for_ever_does_not_hold_the_call_up() {
    let time = Manual::new();
    let answers = Arc::new(AtomicBool::new(false));
    let client = tower::service_fn(move |_| {
        let well = answers.swap(true, Ordering::Relaxed);
        let status = if well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        async move { std::io::Result::Ok(Response::builder().status(status).body(Endless).unwrap()) }
    });
    let service = HttpRetryLayer::new(retry(patient(), &time)).layer(client);
    let request = Request::get("http://a.example/").body(Empty::<Bytes>::new()).unwrap();
    assert_eq!(passing(&time, service.oneshot(request)).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_live_body_can_be_had_as_it_is() {
    let server = Server::start([Act::status(404)]);
    let service = HttpRetryLayer::new(retry(policy(), &Manual::new())).layer(hyper_client());
    let response = service.oneshot(get(&server)).await.unwrap();
    let body = RetryBody::into_live(response.into_body()).unwrap();
    assert_eq!(body.collect().await.unwrap().to_bytes(), "because");
}
