//! A client of a single connection: what a pool of one does, with nothing left to luck.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

use super::server::Server;

/// One connection, opened anew when it is gone. A request waits until the response before it was read, or dropped.
pub(crate) struct OneConnection<B> {
    authority: String,
    sender: Arc<Mutex<Option<SendRequest<B>>>>,
    turn: Arc<Semaphore>,
    /// Whether a connection that is gone is noticed before it is used.
    looks: bool,
}

impl<B> Clone for OneConnection<B> {
    fn clone(&self) -> Self {
        OneConnection {
            authority: self.authority.clone(),
            sender: Arc::clone(&self.sender),
            turn: Arc::clone(&self.turn),
            looks: self.looks,
        }
    }
}

impl<B> OneConnection<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    pub(crate) fn new(server: &Server) -> OneConnection<B> {
        OneConnection {
            authority: server.authority(),
            sender: Arc::default(),
            turn: Arc::new(Semaphore::new(1)),
            looks: true,
        }
    }

    /// Its first connection is closed by the server already, as an idle one often is, and it will be used all the same.
    pub(crate) async fn stale(server: &Server) -> OneConnection<B> {
        let mut client = OneConnection::new(server);
        client.looks = false;
        let stream = TcpStream::connect(server.authority()).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        // Over when the server has closed; a fresh connection may take offence at that.
        let _ = connection.await;
        *client.sender.lock().unwrap() = Some(sender);
        client
    }

    /// Waits until the last response was read to its end, or dropped.
    pub(crate) async fn idle(&self) {
        drop(self.turn.acquire().await);
    }

    async fn send(self, mut request: Request<B>) -> hyper::Result<Response<Turn>> {
        let permit = self.turn.acquire_owned().await.unwrap();
        request.headers_mut().insert("host", self.authority.parse().unwrap());
        let idle = self.sender.lock().unwrap().take();
        let idle = match idle {
            Some(mut sender) if self.looks => sender.ready().await.is_ok().then_some(sender),
            idle => idle,
        };
        let mut sender = match idle {
            Some(sender) => sender,
            None => {
                let stream = TcpStream::connect(&self.authority).await.unwrap();
                let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
                tokio::spawn(connection);
                sender
            }
        };
        let response = sender.send_request(request).await?;
        *self.sender.lock().unwrap() = Some(sender);
        Ok(response.map(|body| Turn { body, _permit: permit }))
    }
}

impl<B> Service<Request<B>> for OneConnection<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    type Response = Response<Turn>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Turn>>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

/// A response body that holds its connection.
pub(crate) struct Turn {
    body: Incoming,
    _permit: OwnedSemaphorePermit,
}

impl Body for Turn {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
