//! The breaker's tower grammar.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use relent_core::Health;
use tower_layer::Layer;
use tower_service::Service;

use super::{BreakerError, BreakerOpen, BreakerPermit, CircuitBreaker};
use crate::timer::{Clock, SystemTimer};

/// What a response, or an error, says about the target.
type Judge<R, E> = fn(&Result<R, E>) -> Health;

/// Stops the calls of the service below it while that fails.
///
/// Errors count as failures, responses as successes; say otherwise with [`judge`](BreakerLayer::judge). Readiness is the
/// inner service's; the breaker is asked at the call, and a refused one never reaches the service. A response future that
/// is dropped counts for neither side.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), relent::PolicyError> {
/// use relent::{BreakerLayer, CircuitBreaker, ClassicConfig};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// let breaker = CircuitBreaker::new(ClassicConfig::new())?;
/// let mut service = ServiceBuilder::new()
///     .layer(BreakerLayer::new(breaker.clone()))
///     .service_fn(|name: &'static str| async move { Ok::<_, std::io::Error>(format!("hello {name}")) });
/// assert!(service.ready().await.unwrap().call("tower").await.is_ok());
/// breaker.open();
/// assert!(service.ready().await.unwrap().call("tower").await.is_err());
/// # Ok(()) }
/// ```
pub struct BreakerLayer<J = (), T = SystemTimer> {
    breaker: CircuitBreaker<T>,
    judge: J,
}

impl<T> BreakerLayer<(), T> {
    /// A layer whose services share `breaker`.
    pub fn new(breaker: CircuitBreaker<T>) -> BreakerLayer<(), T> {
        BreakerLayer { breaker, judge: () }
    }

    /// Says what an outcome means for the target's health: a response with status 503 is no success.
    pub fn judge<R, E>(self, judge: Judge<R, E>) -> BreakerLayer<Judge<R, E>, T> {
        BreakerLayer { breaker: self.breaker, judge }
    }
}

impl<J: Clone, T: Clone> Clone for BreakerLayer<J, T> {
    fn clone(&self) -> Self {
        BreakerLayer { breaker: self.breaker.clone(), judge: self.judge.clone() }
    }
}

impl<J, T> fmt::Debug for BreakerLayer<J, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerLayer").field("breaker", &self.breaker).finish_non_exhaustive()
    }
}

impl<S, J: Clone, T: Clone> Layer<S> for BreakerLayer<J, T> {
    type Service = BreakerService<S, J, T>;

    fn layer(&self, inner: S) -> Self::Service {
        BreakerService { inner, breaker: self.breaker.clone(), judge: self.judge.clone() }
    }
}

/// A service behind a breaker: see [`BreakerLayer`].
#[derive(Clone)]
pub struct BreakerService<S, J = (), T = SystemTimer> {
    inner: S,
    breaker: CircuitBreaker<T>,
    judge: J,
}

impl<S, J, T> BreakerService<S, J, T> {
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

impl<S, J, T> fmt::Debug for BreakerService<S, J, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerService").field("breaker", &self.breaker).finish_non_exhaustive()
    }
}

/// How a layer judges outcomes; sealed by being of use to nobody else.
pub trait Judges<R, E>: Clone {
    /// What the outcome says.
    #[doc(hidden)]
    fn health(&self, outcome: &Result<R, E>) -> Health;
}

impl<R, E> Judges<R, E> for () {
    fn health(&self, outcome: &Result<R, E>) -> Health {
        if outcome.is_ok() { Health::Good } else { Health::Bad }
    }
}

impl<R, E> Judges<R, E> for Judge<R, E> {
    fn health(&self, outcome: &Result<R, E>) -> Health {
        self(outcome)
    }
}

impl<S, Q, J, T> Service<Q> for BreakerService<S, J, T>
where
    S: Service<Q>,
    J: Judges<S::Response, S::Error>,
    T: Clock,
{
    type Response = S::Response;
    type Error = BreakerError<S::Error>;
    type Future = BreakerFuture<S::Future, J, T>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(BreakerError::Inner)
    }

    fn call(&mut self, request: Q) -> Self::Future {
        match self.breaker.try_acquire() {
            Ok(permit) => BreakerFuture {
                response: Some(self.inner.call(request)),
                permit: Some(permit),
                refused: None,
                judge: self.judge.clone(),
            },
            Err(open) => {
                BreakerFuture { response: None, permit: None, refused: Some(open), judge: self.judge.clone() }
            }
        }
    }
}

pin_project! {
    /// One call through a breaker.
    #[must_use = "futures do nothing unless polled"]
    pub struct BreakerFuture<F, J, T: Clock> {
        #[pin]
        response: Option<F>,
        permit: Option<BreakerPermit<T>>,
        refused: Option<BreakerOpen>,
        judge: J,
    }
}

impl<F, R, E, J, T> Future for BreakerFuture<F, J, T>
where
    F: Future<Output = Result<R, E>>,
    J: Judges<R, E>,
    T: Clock,
{
    type Output = Result<R, BreakerError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(open) = this.refused.take() {
            return Poll::Ready(Err(open.into()));
        }
        let response = this.response.as_pin_mut().expect("a call that was refused has ended");
        let outcome = ready!(response.poll(cx));
        if let Some(permit) = this.permit.take() {
            permit.tell(this.judge.health(&outcome));
        }
        Poll::Ready(outcome.map_err(BreakerError::Inner))
    }
}

impl<F, J, T: Clock> fmt::Debug for BreakerFuture<F, J, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerFuture").field("refused", &self.refused).finish_non_exhaustive()
    }
}
