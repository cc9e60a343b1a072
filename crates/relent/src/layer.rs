//! The tower driver: a layer that retries a service whose requests can be cloned.
//!
//! For HTTP take [`HttpRetryLayer`](crate::http::HttpRetryLayer) instead: it knows methods, statuses, hints and bodies.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::attempt::Attempt;
use crate::classify::{Classify, Standard};
use crate::error::RetryError;
use crate::retry::Retry;
use crate::run::{Operation, Run};
use crate::timer::{SystemTimer, Timer};

/// Retries the calls of the service below it.
///
/// The service's errors are classified by the handle; a response is a success. Every attempt but the first waits until a
/// clone of the service is ready; an attempt may go to another endpoint if a balancer stands below.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use relent::{Policy, Retry, RetryLayer, Verdict};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// let retry = Retry::new(Policy::default()).classify(|_: &std::fmt::Error| Verdict::Transient);
/// let mut service = ServiceBuilder::new()
///     .layer(RetryLayer::new(retry))
///     .service_fn(|name: &'static str| async move { Ok::<_, std::fmt::Error>(format!("hello {name}")) });
///
/// let answer = service.ready().await.unwrap().call("tower").await;
/// assert_eq!(answer.ok().as_deref(), Some("hello tower"));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RetryLayer<C = Standard, T = SystemTimer> {
    retry: Retry<C, T>,
}

impl<C, T> RetryLayer<C, T> {
    /// A layer whose services share the handle's budget and breaker.
    pub fn new(retry: Retry<C, T>) -> RetryLayer<C, T> {
        RetryLayer { retry }
    }
}

impl<S, C: Clone, T> Layer<S> for RetryLayer<C, T> {
    type Service = RetryService<S, C, T>;

    fn layer(&self, inner: S) -> Self::Service {
        RetryService { inner, retry: self.retry.clone() }
    }
}

/// A service that is retried: see [`RetryLayer`].
#[derive(Clone, Debug)]
pub struct RetryService<S, C = Standard, T = SystemTimer> {
    inner: S,
    retry: Retry<C, T>,
}

impl<S, C, T> RetryService<S, C, T> {
    /// The service below.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The service below.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The service below.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, R, C, T> Service<R> for RetryService<S, C, T>
where
    S: Service<R> + Clone,
    R: Clone,
    C: Classify<S::Error> + Clone,
    T: Timer,
{
    type Response = S::Response;
    type Error = RetryError<S::Error>;
    type Future = Run<Retry<C, T>, Attempts<S, R>, ReadyCall<S, R>, S::Error>;

    /// Readiness is the inner service's; its error ends the call like an attempt's would, when the call is made.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(RetryError::before_the_first)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // The instance that was polled ready is the one to call; the clone waits for its own turn.
        let clone = self.inner.clone();
        let service = std::mem::replace(&mut self.inner, clone);
        Run::new(self.retry.clone(), Attempts { service, request, first: true })
    }
}

/// The attempts of one call to a service.
#[derive(Debug)]
pub struct Attempts<S, R> {
    service: S,
    /// Kept whatever the policy's attempts are: a free repeat may follow even a single one.
    request: R,
    first: bool,
}

impl<S: Service<R> + Clone, R: Clone> Operation<S::Error> for Attempts<S, R> {
    type Future = ReadyCall<S, R>;

    fn start(&mut self, _attempt: Attempt, _last: Option<&S::Error>) -> ReadyCall<S, R> {
        let request = self.request.clone();
        if std::mem::take(&mut self.first) {
            let response = self.service.call(request);
            return ReadyCall { stage: Stage::Called { response } };
        }
        ReadyCall { stage: Stage::Readying { service: self.service.clone(), request: Some(request) } }
    }
}

pin_project! {
    /// One attempt: waits until its service is ready, then calls that very instance.
    pub struct ReadyCall<S: Service<R>, R> {
        #[pin]
        stage: Stage<S, R, S::Future>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S, R, F> {
        Readying { service: S, request: Option<R> },
        Called { #[pin] response: F },
    }
}

impl<S: Service<R>, R> ReadyCall<S, R> {
    /// `request` to `service`, once that is ready.
    #[cfg(feature = "http")]
    pub(crate) fn new(service: S, request: R) -> ReadyCall<S, R> {
        ReadyCall { stage: Stage::Readying { service, request: Some(request) } }
    }
}

impl<S: Service<R>, R> Future for ReadyCall<S, R> {
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        loop {
            let response = match stage.as_mut().project() {
                StageProjection::Called { response } => return response.poll(cx),
                StageProjection::Readying { service, request } => {
                    ready!(service.poll_ready(cx))?;
                    service.call(request.take().expect("called once"))
                }
            };
            stage.set(Stage::Called { response });
        }
    }
}

impl<S: Service<R>, R> fmt::Debug for ReadyCall<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let called = matches!(self.stage, Stage::Called { .. });
        f.debug_struct("ReadyCall").field("called", &called).finish_non_exhaustive()
    }
}
