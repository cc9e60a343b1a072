//! Request bodies on the wire: sent again byte for byte, or not at all.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use relent::http::{HttpRetryLayer, Stopped};
use relent::timer::Manual;
use relent::{Event, PolicyBuilder, RepeatRule, StopReason};
use relent_core::Rng;
use tokio::sync::mpsc;
use tower::{Layer, Service, ServiceExt};

use super::client::{BOTH, Handle, Through, hyper_client, passing, policy, reqwest_client, retry};
use super::server::{Act, Server, reply};
use super::service::Told;

/// A body without a length, that comes as it is sent.
struct Piped(mpsc::UnboundedReceiver<Bytes>);

impl Body for Piped {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk))))
    }
}

fn piped() -> (mpsc::UnboundedSender<Bytes>, Stream) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (sender, Piped(receiver).boxed())
}

/// A body in pieces, with or without a length.
struct Pieces {
    pieces: VecDeque<Bytes>,
    sized: bool,
}

impl Pieces {
    fn of(bytes: &Bytes, sized: bool) -> Stream {
        let pieces = bytes.chunks(333).map(Bytes::copy_from_slice).collect();
        Pieces { pieces, sized }.boxed()
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.pieces.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.pieces.iter().map(|piece| piece.len() as u64).sum();
        if self.sized { SizeHint::with_exact(left) } else { SizeHint::default() }
    }
}

type Stream = BoxBody<Bytes, Infallible>;

fn noise(length: usize) -> Bytes {
    let mut dice = Rng::seeded(length as u64);
    (0..length).map(|_| dice.next() as u8).collect()
}

/// Status, body and reason that a streamed request comes to; no status: an error.
async fn stream(
    through: Through,
    retry: Handle,
    url: String,
    body: Stream,
) -> (Option<u16>, Bytes, Option<StopReason>) {
    let stopped = |stopped: Option<&Stopped>| stopped.map(|stopped| stopped.reason);
    match through {
        Through::Tower => {
            let request = Request::put(url).body(body).unwrap();
            match HttpRetryLayer::new(retry).layer(hyper_client()).oneshot(request).await {
                Err(error) => (None, Bytes::new(), Some(error.reason())),
                Ok(response) => {
                    let (status, reason) = (response.status(), stopped(response.extensions().get()));
                    (Some(status.as_u16()), response.into_body().collect().await.unwrap().to_bytes(), reason)
                }
            }
        }
        Through::Reqwest => {
            let client = reqwest_client(retry);
            let request = client.inner().put(url).body(reqwest::Body::wrap(body));
            match client.send(request).await {
                Err(error) => (None, Bytes::new(), Some(error.reason())),
                Ok(response) => {
                    let (status, reason) = (response.status(), stopped(response.extensions().get()));
                    (Some(status.as_u16()), response.bytes().await.unwrap(), reason)
                }
            }
        }
    }
}

fn limited(limit: u64) -> PolicyBuilder {
    policy().replay_limit(limit)
}

#[tokio::test]
async fn a61_p14_bodies_around_the_limit_are_sent_again_whole_or_not_at_all() {
    const LIMIT: usize = 5000;
    for (through, length, sized) in BOTH
        .into_iter()
        .flat_map(|through| [LIMIT - 1, LIMIT, LIMIT + 1].map(|length| (through, length)))
        .flat_map(|(through, length)| [true, false].map(|sized| (through, length, sized)))
    {
        let (time, body) = (Manual::new(), noise(length));
        let server = Server::start([Act::status(503), Act::ok()]);
        let retry = retry(limited(LIMIT as u64), &time);
        let call = stream(through, retry, server.url(), Pieces::of(&body, sized));
        let (status, answer, reason) = passing(&time, call).await;

        let requests = server.requests();
        assert!(requests.iter().all(|request| request.body == body), "{length}");
        // A length that wasn't known at first may be by then; none is ever wrong.
        let known = [vec![], vec![length.to_string()]];
        assert_eq!(requests[0].header("content-length"), known[usize::from(sized)]);
        assert!(
            requests
                .iter()
                .all(|request| known.iter().any(|known| request.header("content-length") == *known))
        );
        if length <= LIMIT {
            assert_eq!((status, reason, requests.len()), (Some(200), None, 2), "{through:?} {length}");
        } else {
            assert_eq!((status, reason, requests.len()), (Some(503), Some(StopReason::NotReplayable), 1));
            assert_eq!(answer, "because", "P5: the response is the server's");
        }
    }
}

