//! The gRPC client's tower grammar: layer and service.

use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::methods::Methods;
use super::peek::{Peeked, Peeking};
use super::speech::Speech;
use crate::classify::{Classify, Standard};
use crate::error::RetryError;
use crate::http::{
    HttpCall, Peers, PeersError, Protocol, Replay, ReplayBody, RetryBody, Sender, repeat_of, take_ready,
};
use crate::retry::Retry;
use crate::timer::{SystemTimer, Timer};

/// Retries the gRPC calls of the client below it: anything that takes and answers HTTP requests. (With tonic, take
/// `adapter::tonic::TonicRetryLayer`.)
///
/// # What is repeated
///
/// Whatever no server has seen (no connection, a stream refused or left by GOAWAY) is repeated for every method. For the
/// rest the policy's repeat rule has to allow it: gRPC's calls are POST requests, and by the default rule nobody says that
/// they may be done twice. Say so where it is true:
///
/// - `repeat = "always"` ([`RepeatRule::Always`](crate::RepeatRule::Always)) in the policy of the methods that may be
///   repeated: give them a handle of their own with [`method`](GrpcRetryLayer::method) or
///   [`service`](GrpcRetryLayer::service). A policy read from a gRPC service config says so already.
/// - `repeat = "key-honoured"`, and `idempotency-key` in the metadata of calls whose server deduplicates by it.
/// - [`Repeat::Yes`](crate::Repeat::Yes) among the extensions of one request.
///
/// Which status codes are retried is `retry_on`'s to say: see [`failure_of_code`](super::failure_of_code).
///
/// # When a call is committed
///
/// A response's head without a status commits the call: from then on it is the caller's, whatever its trailers say. So it
/// is where the request, streams included, is longer than the policy's `replay_limit`: it goes on, but what fails then is
/// not repeated, and [`Stopped`](crate::http::Stopped) says
/// [`NotReplayable`](crate::StopReason::NotReplayable). A refused retry answers with the last real response, untouched, and
/// the reason among its extensions.
///
/// # What is told
///
/// Each attempt carries its own time as `grpc-timeout`, recomputed, and less a margin of 5 ms or 5 % so that the server can
/// say that it is up; what the caller wrote there bounds the whole call. Retries say `grpc-previous-rpc-attempts`.
/// Towards [`peers`](GrpcRetryLayer::peers) attempts also tell what HTTP's do.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use http::{Request, Response};
/// use http_body_util::{Empty, Full};
/// use bytes::Bytes;
/// use relent::grpc::{GrpcRetryLayer, previous_attempts};
/// use relent::{Policy, RepeatRule, Retry};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// let retry = Retry::new(Policy::builder().repeat(RepeatRule::Always).build().unwrap());
/// let mut client = ServiceBuilder::new().layer(GrpcRetryLayer::new(retry)).service_fn(|request: Request<_>| async move {
///     let status = if previous_attempts(request.headers()) == 0 { "14" } else { "0" };
///     let response = Response::builder().header("grpc-status", status);
///     Ok::<_, std::io::Error>(response.body(Full::<Bytes>::default()).unwrap())
/// });
///
/// let request = Request::post("/shop.Prices/Get").body(Empty::<Bytes>::new()).unwrap();
/// let response = client.ready().await.unwrap().call(request).await.unwrap();
/// assert_eq!(response.headers()["grpc-status"], "0");
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct GrpcRetryLayer<C = Standard, T = SystemTimer> {
    methods: Methods<C, T>,
    peers: Peers,
    peek: Option<Duration>,
}

impl<C, T> GrpcRetryLayer<C, T> {
    /// A layer whose services share the handle's budget, breaker and memory.
    pub fn new(retry: Retry<C, T>) -> GrpcRetryLayer<C, T> {
        GrpcRetryLayer { methods: Methods::new(retry), peers: Peers::default(), peek: None }
    }

