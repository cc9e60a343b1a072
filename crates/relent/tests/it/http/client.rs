//! One way to make a call, and two clients that make it.

use std::error::Error;
use std::pin::pin;
use std::task::Poll;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use relent::adapter::reqwest::RetryClient;
use relent::http::{HttpRetryLayer, ReplayBody, Stopped};
use relent::timer::Manual;
use relent::{Policy, PolicyBuilder, Retry, RetryError, Standard, StopReason};
use tower::{Layer, Service, ServiceExt};

pub(crate) type Handle = Retry<Standard, Manual>;

/// Retries at once, and without bounds other than its attempts: what is left decides.
pub(crate) fn policy() -> PolicyBuilder {
    Policy::constant(std::time::Duration::ZERO).no_attempt_timeout().no_deadline().no_budget()
}

pub(crate) fn retry(policy: PolicyBuilder, time: &Manual) -> Handle {
    Retry::with_timer(policy.build().unwrap(), time.clone())
}

/// Two clients, two ways through the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    Tower,
    Reqwest,
}

pub(crate) const BOTH: [Through; 2] = [Through::Tower, Through::Reqwest];

/// A request to make.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) key: Option<&'static str>,
    pub(crate) body: Bytes,
}

impl Call {
    pub(crate) fn new(method: Method, url: impl Into<String>) -> Call {
        Call { method, url: url.into(), key: None, body: Bytes::new() }
    }

    pub(crate) fn body(self, body: impl Into<Bytes>) -> Call {
        Call { body: body.into(), ..self }
    }

    pub(crate) fn key(self, key: Option<&'static str>) -> Call {
        Call { key, ..self }
    }
}

/// What became of a call. Its reason is `None` where it succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) status: Option<u16>,
    pub(crate) body: Bytes,
    pub(crate) reason: Option<StopReason>,
    pub(crate) attempts: u32,
    pub(crate) ambiguous: bool,
}

impl Outcome {
    fn answered(status: http::StatusCode, body: Bytes, stopped: Option<Stopped>) -> Outcome {
        Outcome {
            status: Some(status.as_u16()),
            body,
            reason: stopped.map(|stopped| stopped.reason),
            attempts: stopped.map_or(0, |stopped| stopped.attempts),
            ambiguous: stopped.is_some_and(|stopped| stopped.ambiguous),
        }
    }

    fn failed<E>(error: &RetryError<E>) -> Outcome {
        Outcome {
            status: None,
            body: Bytes::new(),
            reason: Some(error.reason()),
            attempts: error.attempts(),
            ambiguous: error.ambiguous(),
        }
    }
}

impl Through {
    pub(crate) async fn call(self, retry: Handle, call: Call) -> Outcome {
        match self {
            Through::Tower => through_tower(hyper_client(), retry, call).await,
            Through::Reqwest => through_reqwest(retry, call).await,
        }
    }
}

pub(crate) fn hyper_client<B>() -> Client<HttpConnector, ReplayBody<B>>
where
    ReplayBody<B>: http_body::Body<Data = Bytes> + Send,
{
    Client::builder(TokioExecutor::new()).build_http()
}

pub(crate) async fn through_tower<S, RB>(client: S, retry: Handle, call: Call) -> Outcome
where
    S: Service<Request<ReplayBody<Full<Bytes>>>, Response = http::Response<RB>> + Clone,
    S::Error: Error + 'static,
    RB: http_body::Body,
    RB::Error: std::fmt::Debug,
{
    let mut request = Request::builder().method(call.method).uri(call.url);
    if let Some(key) = call.key {
        request = request.header("idempotency-key", key);
    }
    let request = request.body(Full::new(call.body)).unwrap();
    let mut service = HttpRetryLayer::new(retry).layer(client);
    match service.ready().await.unwrap().call(request).await {
        Ok(response) => {
            let (parts, body) = response.into_parts();
            let stopped = parts.extensions.get().copied();
            Outcome::answered(parts.status, body.collect().await.unwrap().to_bytes(), stopped)
        }
        Err(error) => Outcome::failed(&error),
    }
}

pub(crate) fn reqwest_client(retry: Handle) -> RetryClient<Standard, Manual> {
    let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never());
    RetryClient::build(client, retry).unwrap()
}

async fn through_reqwest(retry: Handle, call: Call) -> Outcome {
    let client = reqwest_client(retry);
    let mut request = client.inner().request(call.method, call.url);
    if let Some(key) = call.key {
        request = request.header("idempotency-key", key);
    }
    if !call.body.is_empty() {
        request = request.body(call.body);
    }
    match client.send(request).await {
        Ok(response) => {
            let (status, stopped) = (response.status(), response.extensions().get().copied());
            Outcome::answered(status, response.bytes().await.unwrap(), stopped)
        }
        Err(error) => Outcome::failed(&error),
    }
}

/// Runs `future` to its end, and lets time pass whenever something sleeps. Only for policies without timeouts: there
/// whatever sleeps is a wait between attempts.
pub(crate) async fn passing<F: Future>(time: &Manual, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(output);
        }
        // Whoever sleeps is woken by this, and with it this task.
        time.advance_to_next();
        Poll::Pending
    })
    .await
}
