//! HTTP/2: streams that were refused or left unprocessed, bodies without a length, trailers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::{Body, Frame};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use relent::adapter::reqwest::RetryClient;
use relent::http::{HttpRetryLayer, ReplayBody};
use relent::timer::Manual;
use relent::{PolicyBuilder, StopReason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, ServiceExt};

use super::client::{BOTH, Through, passing, policy, retry};

/// What the server does with a stream when its headers have come.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// RST_STREAM, REFUSED_STREAM.
    Refuse,
    /// RST_STREAM, CANCEL.
    Cancel,
    /// GOAWAY that leaves this stream out, and the end of the connection.
    GoAway,
    /// 200 and no body.
    Ok,
}

/// Answers streams by a script, in raw frames (RFC 9113 §4.1). Counts the streams.
struct Server {
    address: SocketAddr,
    streams: Arc<Mutex<usize>>,
}

impl Server {
    async fn start(script: impl IntoIterator<Item = Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, streams) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(0)));
        let script = Arc::new(Mutex::new(VecDeque::from_iter(script)));
        let seen = Arc::clone(&streams);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&script), Arc::clone(&seen)));
            }
        });
        Server { address, streams }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn streams(&self) -> usize {
        *self.streams.lock().unwrap()
    }
}

async fn serve(
    mut stream: TcpStream,
    script: Arc<Mutex<VecDeque<Act>>>,
    seen: Arc<Mutex<usize>>,
) -> io::Result<()> {
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    stream.read_exact(&mut [0; 24]).await?;
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        stream.read_exact(&mut payload).await?;
        let id = u32::from_be_bytes(head[5..9].try_into().unwrap());
        match head[3] {
            SETTINGS if head[4] & 1 == 0 => stream.write_all(&frame(SETTINGS, 1, 0, &[])).await?,
            HEADERS => {
                *seen.lock().unwrap() += 1;
                let act = script.lock().unwrap().pop_front().unwrap_or(Act::Cancel);
                let answer = match act {
                    Act::Refuse => frame(3, 0, id, &7_u32.to_be_bytes()),
                    Act::Cancel => frame(3, 0, id, &8_u32.to_be_bytes()),
                    Act::GoAway => frame(7, 0, 0, &[0; 8]),
                    // Static table, entry 8: `:status: 200`. END_STREAM and END_HEADERS.
                    Act::Ok => frame(HEADERS, 5, id, &[0x88]),
                };
                stream.write_all(&answer).await?;
                if let Act::GoAway = act {
                    return stream.shutdown().await;
                }
            }
            _ => {}
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn client<B>() -> Client<HttpConnector, ReplayBody<B>>
where
    ReplayBody<B>: Body<Data = Bytes> + Send,
{
    Client::builder(TokioExecutor::new()).http2_only(true).build_http()
}

/// What a POST comes to: its status, or reason and ambiguity.
async fn post(through: Through, policy: PolicyBuilder, server: &Server) -> Result<u16, (StopReason, bool)> {
    let time = Manual::new();
    let retry = retry(policy, &time);
    let result = match through {
        Through::Tower => {
            let request = Request::post(server.url()).body(Full::new(Bytes::from("amount=5"))).unwrap();
            let call = HttpRetryLayer::new(retry).layer(client()).oneshot(request);
            passing(&time, call)
                .await
                .map(|response| response.status())
                .map_err(|e| (e.reason(), e.ambiguous()))
        }
        Through::Reqwest => {
            let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
            let client = RetryClient::build(client.retry(reqwest::retry::never()), retry).unwrap();
            let call = client.send(client.inner().post(server.url()).body("amount=5"));
            passing(&time, call)
                .await
                .map(|response| response.status())
                .map_err(|e| (e.reason(), e.ambiguous()))
        }
    };
    result.map(|status| status.as_u16())
}

#[tokio::test]
async fn a64_a_refused_stream_is_repeated_whatever_the_method_and_pays() {
    for through in BOTH {
        let server = Server::start([Act::Refuse, Act::Refuse, Act::Ok]).await;
        assert_eq!((post(through, policy(), &server).await, server.streams()), (Ok(200), 3), "{through:?}");

        let server = Server::start([Act::Refuse, Act::Ok]).await;
        let refused = Err((StopReason::AttemptsExhausted, false));
        assert_eq!((post(through, policy().attempts(1), &server).await, server.streams()), (refused, 1));
    }
}

#[tokio::test]
async fn a64_a_stream_that_goaway_left_out_is_repeated_for_nothing() {
    for through in BOTH {
        let server = Server::start([Act::GoAway, Act::Ok]).await;
        // Not an attempt of the policy's.
        assert_eq!(
            (post(through, policy().attempts(1), &server).await, server.streams()),
            (Ok(200), 2),
            "{through:?}"
        );
    }
}

#[tokio::test]
async fn a67_what_is_free_is_free_once() {
    for through in BOTH {
        let server = Server::start([Act::GoAway; 10]).await;
        let refused = Err((StopReason::AttemptsExhausted, false));
        assert_eq!(
            (post(through, policy().attempts(3), &server).await, server.streams()),
            (refused, 4),
            "{through:?}"
        );
    }
}

#[tokio::test]
async fn a64_a_stream_that_was_reset_may_have_been_executed() {
    for through in BOTH {
        let server = Server::start([Act::Cancel, Act::Ok]).await;
        let refused = Err((StopReason::UnsafeToRepeat, true));
        assert_eq!((post(through, policy(), &server).await, server.streams()), (refused, 1), "{through:?}");
    }
}

/// A body without a length, with trailers.
struct Message {
    frames: VecDeque<Frame<Bytes>>,
}

impl Body for Message {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.frames.pop_front().map(Ok))
    }
}

