//! When a call is committed: a head without a status, a request longer than is kept; and the look at the first frame.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Frame;
use http_body_util::BodyExt;
use relent::grpc::GrpcRetryLayer;
use relent::{Event, Retry, StopReason};

use super::server::{Act, Ended, Server, Stopwatch, always, by, call, ending, message, request, status};

const HEAD: Act = Act::Head(200, Vec::new());

fn failing_trailers() -> Act {
    Act::Trailers(vec![("grpc-status", "14"), ("why", "restart")])
}

fn peeking(longest: u64) -> GrpcRetryLayer {
    GrpcRetryLayer::new(Retry::new(always().build().unwrap()))
        .peek_first_frame(Duration::from_millis(longest))
}

/// All that is left of an answer: its message, its status in the trailers.
async fn rest(ended: Ended) -> (String, Option<String>) {
    let collected = ended.unwrap().into_body().collect().await.unwrap();
    let status = collected.trailers().and_then(|trailers| trailers.get("grpc-status")).cloned();
    let text = String::from_utf8(collected.to_bytes().to_vec()).unwrap();
    (text, status.map(|status| status.to_str().unwrap().to_owned()))
}

/// P20: a server that sends metadata before it fails has turned retries off, by the letter of A6.
#[tokio::test(start_paused = true)]
async fn p20_a_head_without_a_status_commits() {
    let server = Server::new([vec![Act::Read, HEAD, failing_trailers()]]);
    let ended = by(always(), &server).await;
    assert_eq!(ending(&ended), (None, None));
    assert_eq!(rest(ended).await, (String::new(), Some("14".into())));
    assert_eq!(server.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn p20_a_look_at_the_first_frame_sees_a_status_in_the_trailers() {
    let late = vec![Act::Read, HEAD, Act::Wait(50), failing_trailers()];
    let server = Server::new([late.clone(), message("answer")]);
    let ended = call(&peeking(100), &server, request()).await;
    assert_eq!((rest(ended).await, server.times()), (("answer".into(), Some("0".into())), vec![0, 60]));

    // The last one comes back whole, its status in the head.
    let server = Server::new((0..4).map(|_| late.clone()));
    let ended = call(&peeking(100), &server, request()).await;
    assert_eq!(ending(&ended), (Some("14"), Some((StopReason::AttemptsExhausted, 4))));
    assert_eq!(ended.as_ref().unwrap().headers()["why"], "restart");
    assert_eq!(rest(ended).await, (String::new(), None));
}

#[tokio::test(start_paused = true)]
async fn a_message_commits_and_nothing_of_it_is_lost() {
    let acts = vec![
        Act::Read,
        HEAD,
        Act::Data(""),
        Act::Data("half"),
        Act::Wait(500),
        Act::Data("whole"),
        failing_trailers(),
    ];
    let server = Server::new([acts]);
    let ended = call(&peeking(100), &server, request()).await;
    assert_eq!(rest(ended).await, ("halfwhole".into(), Some("14".into())));

    // Also where there is no message, and all is well.
    let server = Server::new([vec![Act::Read, HEAD, Act::Trailers(vec![("grpc-status", "0")])]]);
    let ended = call(&peeking(100), &server, request()).await;
    assert_eq!(rest(ended).await, (String::new(), Some("0".into())));
}

#[tokio::test(start_paused = true)]
async fn the_look_is_bounded_by_its_own_time_and_by_the_attempts() {
    let late = vec![Act::Read, HEAD, Act::Wait(1000), failing_trailers()];
    let server = Server::new([late.clone()]);
    let began = Stopwatch::start();
    let ended = call(&peeking(100), &server, request()).await;
    assert_eq!(began.elapsed(), Duration::from_millis(100));
    assert_eq!(rest(ended).await, (String::new(), Some("14".into())));

    // An answer that has begun is one: the attempt's time does not take it away.
    let retry = Retry::new(always().attempt_timeout(Duration::from_millis(300)).build().unwrap());
    let layer = GrpcRetryLayer::new(retry).peek_first_frame(Duration::from_secs(10));
    let server = Server::new([late]);
    let began = Stopwatch::start();
    let ended = call(&layer, &server, request()).await;
    assert_eq!((began.elapsed(), server.count()), (Duration::from_millis(300), 1));
    assert_eq!(rest(ended).await, (String::new(), Some("14".into())));
}

/// A caller who has more to say may be waiting for the head: no look.
#[tokio::test(start_paused = true)]
async fn there_is_no_look_while_the_caller_speaks() {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel::<Bytes>();
    let stream = Receiver(receiver);
    sender.send("first".into()).unwrap();
    let server = Server::new([vec![HEAD, Act::Wait(50), failing_trailers()]]);
    let began = Stopwatch::start();
    let request = Request::post("/shop.Prices/Watch").body(stream).unwrap();
    let ended = call(&peeking(100), &server, request).await;
    assert_eq!((ending(&ended), began.elapsed()), ((None, None), Duration::ZERO));
    drop(sender);
}

/// A body that is never known to be over.
struct Receiver(tokio::sync::mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Receiver {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A68: a request that is longer than is kept is committed, and the call says so.
#[tokio::test(start_paused = true)]
async fn a68_a_request_longer_than_is_kept_is_committed_and_told() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&events);
    let retry = Retry::new(always().replay_limit(4).build().unwrap())
        .on_event(move |event| heard.lock().unwrap().push(*event));
    let server = Server::new([status("14")]);
    let ended = call(&GrpcRetryLayer::new(retry), &server, request()).await;
    assert_eq!(ending(&ended), (Some("14"), Some((StopReason::NotReplayable, 1))));
    let events = events.lock().unwrap();
    let told =
        |event: &Event| matches!(event, Event::Stopped(stop) if stop.reason == StopReason::NotReplayable);
    assert!(events.iter().any(told), "{events:?}");
}

/// grpc-go's "multiple successive requests": what was said before the failure is said again, and then the stream goes on.
#[tokio::test(start_paused = true)]
async fn a_stream_is_replayed_and_goes_on() {
    let body = Chunks(["1", "2", "3"].into());
    let server =
        Server::new([vec![Act::Head(200, vec![("grpc-status", "14")])], status("14"), message("answer")]);
    let request = Request::post("/shop.Prices/Watch").body(body).unwrap();
    let layer = GrpcRetryLayer::new(Retry::new(always().build().unwrap()));
    let ended = call(&layer, &server, request).await;
    assert_eq!(rest(ended).await.0, "answer");
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, ["", "123", "123"]);
}

/// Frames, one after another.
struct Chunks(std::collections::VecDeque<&'static str>);

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes())))))
    }
}
