//! Retries as one of [`reqwest_middleware`]'s middlewares.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use ::reqwest::{Body, Request, Response};
use ::reqwest_middleware::{Error, Middleware, Next, Result};
use http::Extensions;
use relent_core::Failure;
use tower_service::Service;

use super::reqwest::{as_reqwest, send_through, with_url};
use crate::ambient::Surroundings;
use crate::classify::{Classify, Standard, known_error as known};
use crate::http::{HttpRetryLayer, ReplayBody, is_idempotent};
use crate::retry::Retry;
use crate::timer::{SystemTimer, Timer};

/// Retries what stands below it in a [`ClientWithMiddleware`](::reqwest_middleware::ClientWithMiddleware), as
/// [`HttpRetryLayer`] says.
///
/// Middlewares added after it run in each attempt (signatures, tracing of attempts), those before it once for the call.
/// What attempts leave in the extensions is there for the next one, and afterwards.
///
/// A response answers, whatever its status; why a failed one is the last stands among its extensions
/// ([`Stopped`](crate::http::Stopped)). Where there is none, the error is [`Error::Middleware`], with a
/// [`RetryError`](crate::RetryError) of this [`Error`] in it.
///
/// The client follows redirects without a word, so a POST or PATCH that found no connection is not repeated (see
/// [`RetryClient`](super::reqwest::RetryClient), which knows more): give it a key, and the policy `key-honoured`.
///
/// ```no_run
/// # async fn call() -> Result<(), Box<dyn std::error::Error>> {
/// use relent::adapter::reqwest_middleware::RetryMiddleware;
/// use relent::{Policy, Retry};
/// use reqwest_middleware::ClientBuilder;
///
/// let client = ClientBuilder::new(reqwest::Client::new())
///     .with(RetryMiddleware::new(Retry::new(Policy::default())))
///     .build();
/// let order = client.get("http://orders.internal/7").send().await?;
/// println!("{}", order.text().await?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct RetryMiddleware<C = Standard, T = SystemTimer> {
    layer: HttpRetryLayer<C, T>,
}

impl<C, T> RetryMiddleware<C, T> {
    /// Clones share the handle's budget and breaker.
    pub fn new(retry: Retry<C, T>) -> RetryMiddleware<C, T> {
        HttpRetryLayer::new(retry).into()
    }
}

impl<C, T> From<HttpRetryLayer<C, T>> for RetryMiddleware<C, T> {
    /// With all that the layer was told: peers, rules for responses, keys, authorities.
    fn from(layer: HttpRetryLayer<C, T>) -> Self {
        RetryMiddleware { layer }
    }
}

#[async_trait::async_trait]
impl<C, T> Middleware for RetryMiddleware<C, T>
where
    C: Classify<Error> + Clone + Send + Sync + 'static,
    T: Timer,
    T::Sleep: Send,
{
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let shared = Arc::new(Mutex::new(std::mem::take(extensions)));
        let below = Rest { next, extensions: Arc::clone(&shared) };
        let response = send_through(&self.layer, below, request).await;
        *extensions = std::mem::take(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
        response.map_err(Error::middleware)
    }
}

/// The middlewares below and the client, as the layer sees them.
#[derive(Clone)]
struct Rest<'a> {
    next: Next<'a>,
    extensions: Arc<Mutex<Extensions>>,
}

impl<'a> Service<http::Request<ReplayBody<Body>>> for Rest<'a> {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>>> + Send + 'a>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<ReplayBody<Body>>) -> Self::Future {
        let Rest { next, extensions } = self.clone();
        Box::pin(async move {
            // Its first hop may have been answered, whatever the error says.
            let doubtful = !is_idempotent(request.method());
            let request = as_reqwest(request)?;
            let mut own = extensions.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let response = next.run(request, &mut own).await;
            *extensions.lock().unwrap_or_else(PoisonError::into_inner) = own;
            if doubtful && response.as_ref().is_err_and(|error| !error.is_builder()) {
                Surroundings::mark_ambiguous();
            }
            response.map(with_url)
        })
    }
}

/// What an error means that hides another: it names that one's source as its own.
pub(crate) fn known_error(error: &Error) -> Option<Failure> {
    match error {
        Error::Reqwest(error) => known(error),
        Error::Middleware(error) => known(error.as_ref()),
    }
}