/// Answers 503, then 200; hands back what each request brought.
async fn echo_twice(listener: TcpListener) -> Vec<(Vec<u8>, Option<HeaderMap>)> {
    let mut seen = Vec::new();
    let mut connection = h2::server::handshake(listener.accept().await.unwrap().0).await.unwrap();
    while let Some(stream) = connection.accept().await {
        let (request, mut respond) = stream.unwrap();
        let mut body = request.into_body();
        // The connection moves on only while it is polled: so do the stream's frames.
        let read = async {
            let mut bytes = Vec::new();
            while let Some(data) = body.data().await {
                let data = data.unwrap();
                body.flow_control().release_capacity(data.len()).unwrap();
                bytes.extend_from_slice(&data);
            }
            (bytes, body.trailers().await.unwrap())
        };
        let message = tokio::select! {
            message = read => message,
            _ = std::future::poll_fn(|cx| connection.poll_closed(cx)) => panic!("the client left"),
        };
        seen.push(message);
        let status = if seen.len() == 1 { 503 } else { 200 };
        respond.send_response(http::Response::builder().status(status).body(()).unwrap(), true).unwrap();
        if seen.len() == 2 {
            break;
        }
    }
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    seen
}

#[tokio::test]
async fn p17_p22_a_body_without_a_length_and_its_trailers_are_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(echo_twice(listener));

    let body = Bytes::from(vec![7; 10 * 1024]);
    let trailers = HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("\"end\""))]);
    let frames = [Frame::data(body.clone()), Frame::data(body.clone()), Frame::trailers(trailers.clone())];
    let request = Request::put(url).body(Message { frames: frames.into() }).unwrap();

    let time = Manual::new();
    let service = HttpRetryLayer::new(retry(policy(), &time)).layer(client());
    let response = passing(&time, service.oneshot(request)).await.unwrap();
    assert_eq!(response.status(), 200);
    let message = ([&body[..], &body[..]].concat(), Some(trailers));
    assert_eq!(server.await.unwrap(), [message.clone(), message]);
}
