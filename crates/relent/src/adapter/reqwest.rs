//! A [`reqwest`] client that retries.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use ::reqwest::redirect::Policy;
use ::reqwest::{Body, Client, ClientBuilder, Error, Request, RequestBuilder, Response, ResponseBuilderExt};
use bytes::Bytes;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::ambient::Surroundings;
use crate::classify::{Classify, Judgement, Standard};
use crate::error::RetryError;
use crate::http::{HttpRetry, HttpRetryLayer, PeersError, Replay, ReplayBody, is_idempotent};
use crate::retry::Retry;
use crate::timer::{Clock, SystemTimer, Timer};

/// A reqwest client whose requests are retried as [`HttpRetryLayer`] says.
///
/// A response answers, whatever its status, just as reqwest's own do; why a failed one is the last stands among its
/// extensions ([`Stopped`](crate::http::Stopped)). Bodies in memory stay there, so that redirects can send them again;
/// streams are replayed up to the policy's `replay_limit`.
///
/// A request's own timeout holds for each attempt, redirects included. reqwest repeats by itself what a server provably
/// did not process, up to twice; [`reqwest::retry::never`] leaves that to relent, too.
///
/// # Redirects
///
/// reqwest follows them *within* an attempt: an attempt timeout bounds all hops together, and a retry begins at the first hop
/// again, not where the last attempt broke. A hop that was answered by a redirect may have done its work, so a failure at a
/// later hop is ambiguous: a POST is then not repeated, unless by its key (see [`build`](RetryClient::build) and
/// [`new`](RetryClient::new) for what is known of hops). A body in memory goes along where 307 and 308 ask for it; a stream
/// can't, and its redirect comes back as the response. Header fields go along to another host, except for those that reqwest
/// holds back as secrets (`authorization`, `cookie` and the like); so do the `Idempotency-Key` and, where the first hop is a
/// [peer](RetryClient::peers), relent's own. A loop or too long a chain is not retried.
///
/// ```no_run
/// # async fn call() -> Result<(), Box<dyn std::error::Error>> {
/// use relent::{Policy, Retry, adapter::reqwest::RetryClient};
///
/// let client = RetryClient::build(reqwest::Client::builder(), Retry::new(Policy::default()))?;
/// let order = client.send(client.inner().get("http://orders.internal/7")).await?;
/// println!("{}", order.text().await?);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct RetryClient<C = Standard, T = SystemTimer> {
    client: Client,
    hops: Hops,
    layer: HttpRetryLayer<C, T>,
}

/// Whether it is known that a request was redirected: then its first hop was answered, and may have been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hops {
    /// By the redirect policy of [`RetryClient::build`].
    Known,
    /// A client made by somebody else follows redirects without a word.
    Unknown,
}

thread_local! {
    /// The exchange that is polled now has followed a redirect.
    static FOLLOWED: Cell<bool> = const { Cell::new(false) };
}

/// As many as reqwest follows by default.
const MOST_REDIRECTS: usize = 10;

impl<C, T> RetryClient<C, T> {
    /// Requests go through `client`; clones share the handle's budget and breaker.
    ///
    /// A client that may follow redirects doesn't say at which hop a connection failed: what looks as if it had never been
    /// sent may have been answered by a redirect, after it was executed. So a POST or PATCH is not even repeated where no
    /// connection came about; with [`build`](RetryClient::build) it is.
    pub fn new(client: Client, retry: Retry<C, T>) -> RetryClient<C, T> {
        RetryClient { client, hops: Hops::Unknown, layer: HttpRetryLayer::new(retry) }
    }

    /// Builds the client, too, with a redirect policy that tells relent of each hop: up to ten are followed, as reqwest does
    /// by default. A policy that `client` had is replaced.
    ///
    /// # Errors
    /// reqwest's own, where the client can't be built.
    pub fn build(client: ClientBuilder, retry: Retry<C, T>) -> Result<RetryClient<C, T>, Error> {
        let told = Policy::custom(|hop| {
            FOLLOWED.set(true);
            if hop.previous().len() > MOST_REDIRECTS { hop.error("too many redirects") } else { hop.follow() }
        });
        let client = client.redirect(told).build()?;
        Ok(RetryClient { client, hops: Hops::Known, layer: HttpRetryLayer::new(retry) })
    }

    /// Names the authorities that run relent, or read its headers: see [`HttpRetryLayer::peers`].
    ///
    /// # Errors
    /// [`PeersError`] if one is no authority, or if there are over 1024.
    pub fn peers<P: AsRef<str>>(mut self, names: impl IntoIterator<Item = P>) -> Result<Self, PeersError> {
        self.layer = self.layer.peers(names)?;
        Ok(self)
    }

    /// Judges responses by what you know of them: see [`HttpRetryLayer::classify_response`].
    #[must_use]
    pub fn classify_response<R: Judgement>(
        mut self,
        judge: impl Fn(&http::response::Parts) -> R + Send + Sync + 'static,
    ) -> Self {
        self.layer = self.layer.classify_response(judge);
        self
    }

    /// Judges responses by the beginning of their body: see [`HttpRetryLayer::peek_body`].
    #[must_use]
    pub fn peek_body<R: Judgement>(
        mut self,
        limit: u64,
        statuses: impl IntoIterator<Item = http::StatusCode>,
        judge: impl Fn(&http::response::Parts, &Bytes) -> R + Send + Sync + 'static,
    ) -> Self {
        self.layer = self.layer.peek_body(limit, statuses, judge);
        self
    }

