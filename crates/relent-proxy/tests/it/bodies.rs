//! Bodies, streams and upgrades: sent again whole or not at all, and never ended in silence.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::clock::{Watch, sleep};
use crate::rig::{Act, Endpoint, PLAIN, Rig};

fn put(body: &str) -> String {
    format!("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn chunked(method: &str, body: &str) -> String {
    format!(
        "{method} / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    )
}

#[tokio::test(start_paused = true)]
async fn p13_a_body_survives_an_attempt_that_did_not_read_it() {
    for length in [2, 1024 * 1024] {
        let body = "x".repeat(length);
        let rig = Rig::new(PLAIN, [Act::Refuse, Act::ok("done")]);
        let mut client = rig.connect();
        let (mut read, mut write) = tokio::io::split(client.io);
        let request = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n{body}");
        tokio::spawn(async move { write.write_all(request.as_bytes()).await.unwrap() });
        let mut answer = vec![0; 15];
        read.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, b"HTTP/1.1 200 So", "{length}");
        assert_eq!(rig.seen()[0].body.len(), length);
        client = rig.connect();
        drop(client);
    }
}

#[tokio::test(start_paused = true)]
async fn p13_a_body_that_was_read_in_part_is_sent_again_whole() {
    let rig = Rig::new(PLAIN, [Act::CloseAfterHead, Act::ok("done")]);
    let response = rig.send(&put("hello, once more")).await;
    assert_eq!((response.status, rig.seen()[1].text()), (200, "hello, once more"));
}

#[tokio::test(start_paused = true)]
async fn p14_at_the_limit_it_is_all_or_nothing() {
    let policy = format!("{PLAIN}replay_limit = \"100B\"\n");
    for (length, expected) in [(99, 2), (100, 2), (101, 1)] {
        let body = "x".repeat(length);
        for request in [put(&body), chunked("PUT", &body)] {
            let rig = Rig::new(&policy, [Act::Status(503, "busy"), Act::ok("")]);
            rig.send(&request).await;
            let seen = rig.seen();
            assert_eq!(seen.len(), expected, "{length}");
            assert!(seen.iter().all(|seen| seen.text() == body), "{length}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn p16_a_long_body_is_sent_again_after_a_refused_connection() {
    let policy = format!("{PLAIN}replay_limit = \"1KiB\"\n");
    let rig = Rig::new(&policy, [Act::Refuse, Act::ok("done")]);
    let body = "x".repeat(50_000);
    let response = rig.send(&put(&body)).await;
    assert_eq!((response.status, rig.seen()[0].body.len()), (200, 50_000));
}

#[tokio::test(start_paused = true)]
async fn p17_a_body_of_unknown_length_is_kept_up_to_the_limit() {
    let rig = Rig::new(PLAIN, [Act::Status(503, "busy"), Act::ok("done")]);
    let response = rig.send(&chunked("PUT", &"y".repeat(10_000))).await;
    let seen = rig.seen();
    assert_eq!((response.status, seen.len()), (200, 2));
    assert!(seen.iter().all(|seen| seen.body.len() == 10_000));
}

#[tokio::test(start_paused = true)]
async fn p19_an_early_answer_arrives_whole() {
    let refusal = b"HTTP/1.1 413 Too Long\r\ncontent-length: 8\r\nconnection: close\r\n\r\ntoo long".to_vec();
    let rig = Rig::new(PLAIN, [Act::AnswerAfterHead(refusal)]);
    let mut client = rig.connect();
    let length = 1024 * 1024;
    client.send(&format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n")).await;
    // The client goes on sending, as long as somebody takes it.
    let (read, mut write) = tokio::io::split(client.io);
    tokio::spawn(async move { drop(write.write_all(&vec![b'x'; length]).await) });
    let mut answer = Vec::new();
    let mut read = read.take(64 * 1024);
    drop(read.read_to_end(&mut answer).await);
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.ends_with("too long"), "{answer}");
    assert_eq!(rig.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn p22_trailers_pass() {
    let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n";
    let rig = Rig::new(PLAIN, [Act::Bytes(bytes.to_vec())]);
    let response = rig.send("GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n").await;
    assert_eq!((response.text(), response.trailers.one("x-sum")), ("hi", Some("7")));
    assert_eq!(rig.seen()[0].field("te"), Some("trailers"));

    let rig = Rig::new(PLAIN, [Act::Status(503, ""), Act::ok("")]);
    rig.send(
        "PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n",
    )
    .await;
    let sums: Vec<_> = rig.seen().iter().map(|seen| seen.trailers.one("x-sum").map(str::to_owned)).collect();
    assert_eq!(sums, [Some("7".to_owned()), Some("7".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn p23_events_pass_as_they_come() {
    let (feed, rig) = streaming(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    let mut client = rig.connect();
    client.send("GET /events HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut head = vec![0; 15];
    client.io.read_exact(&mut head).await.unwrap();
    for _ in 0..5 {
        sleep(Duration::from_secs(1)).await;
        let watch = Watch::start();
        feed.send(b"8\r\ndata: x\n\r\n".to_vec()).unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"data: x\n\r\n") {
            seen.push(client.io.read_u8().await.unwrap());
        }
        assert_eq!(watch.elapsed(), Duration::ZERO, "no time passes");
    }
    feed.send(b"5\r\nlast!\r\n0\r\n\r\n".to_vec()).unwrap();
    let mut rest = vec![0; 15];
    client.io.read_exact(&mut rest).await.unwrap();
    assert_eq!(rest, b"5\r\nlast!\r\n0\r\n\r\n");
}

/// An endpoint that writes this head, and then what it is fed.
fn streaming(head: &[u8]) -> (tokio::sync::mpsc::UnboundedSender<Vec<u8>>, Rig) {
    let (feed, fed) = tokio::sync::mpsc::unbounded_channel();
    let endpoint =
        Endpoint::new([Act::Feed(head.to_vec(), std::sync::Arc::new(tokio::sync::Mutex::new(fed)))]);
    (feed, Rig::with(PLAIN, "", [endpoint]))
}

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n";
const SWITCH: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn p24_p25_an_upgrade_may_be_retried_until_it_happens() {
    let rig = Rig::new(PLAIN, [Act::Status(503, "busy"), Act::Echo(SWITCH.to_vec())]);
    let mut client = rig.connect();
    client.send(UPGRADE).await;
    let response = client.response().await;
    assert_eq!((response.status, response.field("upgrade")), (101, Some("websocket")));
    client.io.write_all(b"\x81\x02\nhi\0").await.unwrap();
    let mut echo = [0; 6];
    client.io.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"\x81\x02\nhi\0");
    let seen = rig.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[1].field("connection"), seen[1].field("upgrade")), (Some("upgrade"), Some("websocket")));
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_keeps_its_place_among_the_requests_in_flight() {
    let rig = Rig::of("max_requests = 1", PLAIN, "", [Endpoint::new([Act::Echo(SWITCH.to_vec())])]);
    let mut client = rig.connect();
    client.send(UPGRADE).await;
    assert_eq!(client.response().await.status, 101);
    assert_eq!(rig.get("/").await.status, 503);
    drop(client);
    rig.settle().await;
    assert!(rig.metric("relent_requests_in_flight").ends_with(" 0"));
}

#[tokio::test(start_paused = true)]
async fn p24_a_tunnel_that_breaks_is_not_made_again() {
    let rig = Rig::new(PLAIN, [Act::BytesThenClose(SWITCH.to_vec()), Act::ok("never")]);
    let mut client = rig.connect();
    client.send(UPGRADE).await;
    assert_eq!(client.response().await.status, 101);
    assert_eq!((client.rest().await.len(), rig.seen().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn p26_a_client_that_waits_for_100_gets_one() {
    let rig = Rig::new(
        PLAIN,
        [
            Act::Bytes(
                b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".to_vec(),
            ),
            Act::ok("done"),
        ],
    );
    let mut client = rig.connect();
    client.send("PUT / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n").await;
    let mut interim = vec![0; 25];
    client.io.read_exact(&mut interim).await.unwrap();
    assert_eq!(interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.send("hello").await;
    let mut rest = vec![0; 15];
    client.io.read_exact(&mut rest).await.unwrap();
    assert_eq!(rest, b"HTTP/1.1 200 So", "one 100, and then the answer");
    let seen = rig.seen();
    assert_eq!((seen.len(), seen[1].text(), seen[1].field("expect")), (2, "hello", None));
}

#[tokio::test(start_paused = true)]
async fn p28_a_response_that_breaks_off_breaks_off() {
    let part = |head: &str| format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").into_bytes();
    let mut by_length = part("content-length: 1000");
    by_length.extend([b'x'; 100]);
    let mut by_chunks = part("transfer-encoding: chunked");
    by_chunks.extend(b"64\r\n");
    by_chunks.extend([b'x'; 100]);
    by_chunks.extend(b"\r\n");
    for bytes in [by_length, by_chunks] {
        let rig = Rig::new(PLAIN, [Act::BytesThenClose(bytes), Act::ok("never")]);
        let response = rig.get("/").await;
        assert_eq!((response.status, response.whole, rig.seen().len()), (200, false, 1));
        assert!(response.body.len() <= 100);
    }
}

#[tokio::test(start_paused = true)]
async fn p29_the_attempt_timeout_ends_at_the_head() {
    let policy = format!("{PLAIN}attempt_timeout = \"50ms\"\ndeadline = \"200ms\"\n");
    let (feed, fed) = tokio::sync::mpsc::unbounded_channel();
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n".to_vec();
    let feed_it = Act::Feed(head, std::sync::Arc::new(tokio::sync::Mutex::new(fed)));
    let rig = Rig::new(&policy, [feed_it]);
    let later = tokio::spawn(async move {
        sleep(Duration::from_millis(500)).await;
        feed.send(b"hello".to_vec()).unwrap();
        sleep(Duration::from_secs(1)).await;
    });
    let response = rig.get("/").await;
    assert_eq!((response.text(), response.whole), ("hello", true));
    later.abort();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stands_still_is_not_waited_for_without_end() {
    let rig = Rig::of("body_timeout = \"2s\"", PLAIN, "", [Endpoint::new([Act::ok("never")])]);
    let mut client = rig.connect();
    client.send("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhe").await;
    let response = client.response().await;
    assert_eq!(response.status, 408, "{response:?}");

    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe".to_vec();
    let (feed, fed) = tokio::sync::mpsc::unbounded_channel();
    let act = Act::Feed(head, std::sync::Arc::new(tokio::sync::Mutex::new(fed)));
    let rig = Rig::of("body_timeout = \"2s\"", PLAIN, "", [Endpoint::new([act])]);
    let response = rig.get("/").await;
    assert_eq!((response.status, response.whole, response.text()), (200, false, "he"));
    drop(feed);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_sending_is_not_its_endpoints_fault() {
    let rig = Rig::new(PLAIN, [Act::ok("never")]);
    let mut client = rig.connect();
    client.send("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhe").await;
    let response = client.response().await;
    assert_eq!((response.status, rig.seen().len()), (408, 1), "{response:?}");
    let stalled = "relent_attempts_total{upstream=\"u\",policy=\"p\",outcome=\"cancelled\"} 1";
    assert!(rig.metric("relent_attempts_total").contains(stalled), "{}", rig.metric("relent_attempts_total"));
}

#[tokio::test(start_paused = true)]
async fn answers_without_a_body_keep_their_framing() {
    let head = Act::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n".to_vec());
    let rig = Rig::new(PLAIN, [head, Act::ok("next")]);
    let mut client = rig.connect();
    client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let response = client.response().await;
    assert_eq!((response.status, response.field("content-length")), (200, Some("1234")));
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(client.response().await.text(), "next", "the connection is in step");

    for (line, field) in [("204 No Content", ""), ("304 Not Modified", "content-length: 77\r\n")] {
        let rig = Rig::new(
            PLAIN,
            [Act::Bytes(format!("HTTP/1.1 {line}\r\n{field}\r\n").into_bytes()), Act::ok("next")],
        );
        let mut client = rig.connect();
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let response = client.response().await;
        assert_eq!((response.body.len(), response.field("transfer-encoding")), (0, None), "{line}");
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert_eq!(client.response().await.text(), "next", "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn p65_an_answer_framed_by_its_end_arrives() {
    let rig = Rig::new(PLAIN, [Act::BytesThenClose(b"HTTP/1.0 200 OK\r\n\r\nplain old".to_vec())]);
    let response = rig.get("/").await;
    assert_eq!((response.status, response.text(), response.whole), (200, "plain old", true));
}
