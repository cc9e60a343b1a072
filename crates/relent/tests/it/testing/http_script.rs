//! An HTTP server in memory, through the HTTP layer.

use std::io;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use relent::http::{HttpRetryLayer, Stopped};
use relent::testing::{self, HttpScript, Recorder};
use relent::timer::Manual;
use relent::{Policy, Retry, StopReason};
use tower::{Layer, Service};

use crate::rig::{ms, unbounded};

fn put(body: &str) -> Request<Full<Bytes>> {
    Request::put("http://orders.test/7")
        .header("x-who", "me")
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap()
}

#[test]
fn it_writes_down_what_it_was_asked_and_answers_in_order() {
    let (server, took) = testing::block_on(async |time| {
        let server = HttpScript::on(&time)
            .answers(503)
            .header("retry-after", "2")
            .body("busy")
            .takes(ms(5))
            .refuses()
            .breaks()
            .takes(ms(7))
            .answers(200)
            .header("x-from", "here")
            .body("done");
        let retry =
            Retry::with_timer(unbounded(4).jitter(relent::Jitter::None).build().unwrap(), time).seed(1);
        let mut client = HttpRetryLayer::new(retry).layer(server.clone());
        let response = client.call(put("amount=5")).await.unwrap();
        assert_eq!(
            (response.status(), &response.headers()["x-from"]),
            (StatusCode::OK, &"here".parse().unwrap())
        );
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "done");
        server
    });
    let seen = server.seen();
    assert_eq!(seen.iter().map(|seen| seen.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(seen.iter().all(|seen| seen.method == "PUT" && seen.headers["x-who"] == "me"));
    // The one that got no connection was not read.
    assert_eq!(
        seen.iter().map(|seen| (&seen.body[..], seen.whole)).collect::<Vec<_>>(),
        [(&b"amount=5"[..], true), (&b""[..], false), (&b"amount=5"[..], true), (&b"amount=5"[..], true),]
    );
    assert_eq!((seen[0].body_hash, seen[0].body_length), (seen[3].body_hash, 8));
    assert_ne!(seen[0].body_hash, seen[1].body_hash);
    assert!(seen[1].at >= ms(2005) && took >= ms(2005 + 10 + 7 + 10), "{took:?}");
    assert_eq!(server.left(), 0);
}

#[test]
fn a_request_that_is_cut_off_was_seen_too() {
    let (server, _) = testing::block_on(async |time| {
        let server = HttpScript::on(&time).times_out().then_always(204);
        let policy = Policy::constant(ms(10)).attempt_timeout(ms(100)).build().unwrap();
        let mut client = HttpRetryLayer::new(Retry::with_timer(policy, time)).layer(server.clone());
        assert_eq!(client.call(put("x")).await.unwrap().status(), StatusCode::NO_CONTENT);
        server
    });
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn a_body_that_breaks_off_is_the_readers_error() {
    let (error, _) = testing::block_on(async |time| {
        let mut server = HttpScript::on(&time).answers(200).body("half").breaks_in_body();
        let body = server.call(put("")).await.unwrap().into_body();
        assert!(!http_body::Body::is_end_stream(&body));
        body.collect().await.unwrap_err()
    });
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn the_reason_of_a_refusal_is_on_the_last_response_and_in_the_record() {
    let time = Manual::new();
    let recorder = Recorder::new(&time);
    let server = HttpScript::on(&time).then_always(503).recorded_by(&recorder);
    let policy = Policy::constant(ms(10)).jitter(relent::Jitter::None).attempts(2).build().unwrap();
    let retry = Retry::with_timer(policy, time.clone()).on_event(recorder.listener());
    let response = time.run(HttpRetryLayer::new(retry).layer(server).call(put("x"))).unwrap();
    let stopped = response.extensions().get::<Stopped>().unwrap();
    assert_eq!((stopped.reason, stopped.attempts), (StopReason::AttemptsExhausted, 2));
    assert_eq!(
        recorder.lines(),
        [
            "0ms launch 1",
            "0ms fail 1 transient cause=503",
            "0ms wait until 10ms by backoff",
            "10ms launch 2",
            "10ms fail 2 transient cause=503",
            "10ms stop AttemptsExhausted attempts=2",
        ]
    );
}

#[test]
#[should_panic(expected = "the script has 1 answers, and one request more was sent")]
fn a_request_beyond_the_end_is_told() {
    testing::block_on(async |time| {
        let mut server = HttpScript::on(&time).answers(200);
        let _ = server.call(put("")).await;
        let _ = server.call(put("")).await;
    });
}
