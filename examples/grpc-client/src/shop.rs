//! The server of the example, and its client. Both would be generated from a `.proto` file; messages here are plain bytes, so that
//! nothing has to be.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use relent::adapter::tonic::{previous_attempts, with_pushback};
use relent::grpc::Pushback;
use relent::http::DeadlineLayer;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::NamedService;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tower::{Service, service_fn};

/// Counts what it is asked.
#[derive(Clone, Default)]
pub(crate) struct Shop(Arc<AtomicU32>);

impl Shop {
    pub(crate) fn calls(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn answer(&self, path: &str, request: &Request<Bytes>) -> Result<Response<Bytes>, Status> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match (path, previous_attempts(request)) {
            ("/shop.Shop/Price", 0) => {
                let busy = Status::unavailable("one moment");
                Err(with_pushback(busy, Pushback::After(Duration::from_millis(20))))
            }
            ("/shop.Shop/Price", _) => Ok(Response::new(Bytes::from_static(b"350"))),
            _ => Err(Status::unavailable("the till is closed")),
        }
    }
}

/// A server on loopback that keeps to its callers' time.
pub(crate) async fn start() -> io::Result<(SocketAddr, Shop)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let (address, shop) = (listener.local_addr()?, Shop::default());
    let serving = Server::builder().layer(DeadlineLayer::new()).add_service(shop.clone());
    tokio::spawn(serving.serve_with_incoming(TcpListenerStream::new(listener)));
    Ok((address, shop))
}

/// What a generated client does.
pub(crate) async fn call<S>(
    channel: S,
    path: &'static str,
    message: &'static str,
) -> Result<Response<Bytes>, Status>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Status>,
{
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    let request = Request::new(Bytes::from_static(message.as_bytes()));
    client.unary(request, PathAndQuery::from_static(path), Raw).await
}

impl NamedService for Shop {
    const NAME: &'static str = "shop.Shop";
}

/// What a generated server does.
impl Service<http::Request<Body>> for Shop {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (shop, path) = (self.clone(), request.uri().path().to_owned());
        Box::pin(async move {
            let answer = service_fn(move |request| std::future::ready(shop.answer(&path, &request)));
            Ok(tonic::server::Grpc::new(Raw).unary(answer, request).await)
        })
    }
}

/// Messages as they are.
#[derive(Clone, Copy)]
struct Raw;

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

    fn encode(&mut self, message: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(message);
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
