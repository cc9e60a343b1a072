//! HTTP/2 without TLS: on both sides, and on either side alone.

mod connections;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderValue, Response};

use crate::rig::clock::sleep;
use crate::rig::h2::{Endpoints, H2Client, H2Rig, Stream, connect, request};
use crate::rig::{Act, Client, PLAIN, Rig};

fn plainly() -> h2::server::Builder {
    h2::server::Builder::new()
}

fn trailers(name: &'static str, value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static(value))])
}

/// What endpoints saw, in their order.
type Seen<T> = Arc<Mutex<Vec<T>>>;

/// Answers the first request with 503 and the others with 200, and keeps what they brought.
fn failing_once(seen: &Seen<(HeaderMap, Vec<u8>, Option<HeaderMap>)>) -> Endpoints {
    let seen = Arc::clone(seen);
    Endpoints::streams(plainly(), move |mut stream| {
        let seen = Arc::clone(&seen);
        async move {
            let (body, trailers) = stream.read().await;
            seen.lock().unwrap().push((stream.request.headers().clone(), body, trailers));
            if stream.number == 0 {
                stream.answer(503, "busy");
            } else {
                let mut body = stream.begin(200);
                body.send_data(Bytes::from_static(b"done"), false).unwrap();
                body.send_trailers(self::trailers("grpc-status", "0")).unwrap();
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn p17_a_body_without_a_length_is_sent_again() {
    let seen = Seen::default();
    let rig = H2Rig::new(PLAIN, failing_once(&seen));
    let body = vec![7; 10 * 1024];
    let answer = rig.connect().await.send(request("PUT"), &body).await.unwrap();
    assert_eq!((answer.status, answer.text()), (200, "done"));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    for (fields, own, _) in seen.iter() {
        assert_eq!((own, fields.get("content-length")), (&body, None));
    }
}

#[tokio::test(start_paused = true)]
async fn p20_headers_and_then_a_failure_in_the_trailers_is_an_answer() {
    let rig = H2Rig::new(
        PLAIN,
        Endpoints::streams(plainly(), |mut stream| async move {
            let mut body = stream.begin(200);
            // Not at once, so that the head is there alone.
            sleep(Duration::from_millis(10)).await;
            body.send_trailers(trailers("grpc-status", "14")).unwrap();
            assert_eq!(stream.number, 0, "no retry");
        }),
    );
    let answer = rig.connect().await.get().await.unwrap();
    assert_eq!((answer.status, answer.trailers()), (200, &trailers("grpc-status", "14")));
    assert_eq!(rig.metric("relent_attempts_total"), 1);
}

#[tokio::test(start_paused = true)]
async fn p22_trailers_pass_both_ways_also_after_a_retry() {
    let seen = Seen::default();
    let rig = H2Rig::new(PLAIN, failing_once(&seen));
    let mut head = request("PUT");
    head.headers_mut().insert("te", HeaderValue::from_static("trailers"));
    let (response, mut body) = rig.connect().await.begin(head).await;
    body.send_data(Bytes::from_static(b"hello"), false).unwrap();
    body.send_trailers(trailers("x-sum", "5")).unwrap();
    let answer = H2Client::answer(response).await.unwrap();
    assert_eq!((answer.status, answer.trailers()), (200, &trailers("grpc-status", "0")));
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    for (fields, body, own) in seen.iter() {
        assert_eq!((&body[..], own.as_ref()), (&b"hello"[..], Some(&trailers("x-sum", "5"))));
        assert_eq!(fields.get("te").unwrap(), "trailers");
    }
}

#[tokio::test(start_paused = true)]
async fn p22_trailers_pass_between_the_versions() {
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
                    2\r\nhi\r\n0\r\nx-sum: 2\r\n\r\n";
    let rig = Rig::new(PLAIN, [Act::Bytes(chunked.to_vec())]);
    let client = H2Client::over(connect(&rig.engine)).await;
    let mut head = request("PUT");
    head.headers_mut().insert("te", HeaderValue::from_static("trailers"));
    head.headers_mut().insert("trailer", HeaderValue::from_static("x-own"));
    let (response, mut body) = client.begin(head).await;
    body.send_data(Bytes::from_static(b"hello"), false).unwrap();
    body.send_trailers(trailers("x-own", "5")).unwrap();
    let answer = H2Client::answer(response).await.unwrap();
    assert_eq!((answer.text(), answer.trailers()), ("hi", &trailers("x-sum", "2")));
    assert_eq!(answer.field("transfer-encoding"), None);
    let seen = &rig.seen()[0];
    assert_eq!((seen.text(), seen.trailers.one("x-own")), ("hello", Some("5")));
    assert_eq!((seen.field("te"), seen.field("connection")), (Some("trailers"), Some("te")));

    // HTTP/1.1 has room for those that the head announces.
    let announced = |mut stream: Stream| async move {
        let head = Response::builder().header("trailer", "grpc-status").body(()).unwrap();
        let mut body = stream.respond.send_response(head, false).unwrap();
        body.send_data(Bytes::from_static(b"done"), false).unwrap();
        body.send_trailers(trailers("grpc-status", "0")).unwrap();
    };
    let rig = H2Rig::new(PLAIN, Endpoints::streams(plainly(), announced));
    let mut client = Client::new(connect(&rig.engine));
    client.send("GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n").await;
    let response = client.response().await;
    assert_eq!((response.text(), response.trailers.one("grpc-status")), ("done", Some("0")));
}

#[tokio::test(start_paused = true)]
async fn p28_a_response_that_is_reset_reaches_the_client_as_a_reset() {
    let break_off = |mut stream: Stream| async move {
        let mut body = stream.begin(200);
        body.send_data(Bytes::from_static(&[b'x'; 100]), false).unwrap();
        sleep(Duration::from_millis(10)).await;
        body.send_reset(Reason::INTERNAL_ERROR);
    };
    let rig = H2Rig::new(PLAIN, Endpoints::streams(plainly(), break_off));
    let client = rig.connect().await;
    let answer = client.get().await.unwrap();
    let error = answer.body.unwrap_err();
    assert!(answer.status == 200 && error.is_reset() && error.is_remote(), "{error:?}");
    assert_eq!((rig.metric("relent_attempts_total"), client.ended()), (1, None));

    // Over HTTP/1.1, the framing says it.
    let mut client = Client::new(connect(&rig.engine));
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let response = client.response().await;
    assert_eq!((response.status, response.whole, response.body.len()), (200, false, 100));

    // And what breaks off in HTTP/1.1 is a reset in HTTP/2.
    let part = [&b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n"[..], &[b'x'; 100]].concat();
    let rig = Rig::new(PLAIN, [Act::BytesThenClose(part), Act::ok("never")]);
    let client = H2Client::over(connect(&rig.engine)).await;
    let answer = client.get().await.unwrap();
    assert!(answer.body.unwrap_err().is_reset());
    assert_eq!((rig.seen().len(), client.ended()), (1, None));
}

#[tokio::test(start_paused = true)]
async fn p34_grpc_timeouts_are_what_is_left() {
    let told = Seen::default();
    let seen = Arc::clone(&told);
    let endpoints = Endpoints::streams(plainly(), move |mut stream| {
        let timeout = stream.request.headers()["grpc-timeout"].to_str().unwrap().to_owned();
        seen.lock().unwrap().push(timeout);
        async move {
            sleep(Duration::from_millis(300)).await;
            stream.answer(if stream.number == 0 { 503 } else { 200 }, "");
        }
    });
    let policy = format!("{PLAIN}repeat = \"always\"\nrepeat_reason = \"a test\"\n");
    let rig = H2Rig::new(&policy, endpoints);
    let mut head = request("POST");
    head.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    head.headers_mut().insert("grpc-timeout", HeaderValue::from_static("1S"));
    assert_eq!(rig.connect().await.send(head, b"").await.unwrap().status, 200);
    let told: Vec<u32> = told
        .lock()
        .unwrap()
        .iter()
        .map(|text: &String| text.strip_suffix('m').unwrap().parse().unwrap())
        .collect();
    // 300 ms for the first attempt, and 100 ms of backoff.
    assert!(told.len() == 2 && told[0] <= 1000 && told[1] <= 600 && told[1] >= 500, "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn cookies_are_joined_for_http1() {
    let rig = Rig::new(PLAIN, [Act::ok("")]);
    let mut head = request("GET");
    for cookie in ["a=1", "b=2", "c=3"] {
        head.headers_mut().append("cookie", HeaderValue::from_static(cookie));
    }
    H2Client::over(connect(&rig.engine)).await.send(head, b"").await.unwrap();
    assert_eq!(rig.seen()[0].field("cookie"), Some("a=1; b=2; c=3"));
}

#[tokio::test(start_paused = true)]
async fn the_authority_becomes_host_and_back() {
    let rig = Rig::new(PLAIN, [Act::ok("")]);
    let client = H2Client::over(connect(&rig.engine)).await;
    client.send(request("GET"), b"").await.unwrap();
    let seen = &rig.seen()[0];
    assert_eq!((seen.line.as_str(), seen.field("host")), ("GET /x HTTP/1.1", Some("a.example")));

    // A second host beside it must be the same.
    let with_host = |host| {
        let mut head = request("GET");
        head.headers_mut().insert("host", HeaderValue::from_static(host));
        head
    };
    assert_eq!(client.send(with_host("a.example"), b"").await.unwrap().status, 200);
    assert_eq!(rig.seen()[1].field("host"), Some("a.example"));
    assert_eq!(client.send(with_host("b.example"), b"").await.unwrap().status, 400);
    assert_eq!(rig.seen().len(), 2);

    let seen = Seen::default();
    let heads = Arc::clone(&seen);
    let rig = H2Rig::new(
        PLAIN,
        Endpoints::streams(plainly(), move |mut stream| {
            heads.lock().unwrap().push((stream.request.uri().to_string(), stream.request.headers().clone()));
            async move { stream.answer(200, "") }
        }),
    );
    let mut client = Client::new(connect(&rig.engine));
    client.send("GET /y?z HTTP/1.1\r\nhost: b.example:8080\r\n\r\n").await;
    assert_eq!(client.response().await.status, 200);
    rig.connect().await.send(request("GET"), b"").await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0].0, "http://b.example:8080/y?z");
    assert_eq!(seen[1].0, "http://a.example/x");
    assert!(seen.iter().all(|(_, fields)| !fields.contains_key("host")));
}

#[tokio::test(start_paused = true)]
async fn what_is_for_an_http1_connection_is_none_of_http2() {
    const ENDED: [&str; 7] =
        ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "te", "x-own"];
    let seen = Seen::default();
    let heads = Arc::clone(&seen);
    let rig = H2Rig::new(
        PLAIN,
        Endpoints::streams(plainly(), move |mut stream| {
            heads.lock().unwrap().push(stream.request.headers().clone());
            async move { stream.answer(200, "") }
        }),
    );
    let mut client = Client::new(connect(&rig.engine));
    client
        .send(
            "PUT / HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, x-own, te\r\nkeep-alive: timeout=5\r\n\
             proxy-connection: keep-alive\r\nte: gzip\r\nx-own: 1\r\nx-other: 2\r\n\
             transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        )
        .await;
    assert_eq!(client.response().await.status, 200);
    {
        let seen = seen.lock().unwrap();
        assert!(ENDED.iter().all(|name| !seen[0].contains_key(*name)), "{seen:?}");
        assert_eq!(seen[0]["x-other"], "2");
    }

    let fields = "connection: keep-alive, x-own\r\nkeep-alive: timeout=5\r\nproxy-connection: close\r\n\
                  x-own: 1\r\nx-other: 2\r\n";
    let rig = Rig::new(PLAIN, [Act::Fields(200, fields, "hi"), Act::Fields(404, fields, "none")]);
    let client = H2Client::over(connect(&rig.engine)).await;
    for text in ["hi", "none"] {
        let answer = client.get().await.unwrap();
        assert!(ENDED.iter().all(|name| answer.field(name).is_none()), "{answer:?}");
        assert_eq!((answer.text(), answer.field("x-other")), (text, Some("2")));
    }
    // The proxy's own words, too.
    let rig = Rig::new(PLAIN, [Act::Refuse]);
    let answer = H2Client::over(connect(&rig.engine)).await.get().await.unwrap();
    assert_eq!((answer.status, answer.field("connection")), (503, None));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gives_no_window_does_not_hold_its_place_for_ever() {
    let long = Endpoints::streams(plainly(), |mut stream| async move {
        stream.read().await;
        let mut body = stream.begin(200);
        drop(body.send_data(Bytes::from(vec![7; 1024 * 1024]), true));
        std::future::pending::<()>().await;
    });
    let text = crate::rig::h2::config(PLAIN, "h2").replace("[policy.p]", "body_timeout = \"2s\"\n[policy.p]");
    let rig = H2Rig::of(&text, long);
    let client = rig.connect().await;
    let (response, mut stream) = client.begin(request("GET")).await;
    stream.send_data(Bytes::new(), true).unwrap();
    let response = response.await.unwrap();
    // The body is never read, so its window stays shut.
    sleep(Duration::from_secs(20)).await;
    assert_eq!(rig.metric("relent_requests_in_flight"), 0);
    drop(response);
}