    /// Names the authorities that run relent, or read its headers, as
    /// [`HttpRetryLayer::peers`](crate::http::HttpRetryLayer::peers) does.
    ///
    /// # Errors
    /// [`PeersError`] if one is no authority, or if there are over 1024.
    pub fn peers<P: AsRef<str>>(mut self, names: impl IntoIterator<Item = P>) -> Result<Self, PeersError> {
        self.peers = Peers::new(names)?;
        Ok(self)
    }

    /// The client below has one target, which runs relent or reads its headers.
    #[cfg(feature = "tonic")]
    pub(crate) fn peer(self) -> Self {
        GrpcRetryLayer { peers: Peers::the_only_target(), ..self }
    }

    /// Waits up to `longest` after a response's head for the first thing in it, where the caller has said everything: if
    /// that is a status in the trailers, and no message came before, it counts as if it stood in the head.
    ///
    /// For servers that send metadata before they fail, and so would never be retried. Off by default: where a server
    /// thinks for long between its head and its first message, the caller sees the head later by that, at most by
    /// `longest`. One frame is held, whatever its length, and nothing is copied.
    #[must_use]
    pub fn peek_first_frame(mut self, longest: Duration) -> Self {
        self.peek = Some(longest);
        self
    }
}

impl<C: Clone, T> GrpcRetryLayer<C, T> {
    /// Calls all methods of a service (`package.Service`) through another handle.
    #[must_use]
    pub fn service(mut self, service: &str, retry: Retry<C, T>) -> Self {
        self.methods.service(service, retry);
        self
    }

    /// Calls one method of a service through another handle, which goes before the service's.
    ///
    /// ```
    /// use relent::grpc::GrpcRetryLayer;
    /// use relent::{Policy, RepeatRule, Retry};
    ///
    /// let reads = Retry::new(Policy::builder().repeat(RepeatRule::Always).build()?);
    /// let layer = GrpcRetryLayer::new(Retry::default()).method("shop.Orders", "Get", reads);
    /// # let _ = layer;
    /// # Ok::<(), relent::PolicyError>(())
    /// ```
    #[must_use]
    pub fn method(mut self, service: &str, method: &str, retry: Retry<C, T>) -> Self {
        self.methods.method(service, method, retry);
        self
    }
}

impl<S, C, T> Layer<S> for GrpcRetryLayer<C, T> {
    type Service = GrpcRetry<S, C, T>;

    fn layer(&self, inner: S) -> Self::Service {
        let GrpcRetryLayer { methods, peers, peek } = self;
        GrpcRetry { inner, methods: methods.clone(), peers: peers.clone(), peek: *peek }
    }
}

/// A gRPC client that retries: see [`GrpcRetryLayer`].
#[derive(Clone, Debug)]
pub struct GrpcRetry<S, C = Standard, T = SystemTimer> {
    inner: S,
    methods: Methods<C, T>,
    peers: Peers,
    peek: Option<Duration>,
}

impl<S, C, T> GrpcRetry<S, C, T> {
    /// The client below.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The client below.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The client below.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

/// A gRPC call that is retried: the future of [`GrpcRetry`].
pub type GrpcCall<S, B, RB, C, T> = HttpCall<Peeking<S, T>, B, Peeked<RB>, C, T>;

impl<S, C, T, B, RB> Service<Request<B>> for GrpcRetry<S, C, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<RB>> + Clone,
    C: Classify<S::Error> + Clone,
    T: Timer,
    B: Body,
    RB: Body,
{
    type Response = Response<RetryBody<Peeked<RB>>>;
    type Error = RetryError<S::Error>;
    type Future = GrpcCall<S, B, RB, C, T>;

    /// Readiness is the inner service's.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(RetryError::before_the_first)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let retry = self.methods.of(parts.uri.path()).clone();
        let policy = retry.policy();
        let repeat = repeat_of(&parts, policy);
        let replay = Replay::new(body, policy.replay_limit(), &retry.shared.memory);
        let service = take_ready(&mut self.inner);
        let peeking = Peeking::new(service, retry.shared.timer.clone(), self.peek);
        let speech = Speech::new(policy);
        let sender = Sender::new(peeking, parts, replay, self.peers.clone());
        HttpCall::new(retry, sender.speaking(Protocol::Grpc(speech)), repeat)
    }
}
