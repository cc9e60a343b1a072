//! A client's side of time alone: for clients that retry in another way, or not at all.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use http::header::HeaderName;
use pin_project_lite::pin_project;
use relent_core::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::peers::{Peers, PeersError};
use super::time_fields::{TimeFields, TimeUnit};
use crate::ambient::Surroundings;
use crate::deadline::{Deadline, DeadlineExceeded};
use crate::timer::{Clock, SystemTimer};

/// Tells the next server how much time is left: what remains of the [`Deadline`] of the code that makes the request, or of
/// one among the request's extensions where that is nearer.
///
/// It goes upon each request that passes, `grpc-timeout` where it is gRPC, `x-envoy-expected-rq-timeout-ms` otherwise, and
/// [`header`](SendDeadlineLayer::header); rounded down, and never more than the request says already. So below a layer that
/// retries, each attempt tells what is left then. If nothing is left, nothing is sent.
///
/// It adds no deadline and ends nothing; without a deadline it does nothing. Below
/// [`HttpRetryLayer`](super::HttpRetryLayer) it tells what that one tells to its `peers` anyway, and is of use for gRPC, for a
/// header of your own, and towards servers that don't run relent.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use http::{Request, Response};
/// use relent::Deadline;
/// use relent::http::SendDeadlineLayer;
/// use tower::{ServiceBuilder, ServiceExt};
///
/// let client = ServiceBuilder::new().layer(SendDeadlineLayer::new()).service_fn(|request: Request<()>| {
///     let told = request.headers()["x-envoy-expected-rq-timeout-ms"].clone();
///     async move { Ok::<_, std::io::Error>(Response::new(told)) }
/// });
/// let deadline = Deadline::within(Duration::from_millis(250));
/// let answer = deadline.run(async { client.oneshot(Request::new(())).await });
/// assert_eq!(answer.await.unwrap().body(), "250");
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct SendDeadlineLayer<T = SystemTimer> {
    settings: Settings<T>,
}

#[derive(Clone, Debug, Default)]
struct Settings<T> {
    timer: T,
    fields: TimeFields,
    /// `None`: everybody is told.
    peers: Option<Peers>,
}

impl SendDeadlineLayer {
    /// A layer in real time, that tells everybody.
    #[must_use]
    pub fn new() -> SendDeadlineLayer {
        SendDeadlineLayer::default()
    }
}

impl<T: Clock> SendDeadlineLayer<T> {
    /// The same by `timer`'s clock.
    #[must_use]
    pub fn with_timer(timer: T) -> SendDeadlineLayer<T> {
        SendDeadlineLayer { settings: Settings { timer, fields: TimeFields::default(), peers: None } }
    }

    /// Writes this header field too.
    #[must_use]
    pub fn header(mut self, name: HeaderName, unit: TimeUnit) -> Self {
        self.settings.fields.also(name, unit);
        self
    }

    /// Tells these authorities only. A port is needed where it isn't the scheme's own.
    ///
    /// # Errors
    /// [`PeersError`] if one is no authority, or if there are over 1024.
    pub fn peers<P: AsRef<str>>(mut self, names: impl IntoIterator<Item = P>) -> Result<Self, PeersError> {
        self.settings.peers = Some(Peers::new(names)?);
        Ok(self)
    }
}

impl<S, T: Clone> Layer<S> for SendDeadlineLayer<T> {
    type Service = SendDeadline<S, T>;

    fn layer(&self, inner: S) -> Self::Service {
        SendDeadline { inner, settings: self.settings.clone() }
    }
}

/// A client that tells how much time is left: see [`SendDeadlineLayer`].
#[derive(Clone, Debug)]
pub struct SendDeadline<S, T = SystemTimer> {
    inner: S,
    settings: Settings<T>,
}

impl<S, T: Clock> SendDeadline<S, T> {
    /// Writes what is left upon a request.
    fn tell<B>(&self, request: &mut Request<B>) -> Result<(), DeadlineExceeded> {
        let Settings { timer, fields, peers } = &self.settings;
        let own = request.extensions().get::<Deadline<T>>().map_or(Instant::NEVER, Deadline::at);
        let at = Surroundings::current().nearer(timer, own);
        if at.is_never() {
            return Ok(());
        }
        let left = at.since(timer.now());
        if left.is_zero() {
            return Err(DeadlineExceeded::BEFORE);
        }
        if peers.as_ref().is_some_and(|peers| peers.find(request.uri(), request.headers()).is_none()) {
            return Ok(());
        }
        fields.write(request.headers_mut(), left).ok_or(DeadlineExceeded::BEFORE)
    }
}

impl<S, T, B> Service<Request<B>> for SendDeadline<S, T>
where
    S: Service<Request<B>>,
    T: Clock,
{
    type Response = S::Response;
    type Error = SendDeadlineError<S::Error>;
    type Future = SendDeadlineFuture<S::Future>;

    /// Readiness is the inner service's.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(SendDeadlineError::Service)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let inner = match self.tell(&mut request) {
            Ok(()) => Ok(self.inner.call(request)),
            Err(exceeded) => Err(exceeded),
        };
        SendDeadlineFuture {
            inner: inner.map_or_else(|refused| Inner::Refused { refused }, |call| Inner::Sent { call }),
        }
    }
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendDeadlineError<E> {
    /// No time was left; nothing was sent.
    #[error("nothing was sent")]
    Exceeded(#[source] DeadlineExceeded),
    /// The client's own error.
    #[error("the request failed")]
    Service(#[source] E),
}

pin_project! {
    /// The answer to come of a [`SendDeadline`].
    #[must_use = "futures do nothing unless polled"]
    pub struct SendDeadlineFuture<F> {
        #[pin]
        inner: Inner<F>,
    }
}

pin_project! {
    #[project = InnerProjection]
    enum Inner<F> {
        Sent { #[pin] call: F },
        Refused { refused: DeadlineExceeded },
    }
}

impl<F, R, E> Future for SendDeadlineFuture<F>
where
    F: Future<Output = Result<R, E>>,
{
    type Output = Result<R, SendDeadlineError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().inner.project() {
            InnerProjection::Sent { call } => call.poll(cx).map_err(SendDeadlineError::Service),
            InnerProjection::Refused { refused } => Poll::Ready(Err(SendDeadlineError::Exceeded(*refused))),
        }
    }
}

impl<F> fmt::Debug for SendDeadlineFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sent = matches!(self.inner, Inner::Sent { .. });
        f.debug_struct("SendDeadlineFuture").field("sent", &sent).finish_non_exhaustive()
    }
}