/// reqwest's own bodies in memory stay in memory, and keep to the same limit.
#[tokio::test]
async fn p14_bodies_in_memory_keep_to_the_limit() {
    for (length, requests) in [(999, 2), (1000, 2), (1001, 1)] {
        let (time, body) = (Manual::new(), noise(length));
        let server = Server::start([Act::status(503), Act::ok()]);
        let client = reqwest_client(retry(limited(1000), &time));
        let request = client.inner().put(server.url()).body(body.clone());
        let response = passing(&time, client.send(request)).await.unwrap();
        assert_eq!(response.status(), if requests == 2 { 200 } else { 503 });
        assert_eq!(server.requests().len(), requests);
        assert!(server.requests().iter().all(|request| request.body == body));
    }
}

#[tokio::test]
async fn p13_p16_after_a_refused_connection_a_body_of_any_length_is_sent() {
    for (through, length) in BOTH.into_iter().flat_map(|through| [2, 1 << 20].map(|length| (through, length)))
    {
        let (time, body) = (Manual::new(), noise(length));
        let server = Server::deaf([Act::ok()]);
        let heard = server.clone();
        // A POST, and a limit far below its length: what was never read may be sent all the same.
        let retry = retry(limited(1), &time).on_event(move |event| {
            if matches!(event, Event::Failed { .. }) {
                heard.listen();
            }
        });
        let call = stream(through, retry, server.url(), Pieces::of(&body, true));
        let (status, ..) = passing(&time, call).await;
        assert_eq!((status, server.requests().len()), (Some(200), 1), "{through:?}");
        assert!(server.requests()[0].body == body);
    }
}

#[tokio::test]
async fn p16_a_body_in_memory_over_the_limit_survives_a_refused_connection() {
    let (time, body) = (Manual::new(), noise(1 << 20));
    let server = Server::deaf([Act::ok()]);
    let heard = server.clone();
    let retry = retry(limited(1), &time).on_event(move |_| heard.listen());
    let client = reqwest_client(retry);
    let response = passing(&time, client.send(client.inner().post(server.url()).body(body.clone()))).await;
    assert_eq!(response.unwrap().status(), 200);
    assert!(server.requests()[0].body == body);
}

#[tokio::test]
async fn p13_a_body_half_read_when_the_connection_broke_is_sent_whole() {
    for (through, length) in BOTH.into_iter().flat_map(|through| [2, 1 << 20].map(|length| (through, length)))
    {
        let (time, body) = (Manual::new(), noise(length));
        let server = Server::start([Act::ResetAfter(length / 2), Act::ok()]);
        let call = stream(through, retry(limited(2 << 20), &time), server.url(), Pieces::of(&body, true));
        let (status, ..) = passing(&time, call).await;
        assert_eq!((status, server.requests().len()), (Some(200), 2), "{through:?}");
        assert!(server.requests()[1].body == body);
    }
}

#[tokio::test]
async fn p19_an_early_answer_is_an_answer_though_the_body_goes_on() {
    for through in BOTH {
        let time = Manual::new();
        let server = Server::start([Act::AnswerEarly(reply(413, &[], "too large"))]);
        let (sender, body) = piped();
        sender.send(noise(100)).unwrap();
        let (status, answer, reason) = stream(through, retry(policy(), &time), server.url(), body).await;
        assert_eq!((status, &answer[..]), (Some(413), &b"too large"[..]));
        assert_eq!((reason, server.requests().len()), (Some(StopReason::NotRetryable), 1));
    }
}

#[tokio::test]
async fn p19_an_early_answer_and_the_end_of_the_connection_is_an_answer() {
    for through in BOTH {
        let (time, body) = (Manual::new(), noise(1 << 20));
        let server =
            Server::start([Act::AnswerEarlyAndClose(reply(413, &[("connection", "close")], "too large"))]);
        let call = stream(through, retry(policy(), &time), server.url(), Pieces::of(&body, true));
        let (status, answer, reason) = call.await;
        assert_eq!(
            (status, &answer[..], reason),
            (Some(413), &b"too large"[..], Some(StopReason::NotRetryable))
        );
    }
}

