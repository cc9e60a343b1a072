//! A tonic server of one method, a channel to it, and bytes for messages: nothing has to be generated.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use relent::http::DeadlineLayer;
use relent::timer::{Clock, SystemTimer};
use relent::{Instant, Policy, PolicyBuilder, RepeatRule};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::NamedService;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tower::{Service, service_fn};

/// Messages as they are on the wire.
#[derive(Clone, Copy, Default)]
pub(crate) struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Status>> + Send>>;
type Handler = Arc<dyn Fn(usize, &Request<Bytes>) -> Answer + Send + Sync>;

/// Answers `/shop.Prices/Get`: the handler gets the number of the attempt, from 0, and the request.
#[derive(Clone)]
pub(crate) struct Prices {
    handler: Handler,
    seen: Arc<Mutex<Vec<(Duration, String)>>>,
    began: Instant,
}

impl Prices {
    pub(crate) fn new(handler: impl Fn(usize, &Request<Bytes>) -> Answer + Send + Sync + 'static) -> Prices {
        Prices { handler: Arc::new(handler), seen: Arc::default(), began: SystemTimer.now() }
    }

    /// When attempts came, in milliseconds, and with what.
    pub(crate) fn seen(&self) -> Vec<(u128, String)> {
        self.seen.lock().unwrap().iter().map(|(at, text)| (at.as_millis(), text.clone())).collect()
    }

    async fn get(self, request: Request<Bytes>) -> Result<Response<Bytes>, Status> {
        let text = String::from_utf8(request.get_ref().to_vec()).unwrap();
        let number = {
            let mut seen = self.seen.lock().unwrap();
            seen.push((SystemTimer.now().since(self.began), text));
            seen.len() - 1
        };
        (self.handler)(number, &request).await
    }
}

impl NamedService for Prices {
    const NAME: &'static str = "shop.Prices";
}

impl Service<http::Request<Body>> for Prices {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let prices = self.clone();
        Box::pin(async move {
            let get = service_fn(move |request| prices.clone().get(request));
            Ok(tonic::server::Grpc::new(Raw).unary(get, request).await)
        })
    }
}

pub(crate) fn ok(text: &'static str) -> Answer {
    Box::pin(async move { Ok(Response::new(Bytes::from_static(text.as_bytes()))) })
}

pub(crate) fn fail(status: Status) -> Answer {
    Box::pin(async move { Err(status) })
}

/// Connections, as a server accepts them.
struct Incoming(mpsc::UnboundedReceiver<DuplexStream>);

impl tokio_stream::Stream for Incoming {
    type Item = io::Result<DuplexStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|stream| stream.map(Ok))
    }
}

/// A server, and a channel to it whose first `refused` connections are refused.
pub(crate) fn connected(prices: &Prices, mut refused: usize) -> Channel {
    let (sender, receiver) = mpsc::unbounded_channel();
    let serving = Server::builder().layer(DeadlineLayer::new()).add_service(prices.clone());
    tokio::spawn(serving.serve_with_incoming(Incoming(receiver)));
    let connect = move |_: http::Uri| {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let connection = if refused > 0 {
            refused -= 1;
            Err(io::Error::from(io::ErrorKind::ConnectionRefused))
        } else {
            sender.send(far).map(|()| hyper_util::rt::TokioIo::new(near)).map_err(io::Error::other)
        };
        std::future::ready(connection)
    };
    Endpoint::from_static("http://prices.internal").connect_with_connector_lazy(service_fn(connect))
}

/// Asks "how much?".
pub(crate) async fn ask<S>(channel: S) -> Result<Response<Bytes>, Status>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    ask_for(channel, "how much?").await
}

/// Asks a question.
pub(crate) async fn ask_for<S>(channel: S, question: &'static str) -> Result<Response<Bytes>, Status>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.map_err(|error| Status::from_error(error.into()))?;
    let path = PathAndQuery::from_static("/shop.Prices/Get");
    client.unary(Request::new(Bytes::from_static(question.as_bytes())), path, Raw).await
}

/// Repeats everything, without jitter: 10 ms, 20 ms, 40 ms.
pub(crate) fn always() -> PolicyBuilder {
    Policy::exponential(Duration::from_millis(10), Duration::from_secs(1))
        .jitter(relent::Jitter::None)
        .throttled_base(Duration::from_millis(1))
        .repeat(RepeatRule::Always)
        .attempts(4)
        .no_budget()
}
