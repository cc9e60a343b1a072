//! Streams that are refused, left out, reset or left; connections that drain, are full, or dead.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Seen, plainly};
use crate::rig::PLAIN;
use crate::rig::clock::{Watch, sleep};
use crate::rig::h2::{Endpoints, Frame, GOAWAY, H2Client, H2Rig, Stream, connect, raw, request};

/// An endpoint that answers streams 1, 3 and 5, and then goes away, so that 7 and 9 are not processed.
fn going_away_after_five(posts: &Seen<(usize, u32)>) -> Endpoints {
    let posts = Arc::clone(posts);
    Endpoints::new(move |connection, io| {
        let posts = Arc::clone(&posts);
        let mut waiting = 0;
        raw(io, move |frame, writer| {
            if !frame.ends_stream() {
                return true;
            }
            let say = |bytes| drop(writer.send(Some(bytes)));
            if connection > 0 || frame.stream <= 5 {
                posts.lock().unwrap().push((connection, frame.stream));
                say(Frame::answer(frame.stream, 200, &[]));
                return true;
            }
            waiting += 1;
            if waiting == 2 {
                say(Frame::goaway(5));
            }
            true
        })
    })
}

#[tokio::test(start_paused = true)]
async fn p59_streams_above_the_last_id_are_repeated_for_any_method() {
    let processed = Seen::default();
    // Free even of the only attempt.
    let rig = H2Rig::new("attempts = 1\nbudget = \"none\"\n", going_away_after_five(&processed));
    let client = rig.connect().await;
    for _ in 0..3 {
        assert_eq!(client.send(request("POST"), b"5").await.unwrap().status, 200);
    }
    let watch = Watch::start();
    let both = tokio::join!(client.send(request("POST"), b"7"), client.send(request("POST"), b"9"));
    assert_eq!((both.0.unwrap().status, both.1.unwrap().status), (200, 200));
    assert_eq!(watch.elapsed(), Duration::ZERO, "at once");
    let processed = processed.lock().unwrap();
    assert_eq!(processed[..], [(0, 1), (0, 3), (0, 5), (1, 1), (1, 3)], "each once");
    assert_eq!((rig.metric("relent_retries_total"), rig.metric("relent_free_repeats_total")), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn p59_an_endpoint_that_drains_gets_no_new_streams() {
    // One that says GOAWAY while the first request is in flight, and answers that later.
    let seen = Seen::default();
    let posts = Arc::clone(&seen);
    let endpoints = Endpoints::new(move |connection, io| {
        let posts = Arc::clone(&posts);
        raw(io, move |frame, writer| {
            if !frame.ends_stream() {
                return true;
            }
            posts.lock().unwrap().push((connection, frame.stream));
            let (stream, writer) = (frame.stream, writer.clone());
            tokio::spawn(async move {
                if connection == 0 {
                    drop(writer.send(Some(Frame::goaway(stream))));
                    sleep(Duration::from_secs(3)).await;
                }
                drop(writer.send(Some(Frame::answer(stream, 200, &[]))));
            });
            true
        })
    });
    let rig = H2Rig::new("attempts = 1\nbudget = \"none\"\n", endpoints);
    let client = rig.connect().await;
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.send(request("POST"), b"slow").await.unwrap().status }
    });
    sleep(Duration::from_secs(1)).await;
    for _ in 0..5 {
        assert_eq!(client.send(request("POST"), b"next").await.unwrap().status, 200);
    }
    assert_eq!(slow.await.unwrap(), 200);
    assert_eq!(seen.lock().unwrap()[..], [(0, 1), (1, 1), (1, 3), (1, 5), (1, 7), (1, 9)]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_stream_is_an_ordinary_retry_of_any_method() {
    let refusing = |mut stream: Stream| async move {
        if stream.number < 2 {
            stream.respond.send_reset(Reason::REFUSED_STREAM)
        } else {
            stream.answer(200, "done")
        }
    };
    let rig = H2Rig::new(PLAIN, Endpoints::streams(plainly(), refusing));
    let watch = Watch::start();
    let answer = rig.connect().await.send(request("POST"), b"5").await.unwrap();
    assert_eq!((answer.text(), answer.field("relent-outcome")), ("done", Some("stop=Succeeded, attempts=3")));
    assert_eq!(watch.elapsed(), Duration::from_millis(300), "it waits");
    assert_eq!((rig.metric("relent_retries_total"), rig.upstream.connections()), (2, 1));

    let refusing = |mut stream: Stream| async move { stream.respond.send_reset(Reason::REFUSED_STREAM) };
    let rig = H2Rig::new(PLAIN, Endpoints::streams(plainly(), refusing));
    let answer = rig.connect().await.send(request("POST"), b"5").await.unwrap();
    assert_eq!((answer.status, rig.metric("relent_attempts_total")), (503, 3));
    assert_eq!(answer.field("relent-outcome"), Some("stop=AttemptsExhausted, attempts=3"));
}

#[tokio::test(start_paused = true)]
async fn a_retry_that_need_not_wait_is_none_that_is_free() {
    let refusing = |mut stream: Stream| async move { stream.respond.send_reset(Reason::REFUSED_STREAM) };
    let policy = "attempts = 3\nbackoff = { base = \"0ms\", jitter = \"none\" }\nbudget = \"none\"\n";
    let rig = H2Rig::new(policy, Endpoints::streams(plainly(), refusing));
    assert_eq!(rig.connect().await.get().await.unwrap().status, 503);
    assert_eq!((rig.metric("relent_retries_total"), rig.metric("relent_free_repeats_total")), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_reset_may_have_been_executed() {
    let cancelling = |mut stream: Stream| async move { stream.respond.send_reset(Reason::CANCEL) };
    let rig = H2Rig::new(PLAIN, Endpoints::streams(plainly(), cancelling));
    let answer = rig.connect().await.send(request("POST"), b"5").await.unwrap();
    assert_eq!((answer.status, rig.metric("relent_attempts_total")), (502, 1));
    assert_eq!(answer.field("relent-outcome"), Some("stop=UnsafeToRepeat, attempts=1, ambiguous"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_resets_a_stream_cancels_that_attempt_alone() {
    let seen = Seen::default();
    let resets = Arc::clone(&seen);
    let rig = H2Rig::new(
        PLAIN,
        Endpoints::streams(plainly(), move |mut stream| {
            let resets = Arc::clone(&resets);
            async move {
                let number = stream.number;
                tokio::select! {
                    reason = std::future::poll_fn(|cx| stream.respond.poll_reset(cx)) => {
                        resets.lock().unwrap().push((number, reason.unwrap()));
                    }
                    () = sleep(Duration::from_secs(2)) => stream.answer(200, "done"),
                }
            }
        }),
    );
    let client = rig.connect().await;
    let (one, mut cancelled) = client.begin(request("GET")).await;
    cancelled.send_data(Bytes::new(), true).unwrap();
    let (other, mut kept) = client.begin(request("GET")).await;
    kept.send_data(Bytes::new(), true).unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(rig.metric("relent_requests_in_flight"), 2);
    cancelled.send_reset(Reason::CANCEL);
    drop(one);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(seen.lock().unwrap()[..], [(0, Reason::CANCEL)], "the endpoint is told");
    assert_eq!(rig.metric("relent_requests_in_flight"), 1);
    assert_eq!(H2Client::answer(other).await.unwrap().text(), "done");
    assert_eq!((rig.metric("relent_attempts_total"), rig.upstream.connections()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn p77_draining_sends_goaway_and_finishes_the_streams() {
    let slow = |mut stream: Stream| async move {
        sleep(Duration::from_secs(2)).await;
        stream.answer(200, "done");
    };
    let rig = H2Rig::new(PLAIN, Endpoints::streams(plainly(), slow));
    let (tap, frames) = Tap::new(connect(&rig.engine));
    let client = H2Client::over(tap).await;
    let (response, mut body) = client.begin(request("GET")).await;
    body.send_data(Bytes::new(), true).unwrap();
    sleep(Duration::from_secs(1)).await;
    let engine = rig.engine.clone();
    let draining = tokio::spawn(async move { engine.drain().await });
    assert_eq!(H2Client::answer(response).await.unwrap().text(), "done");
    assert_eq!(draining.await.unwrap(), 0, "nothing was cut");
    let last: Vec<u32> = frames.of(GOAWAY).iter().map(goaway).collect();
    assert_eq!(last, [u32::MAX >> 1, 1], "first that no more is taken, and then what was");
    assert_eq!(client.ended(), Some(Ok(())));
}

/// The last stream, and no error.
fn goaway(frame: &Frame) -> u32 {
    assert_eq!(frame.payload[4..8], [0; 4], "no error");
    u32::from_be_bytes(frame.payload[..4].try_into().unwrap())
}

/// Answers the first request, and the `many` that follow when all of them are there.
fn together(settings: h2::server::Builder, many: usize) -> Endpoints {
    let all = Arc::new(tokio::sync::Barrier::new(many));
    Endpoints::streams(settings, move |mut stream| {
        let all = Arc::clone(&all);
        async move {
            if stream.number > 0 {
                all.wait().await;
            }
            stream.answer(200, "done");
        }
    })
}

#[tokio::test(start_paused = true)]
async fn more_streams_than_a_connection_bears_open_another() {
    let mut few = plainly();
    few.max_concurrent_streams(40);
    for (settings, many, connections) in [(plainly(), 250, 3), (few, 100, 3)] {
        let rig = H2Rig::new(PLAIN, together(settings, many));
        let clients = [rig.connect().await, rig.connect().await];
        // From now on it is known what the connection bears.
        assert_eq!(clients[0].get().await.unwrap().status, 200);
        let requests = (0..many).map(|number| {
            let client = clients[number % 2].clone();
            tokio::spawn(async move { client.get().await.unwrap().status })
        });
        for answer in requests.collect::<Vec<_>>() {
            assert_eq!(answer.await.unwrap(), 200);
        }
        assert_eq!((rig.upstream.connections(), rig.metric("relent_retries_total")), (connections, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_dead_is_left() {
    // The first connection answers one request, and then nothing: open, but nobody is there.
    let answered = Seen::default();
    let seen = Arc::clone(&answered);
    let endpoints = Endpoints::new(move |connection, io| {
        let seen = Arc::clone(&seen);
        raw(io, move |frame, writer| {
            if connection == 0 && frame.stream > 1 {
                return false;
            }
            if frame.ends_stream() {
                seen.lock().unwrap().push((connection, frame.stream));
                drop(writer.send(Some(Frame::answer(frame.stream, 200, &[]))));
            }
            true
        })
    });
    let rig = H2Rig::new(PLAIN, endpoints);
    let client = rig.connect().await;
    assert_eq!(client.get().await.unwrap().status, 200);
    let answer = client.get().await.unwrap();
    assert_eq!(
        (answer.status, answer.field("relent-outcome")),
        (200, Some("stop=Succeeded, attempts=2, ambiguous"))
    );
    assert_eq!(answered.lock().unwrap()[..], [(0, 1), (1, 1)]);
}

/// Keeps what is read through it.
struct Tap<T> {
    io: T,
    bytes: Arc<Mutex<Vec<u8>>>,
}

/// The frames that came through a tap.
struct Frames(Arc<Mutex<Vec<u8>>>);

impl<T> Tap<T> {
    fn new(io: T) -> (Tap<T>, Frames) {
        let bytes = Arc::default();
        (Tap { io, bytes: Arc::clone(&bytes) }, Frames(bytes))
    }
}

impl Frames {
    fn of(&self, kind: u8) -> Vec<Frame> {
        let bytes = self.0.lock().unwrap();
        let mut rest = &bytes[..];
        let mut frames = Vec::new();
        while rest.len() >= 9 {
            let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
            let stream = u32::from_be_bytes(rest[5..9].try_into().unwrap());
            let payload = rest[9..9 + length].to_vec();
            frames.push(Frame { kind: rest[3], flags: rest[4], stream, payload });
            rest = &rest[9 + length..];
        }
        frames.retain(|frame| frame.kind == kind);
        frames
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Tap<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buffer);
        self.bytes.lock().unwrap().extend_from_slice(&buffer.filled()[before..]);
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Tap<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