/// The first attempt's connection still reads the body when the second takes it over.
#[tokio::test]
async fn p13_a_body_is_handed_over_while_its_first_half_is_on_the_way() {
    for through in BOTH {
        let time = Manual::new();
        let server = Server::start([Act::AnswerEarly(reply(503, &[], "busy")), Act::ok()]);
        let (sender, body) = piped();
        sender.send(Bytes::from("first half, ")).unwrap();
        let seen = server.clone();
        let rest = async move {
            seen.until(|seen| seen.requests.len() == 2 && !seen.requests[1].head.is_empty()).await;
            sender.send(Bytes::from("second half")).unwrap();
        };
        let call = passing(&time, stream(through, retry(policy(), &time), server.url(), body));
        let ((status, ..), ()) = tokio::join!(call, rest);
        assert_eq!((status, server.requests().len()), (Some(200), 2), "{through:?}");
        assert_eq!(server.requests()[1].body, b"first half, second half");
        // The first connection was told, not left hanging.
        server.until(|seen| seen.closed >= 1).await;
    }
}

/// While a retry waits, the attempt before it may send on what can be kept. Beyond that its connection ends, so that
/// others can have its place, and not a byte is lost to the retry.
#[tokio::test]
async fn p13_during_a_wait_the_old_attempt_does_not_run_away_with_the_body() {
    for through in BOTH {
        let time = Manual::new();
        let server = Server::start([Act::AnswerEarly(reply(503, &[], "busy")), Act::ok()]);
        let second = Duration::from_secs(1);
        let retry = retry(limited(20).base(second).cap(second), &time);
        let (sender, body) = piped();
        sender.send(Bytes::from("first half, ")).unwrap();
        let call = tokio::spawn(stream(through, retry.clone(), server.url(), body));
        while retry.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        sender.send(Bytes::from("and a long second half")).unwrap();
        drop(sender);
        server.until(|seen| seen.closed == 1).await;
        assert!(!call.is_finished());

        time.advance(second);
        assert_eq!(call.await.unwrap().0, Some(200), "{through:?}");
        assert_eq!(server.requests()[1].body, b"first half, and a long second half");
    }
}

/// A body that fails halfway.
struct Failing(bool);

impl Body for Failing {
    type Data = Bytes;
    type Error = std::fmt::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::fmt::Error>>> {
        let first = !std::mem::replace(&mut self.0, true);
        Poll::Ready(Some(if first { Ok(Frame::data(Bytes::from("half"))) } else { Err(std::fmt::Error) }))
    }
}

#[tokio::test]
async fn the_callers_own_failure_is_not_retried() {
    let server = Server::start([Act::ok()]);
    let service = HttpRetryLayer::new(retry(policy(), &Manual::new())).layer(hyper_client());
    let request = Request::put(server.url()).body(Failing(false)).unwrap();
    let error = service.oneshot(request).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts(), error.ambiguous()), (StopReason::NotRetryable, 1, true));
}

#[tokio::test]
async fn once_a_call_is_over_its_body_is_let_go() {
    let time = Manual::new();
    let (sender, body) = piped();
    let mut service = HttpRetryLayer::new(retry(policy(), &time)).layer(Told::new(&time, []));
    poll_fn(|cx| Service::<Request<Stream>>::poll_ready(&mut service, cx)).await.unwrap();
    let mut call = pin!(service.call(Request::put("http://a.example/").body(body).unwrap()));
    assert_eq!(call.as_mut().await.unwrap().status(), 200);
    assert!(sender.is_closed());
}

#[tokio::test]
async fn a59_the_attempts_time_ends_with_the_headers_not_with_the_body() {
    let second = Duration::from_secs(1);
    let large = "x".repeat(8 << 20);
    for through in BOTH {
        let time = Manual::new();
        let server = Server::start([Act::status(503), Act::Answer(reply(200, &[], &large))]);
        let retry = retry(policy().attempt_timeout(second).repeat(RepeatRule::Always), &time);
        // Larger than the buffers on the way: most of it is read when the time is long up.
        let body = match through {
            Through::Tower => {
                let request = Request::builder().method(Method::POST).uri(server.url());
                let mut service = HttpRetryLayer::new(retry).layer(hyper_client());
                let response = service.call(request.body(Full::new(noise(1 << 15))).unwrap()).await.unwrap();
                time.advance(100 * second);
                response.into_body().collect().await.unwrap().to_bytes()
            }
            Through::Reqwest => {
                let client = reqwest_client(retry);
                let response =
                    client.send(client.inner().post(server.url()).body(noise(1 << 15))).await.unwrap();
                time.advance(100 * second);
                response.bytes().await.unwrap()
            }
        };
        assert_eq!((body.len(), server.requests().len()), (large.len(), 2));
    }
}
