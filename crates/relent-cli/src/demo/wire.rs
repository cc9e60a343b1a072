//! The HTTP client that all lanes share in kind: pooled connections, nothing clever, each attempt written down.

use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::TokioExecutor;

use super::arrivals::{Call, call_of};
use super::ledger::{Ledger, Saw};

/// What one attempt comes to.
pub(crate) type Sent = Pin<Box<dyn Future<Output = Result<Response<Incoming>, ClientError>> + Send>>;

/// A client whose attempts are written into a lane's ledger.
#[derive(Debug)]
pub(crate) struct Wire<B> {
    client: Client<HttpConnector, B>,
    ledger: Arc<Ledger>,
}

impl<B> Clone for Wire<B> {
    fn clone(&self) -> Self {
        Wire { client: self.client.clone(), ledger: Arc::clone(&self.ledger) }
    }
}

impl<B> Wire<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    pub(crate) fn new(ledger: Arc<Ledger>) -> Wire<B> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        // A client that repeats by itself would be a second policy below the lane's own.
        let client = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build(connector);
        Wire { client, ledger }
    }

    /// One attempt.
    pub(crate) fn send(&self, request: Request<B>) -> Sent {
        let attempt = call_of(request.uri().path()).map(|call| self.ledger.attempt(call));
        let answer = self.client.request(request);
        Box::pin(async move {
            let result = answer.await;
            let saw =
                result.as_ref().map_or(Saw::NoAnswer, |response| Saw::Status(response.status().as_u16()));
            if let Some(attempt) = attempt {
                attempt.end(saw);
            }
            result
        })
    }
}

/// The request that does what the call is for.
pub(crate) fn request(server: SocketAddr, call: &Call) -> Request<Full<Bytes>> {
    let (method, body) = if call.payment {
        (Method::POST, Bytes::from_static(br#"{"amount":1999,"currency":"EUR"}"#))
    } else {
        (Method::GET, Bytes::new())
    };
    Request::builder()
        .method(method)
        .uri(format!("http://{server}{}", call.path()))
        .body(Full::new(body))
        .expect("an address and a plain path make a URI")
}
