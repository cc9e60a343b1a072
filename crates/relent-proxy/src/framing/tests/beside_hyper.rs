//! What hyper makes of the same bytes: it must refuse what is left to it, and see the same requests where both accept.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http_body::Body as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Framing, GET, State, all, fault};

/// The lengths of the bodies, in order, that came to their end; and what was answered.
async fn hyper(bytes: &[u8]) -> (Vec<u64>, String) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&bodies);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let seen = Arc::clone(&seen);
        async move {
            let mut length = 0;
            while let Some(frame) =
                std::future::poll_fn(|cx| std::pin::Pin::new(request.body_mut()).poll_frame(cx)).await
            {
                let Ok(frame) = frame else { return Ok::<_, Infallible>(Response::new(String::new())) };
                length += frame.data_ref().map_or(0, |data| data.len() as u64);
            }
            seen.lock().unwrap().push(length);
            Ok(Response::new(String::new()))
        }
    });
    let (mut client, server) = tokio::io::duplex(1 << 20);
    client.write_all(bytes).await.unwrap();
    client.shutdown().await.unwrap();
    // An error is a refusal, which is seen in the answer, or an end in the middle of a message.
    let _ = http1::Builder::new().half_close(true).serve_connection(TokioIo::new(server), service).await;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    let bodies = std::mem::take(&mut *bodies.lock().unwrap());
    (bodies, answer)
}

/// The same, by the framing.
fn framed(bytes: &[u8]) -> Vec<u64> {
    let (mut framing, mut bodies, mut length, mut inside) = (Framing::new(), Vec::new(), 0, false);
    for byte in bytes {
        length += u64::from(matches!(framing.state, State::Body(_) | State::Chunk(_)));
        framing.read(&[*byte]).unwrap();
        let is_inside = !matches!(&framing.state, State::Head(head) if !head.has_request_line());
        if inside && !is_inside {
            bodies.push(std::mem::take(&mut length));
        }
        inside = is_inside;
    }
    bodies
}

/// Behind a request line and a Host.
const FIELDS: &[&str] = &[
    "A: b\0\r\n\r\n",
    "A: b\x01\r\n\r\n",
    "A: b\x7f\r\n\r\n",
    "A: b\rC: d\r\n\r\n",
    "A: b\r\r\n\r\n",
    "A\rB: c\r\n\r\n",
    "\rA: b\r\n\r\n",
    "A: b\r\n c\r\n\r\n",
    "A: b\r\n\tc\r\n\r\n",
    " A: b\r\n\r\n",
    ": b\r\n\r\n",
    "A\r\n\r\n",
    "A b\r\n\r\n",
    "A(b): c\r\n\r\n",
    "Host : a\r\n\r\n",
    " Host: b\r\n\r\n",
    "Content-Length : 5\r\n\r\n",
    "Content-Length\t: 5\r\n\r\n",
    " Content-Length: 5\r\n\r\n",
    "\x0bContent-Length: 5\r\n\r\n",
    "Content-Length\0: 5\r\n\r\n",
    "Content\rLength: 5\r\n\r\n",
    "Content-Length: 5\r\nContent-Length : 6\r\n\r\n",
    "Transfer-Encoding : chunked\r\n\r\n",
    "Transfer-Encoding\x0b: chunked\r\n\r\n",
    "A: b\rTransfer-Encoding: chunked\r\n\r\n",
    "Content-Length: 5\r\n Transfer-Encoding: chunked\r\n\r\n",
    "Content-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n",
    "Content-Length: 18446744073709551615\r\n\r\n",
];

const REQUEST_LINES: &[&str] = &[
    "GET  / HTTP/1.1\r\n",
    "GET /  HTTP/1.1\r\n",
    " GET / HTTP/1.1\r\n",
    "GET / x HTTP/1.1\r\n",
    "GET / HTTP/1.1 HTTP/1.1\r\n",
    "GET HTTP/1.1\r\n",
    "GET\t/ HTTP/1.1\r\n",
    "GET\t/ x HTTP/1.1\r\n",
    "G\0T / HTTP/1.1\r\n",
    "G(T / HTTP/1.1\r\n",
    "GET /\0 HTTP/1.1\r\n",
    "GET /\r HTTP/1.1\r\n",
    "GET\r/ HTTP/1.1\r\n",
    "\rGET / HTTP/1.1\r\n",
    "\0GET / HTTP/1.1\r\n",
];

#[tokio::test]
async fn hyper_refuses_what_is_left_to_it() {
    let fields = FIELDS.iter().map(|rest| format!("{GET}{rest}"));
    let lines = REQUEST_LINES.iter().map(|line| format!("{line}Host: a\r\n\r\n"));
    let many = [format!("{GET}{}\r\n", "A: b\r\n".repeat(100))];
    for text in fields.chain(lines).chain(many) {
        assert_eq!(fault(text.as_bytes()), None, "no longer left to hyper: {text:?}");
        let (bodies, answer) = hyper(text.as_bytes()).await;
        let is_refused = answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.1 431 ");
        assert!(bodies.is_empty() && is_refused, "{text:?}: {answer:?}");
    }
}

#[tokio::test]
async fn both_see_the_requests_of_the_good_rows() {
    for (bytes, _) in all().into_iter().filter(|(_, fault)| fault.is_none()) {
        let (seen, answer) = hyper(&bytes).await;
        assert_eq!(seen, framed(&bytes), "{:?}: {answer}", String::from_utf8_lossy(&bytes));
    }
}

/// Pieces that make requests, rightly or not.
const PIECES: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "PUT http://a/b HTTP/1.0\r\nConnection: keep-alive\r\n",
    "Content-Length: 5\r\n",
    "content-length:\t11 \r\n",
    "Content-Length: 0\r\n",
    "Content-Length : 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "transfer-encoding:chunked\t\r\n",
    "Transfer-Encoding: identity\r\n",
    "Expect: 100-continue\r\n",
    "Connection: upgrade\r\nUpgrade: h2c\r\n",
    "X: y\r\n",
    " z\r\n",
    "\r\n",
    "\n",
    "\r",
    "\0",
    ":",
    "hello",
    "5\r\n",
    "5;a=b\r\nhello\r\n",
    "5\r\nhello\r\n",
    "b \r\nhello hello\r\n",
    "0\r\n\r\n",
    "0\r\nX: y\r\n\r\n",
    "00;a\r\n",
];

proptest::proptest! {
    #[test]
    fn hyper_sees_no_other_requests(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 1..14),
        first in 0_usize..4,
        change: Option<(proptest::sample::Index, u8)>,
    ) {
        let mut bytes = [PIECES[first], &pieces.concat()].concat().into_bytes();
        if let Some((place, byte)) = change {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if fault(&bytes).is_none() {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (seen, answer) = runtime.block_on(hyper(&bytes));
            let framed = framed(&bytes);
            // hyper may refuse more, or end sooner; it never sees another request.
            let text = String::from_utf8_lossy(&bytes);
            proptest::prop_assert!(framed.starts_with(&seen), "{:?}: {:?} {:?} {}", text, framed, seen, answer);
        }
    }
}
