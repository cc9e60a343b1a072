//! tonic: a layer for its channels, what its errors mean, and a server's words to clients.
//!
//! Any generated client takes a channel with [`TonicRetryLayer`] around it. Errors of tonic are known to
//! [`Standard`] wherever they come up, so that [`Retry::run`](crate::Retry::run) around a whole call works
//! too; but only the layer tells servers what there is to tell, and sees pushbacks before tonic has unpacked them.
//!
//! For a server, [`DeadlineLayer`](crate::http::DeadlineLayer) keeps to the callers' `grpc-timeout` and attempt credit;
//! [`previous_attempts`] and [`with_pushback`] are for its handlers.

mod status;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use ::tonic::Status;
use ::tonic::body::Body;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

pub(crate) use self::status::known_error;
pub use self::status::{previous_attempts, stopped, with_pushback};
use crate::classify::{Classify, Standard};
use crate::grpc::{GrpcCall, GrpcRetry, GrpcRetryLayer};
use crate::http::ReplayBody;
use crate::retry::Retry;
use crate::timer::{SystemTimer, Timer};

/// Retries the calls of a tonic channel.
///
/// All of [`GrpcRetryLayer`] holds: what is repeated, when a call is committed, what is told. Make it from one for handles
/// by method, or a look at the first frame. A call that fails comes back as tonic's `Status`, with the server's own
/// code, message and metadata; [`stopped`] says why it was not repeated. Where no attempt was answered the code is
/// DEADLINE_EXCEEDED if the time was up, and tonic's own for the last error otherwise.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use relent::adapter::tonic::TonicRetryLayer;
/// use relent::grpc::GrpcRetryLayer;
/// use relent::{Policy, RepeatRule, Retry};
/// use tonic::transport::Endpoint;
/// use tower::ServiceBuilder;
///
/// let channel = Endpoint::from_static("http://prices.internal:50051").connect_lazy();
/// // Reads may be done twice; for all else only what no server has seen is repeated.
/// let reads = Retry::new(Policy::builder().repeat(RepeatRule::Always).build()?);
/// let layer = GrpcRetryLayer::new(Retry::default()).method("shop.Prices", "Get", reads);
/// let channel = ServiceBuilder::new().layer(TonicRetryLayer::from(layer)).service(channel);
///
/// // let client = PricesClient::new(channel);
/// # let _ = channel;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct TonicRetryLayer<C = Standard, T = SystemTimer> {
    grpc: GrpcRetryLayer<C, T>,
}

impl<C, T> TonicRetryLayer<C, T> {
    /// A layer whose channels share the handle's budget, breaker and memory.
    pub fn new(retry: Retry<C, T>) -> TonicRetryLayer<C, T> {
        TonicRetryLayer { grpc: GrpcRetryLayer::new(retry) }
    }

    /// Says that the channel's server runs relent, or reads its headers: attempts tell it their number and how many are left to
    /// it, and what it used of them is deducted. (tonic adds a request's authority below this layer, so that it can't be
    /// looked up as [`GrpcRetryLayer::peers`] does it.)
    #[must_use]
    pub fn peer(self) -> Self {
        TonicRetryLayer { grpc: self.grpc.peer() }
    }

    /// As [`GrpcRetryLayer::peek_first_frame`].
    #[must_use]
    pub fn peek_first_frame(self, longest: Duration) -> Self {
        TonicRetryLayer { grpc: self.grpc.peek_first_frame(longest) }
    }
}

impl<C, T> From<GrpcRetryLayer<C, T>> for TonicRetryLayer<C, T> {
    fn from(grpc: GrpcRetryLayer<C, T>) -> Self {
        TonicRetryLayer { grpc }
    }
}

impl<S, C, T> Layer<S> for TonicRetryLayer<C, T> {
    type Service = TonicRetry<S, C, T>;

    fn layer(&self, inner: S) -> Self::Service {
        TonicRetry { grpc: self.grpc.layer(Boxing { inner }) }
    }
}

/// A tonic channel that retries: see [`TonicRetryLayer`].
#[derive(Clone, Debug)]
pub struct TonicRetry<S, C = Standard, T = SystemTimer> {
    grpc: GrpcRetry<Boxing<S>, C, T>,
}

impl<S, C, T> TonicRetry<S, C, T> {
    /// The channel below.
    pub fn get_ref(&self) -> &S {
        &self.grpc.get_ref().inner
    }

    /// The channel below.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.grpc.get_mut().inner
    }

    /// The channel below.
    pub fn into_inner(self) -> S {
        self.grpc.into_inner().inner
    }
}

impl<S, C, T, RB> Service<Request<Body>> for TonicRetry<S, C, T>
where
    S: Service<Request<Body>, Response = Response<RB>> + Clone,
    S::Error: std::error::Error + Send + Sync + 'static,
    C: Classify<S::Error> + Clone,
    T: Timer,
    RB: http_body::Body + Send + 'static,
    RB::Data: Send,
    RB::Error: Into<BoxError> + Send,
{
    type Response = Response<Body>;
    type Error = Status;
    type Future = TonicCall<S, RB, C, T>;

    /// Readiness is the channel's.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Status>> {
        self.grpc.poll_ready(cx).map_err(status::of_error)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        TonicCall { call: self.grpc.call(request) }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

pin_project! {
    /// A tonic call that is retried: the future of [`TonicRetry`].
    #[must_use = "futures do nothing unless polled"]
    pub struct TonicCall<S, RB, C, T>
    where
        S: Service<Request<Body>, Response = Response<RB>>,
        RB: http_body::Body,
        T: Timer,
    {
        #[pin]
        call: GrpcCall<Boxing<S>, Body, RB, C, T>,
    }
}

impl<S, RB, C, T> Future for TonicCall<S, RB, C, T>
where
    S: Service<Request<Body>, Response = Response<RB>> + Clone,
    S::Error: std::error::Error + Send + Sync + 'static,
    C: Classify<S::Error> + Clone,
    T: Timer,
    RB: http_body::Body + Send + 'static,
    RB::Data: Send,
    RB::Error: Into<BoxError> + Send,
{
    type Output = Result<Response<Body>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.project().call.poll(cx)) {
            Ok(response) => match status::of_response(&response) {
                Some(status) => Err(status),
                None => Ok(response.map(Body::new)),
            },
            Err(error) => Err(status::of_error(error)),
        })
    }
}

impl<S, RB, C, T> fmt::Debug for TonicCall<S, RB, C, T>
where
    S: Service<Request<Body>, Response = Response<RB>>,
    RB: http_body::Body,
    T: Timer,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TonicCall").finish_non_exhaustive()
    }
}

/// Makes each attempt's body one of tonic's own.
#[derive(Clone, Debug)]
pub struct Boxing<S> {
    inner: S,
}

impl<S> Service<Request<ReplayBody<Body>>> for Boxing<S>
where
    S: Service<Request<Body>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReplayBody<Body>>) -> Self::Future {
        self.inner.call(request.map(Body::new))
    }
}