    /// Gives each authority that requests go to a budget and breaker of its own: see [`HttpRetryLayer::per_authority`].
    #[must_use]
    pub fn per_authority(mut self, most: usize) -> Self
    where
        C: Clone,
        T: Clock,
    {
        self.layer = self.layer.per_authority(most);
        self
    }

    /// Gives requests that need an `Idempotency-Key` to be repeated a fresh one: see [`HttpRetryLayer::generate_keys`].
    #[cfg(feature = "keys")]
    #[must_use]
    pub fn generate_keys(mut self) -> Self {
        self.layer = self.layer.generate_keys();
        self
    }

    /// The same with keys of your own making: see [`HttpRetryLayer::keys_from`].
    #[must_use]
    pub fn keys_from(mut self, make: impl Fn() -> Option<http::HeaderValue> + Send + Sync + 'static) -> Self {
        self.layer = self.layer.keys_from(make);
        self
    }

    /// The client itself, to build requests with.
    pub fn inner(&self) -> &Client {
        &self.client
    }
}

impl<C: Classify<Error> + Clone, T: Timer> RetryClient<C, T> {
    /// Sends the request, as often as its policy allows.
    ///
    /// # Errors
    /// [`RetryError`] where no attempt was answered, or the last one wasn't.
    pub async fn execute(&self, request: Request) -> Result<Response, RetryError<Error>> {
        send_through(&self.layer, Exchange { client: self.client.clone(), hops: self.hops }, request).await
    }

    /// The same for a request that is still being built.
    ///
    /// # Errors
    /// As [`execute`](Self::execute), and where the request can't be built.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, RetryError<Error>> {
        self.execute(request.build().map_err(RetryError::before_the_first)?).await
    }
}

/// Sends a request through `layer` and what stands below it.
pub(super) async fn send_through<S, C, T>(
    layer: &HttpRetryLayer<C, T>,
    below: S,
    request: Request,
) -> Result<Response, RetryError<S::Error>>
where
    S: Service<http::Request<ReplayBody<Body>>, Response = http::Response<Body>> + Clone,
    S::Error: From<Error>,
    C: Classify<S::Error> + Clone,
    T: Timer,
{
    let request = http::Request::<Body>::try_from(request)
        .map_err(|error| RetryError::before_the_first(S::Error::from(error)))?;
    let (parts, mut body) = request.into_parts();

    let mut service: HttpRetry<S, C, T> = layer.layer(below);
    let call =
        service.start(http::Request::from_parts(parts, ()), |limit, memory| match in_memory(&mut body) {
            Some(bytes) => Replay::in_memory(bytes, limit, memory),
            None => Replay::new(body, limit, memory),
        });
    let (parts, body) = call.await?.into_parts();
    let body = body.into_live().unwrap_or_else(Body::wrap);
    Ok(http::Response::from_parts(parts, body).into())
}

/// The bytes of a body that is in memory, without a copy: such a body yields them at the first poll.
fn in_memory(body: &mut Body) -> Option<Bytes> {
    body.as_bytes()?;
    let polled = http_body::Body::poll_frame(Pin::new(body), &mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(Some(Ok(frame))) => frame.into_data().ok(),
        _ => Some(Bytes::new()),
    }
}

/// The client as the layer sees it: one attempt, redirects included.
#[derive(Clone, Debug)]
struct Exchange {
    client: Client,
    hops: Hops,
}

impl Service<http::Request<ReplayBody<Body>>> for Exchange {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = Exchanging;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.client.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<ReplayBody<Body>>) -> Exchanging {
        // Of a method that may be repeated anyway nobody needs to know at which hop it failed.
        let doubtful = self.hops == Hops::Unknown && !is_idempotent(request.method());
        match as_reqwest(request) {
            Ok(request) => Exchanging::Sent { doubtful, response: self.client.call(request) },
            Err(error) => Exchanging::Refused { error: Some(error) },
        }
    }
}

pin_project! {
    #[project = ExchangingProjection]
    enum Exchanging {
        // `doubtful`: its first hop may have been answered, whatever the error says.
        Sent { doubtful: bool, #[pin] response: <Client as Service<Request>>::Future },
        Refused { error: Option<Error> },
    }
}

impl Future for Exchanging {
    type Output = Result<http::Response<Body>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            ExchangingProjection::Sent { doubtful, response } => {
                FOLLOWED.set(false);
                let polled = response.poll(cx);
                *doubtful |= FOLLOWED.get();
                if *doubtful
                    && let Poll::Ready(Err(error)) = &polled
                    && !error.is_builder()
                {
                    Surroundings::mark_ambiguous();
                }
                polled.map_ok(with_url)
            }
            ExchangingProjection::Refused { error } => {
                Poll::Ready(Err(error.take().expect("a future is not polled after its end")))
            }
        }
    }
}

/// A request as reqwest sends it; one whose body is in memory stays so.
pub(super) fn as_reqwest(request: http::Request<ReplayBody<Body>>) -> Result<Request, Error> {
    Request::try_from(request.map(|body| match body.into_bytes() {
        Ok(bytes) => Body::from(bytes),
        Err(stream) => Body::wrap(stream),
    }))
}

/// reqwest keeps a response's URL apart; among the extensions it survives the way through the layer.
pub(super) fn with_url(response: Response) -> http::Response<Body> {
    let url = response.url().clone();
    let mut response = http::Response::<Body>::from(response);
    let note = http::Response::builder().url(url).body(()).expect("a URL makes no response invalid");
    response.extensions_mut().extend(note.into_parts().0.extensions);
    response
}
