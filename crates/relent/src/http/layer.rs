//! The HTTP driver's tower grammar: layer and service.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, response};
use http_body::Body;
use tower_layer::Layer;
use tower_service::Service;

use super::authorities::Authorities;
use super::call::{HttpCall, Sender};
use super::keys::Keys;
use super::memory::ReplayMemory;
use super::method;
use super::peek::Rules;
use super::peers::{Peers, PeersError};
use super::replay::{Replay, ReplayBody};
use crate::classify::{Classify, Judgement, Standard};
use crate::error::RetryError;
use crate::retry::Retry;
use crate::timer::{Clock, SystemTimer, Timer};

/// Retries the HTTP requests of the client below it.
///
/// What is repeated follows from the policy's repeat rule, the request's method and `Idempotency-Key`, and from what is
/// known to have been sent:
///
/// | | no connection, unprocessed | broke off, timed out | 500 502 503 504 | 429, 503 with `Retry-After` |
/// |---|---|---|---|---|
/// | GET HEAD OPTIONS TRACE PUT DELETE | repeat | repeat | repeat | repeat after the wait asked for |
/// | POST PATCH and others | repeat | no | no | no |
/// | the same with a key, under `key-honoured` | repeat | repeat, same key | repeat, same key | repeat after it, same key |
///
/// A request that carries a [`Repeat`](crate::Repeat) among its extensions goes by that instead: a search by POST, say.
///
/// The body streams through on the first try and is kept on the way, up to the policy's `replay_limit`; a longer one can
/// be sent again only after an attempt that read nothing of it. An attempt ends with the response's headers: its body
/// streams as long as it likes.
///
/// A refused retry answers with the last real response, untouched, and the reason among its extensions ([`Stopped`]).
/// While a retry waits, the failed response is read to memory, so that its connection is free; one over 16 KiB, or not
/// finished by then, is cut off, and if the retry is then refused after all, what is left of it are status and headers.
///
/// Towards [`peers`](HttpRetryLayer::peers) each attempt says its number, its time, and how many attempts are left to the
/// peer. There are none by default.
///
/// The errors of hyper, hyper-util and reqwest are known where the features of these names are on. For a client with
/// boxed errors, classify with [`Boxed`](crate::Boxed).
///
/// [`Stopped`]: super::Stopped
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use bytes::Bytes;
/// use http::{Request, Response, StatusCode};
/// use http_body_util::{Empty, Full};
/// use relent::http::{HttpRetryLayer, Stopped};
/// use relent::{Policy, Retry, StopReason};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// let retry = Retry::new(Policy::constant(std::time::Duration::ZERO).build().unwrap());
/// let mut client = ServiceBuilder::new().layer(HttpRetryLayer::new(retry)).service_fn(|_request| async {
///     let mut busy = Response::new(Full::new(Bytes::from("busy")));
///     *busy.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
///     Ok::<_, std::io::Error>(busy)
/// });
///
/// let response = client.ready().await.unwrap().call(Request::new(Empty::<Bytes>::new())).await.unwrap();
/// let stopped = response.extensions().get::<Stopped>().unwrap();
/// assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
/// assert_eq!((stopped.reason, stopped.attempts), (StopReason::AttemptsExhausted, 3));
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HttpRetryLayer<C = Standard, T = SystemTimer> {
    retry: Retry<C, T>,
    by_authority: Option<Arc<Authorities<C, T>>>,
    peers: Peers,
    rules: Rules,
    keys: Option<Keys>,
}

impl<C, T> HttpRetryLayer<C, T> {
    /// A layer whose services share the handle's budget, breaker and memory.
    pub fn new(retry: Retry<C, T>) -> HttpRetryLayer<C, T> {
        HttpRetryLayer {
            retry,
            by_authority: None,
            peers: Peers::default(),
            rules: Rules::default(),
            keys: None,
        }
    }

    /// Names the authorities that run relent, or read its headers. A port is needed where it isn't the scheme's own.
    ///
    /// # Errors
    /// [`PeersError`] if one is no authority, or if there are over 1024.
    ///
    /// ```
    /// use relent::{Retry, http::HttpRetryLayer};
    ///
    /// let layer = HttpRetryLayer::new(Retry::default()).peers(["orders.internal:8080", "users.internal"])?;
    /// assert!(HttpRetryLayer::new(Retry::default()).peers(["http://orders.internal/"]).is_err());
    /// # Ok::<(), relent::http::PeersError>(())
    /// ```
    pub fn peers<P: AsRef<str>>(mut self, names: impl IntoIterator<Item = P>) -> Result<Self, PeersError> {
        self.peers = Peers::new(names)?;
        Ok(self)
    }

    /// Judges responses by what you know of them: status, headers, extensions. `None` leaves a response to the rules
    /// above; to say that one is not to be retried, answer [`Verdict::Permanent`](relent_core::Verdict::Permanent).
    ///
    /// A failure without a [`Cause`](relent_core::Cause) is retried whatever the policy's `retry_on` lists. The response's own
    /// `Retry-After` and stop mark count for it, too.
    ///
    /// ```
    /// use relent::{Retry, Verdict, http::HttpRetryLayer};
    ///
    /// // A gateway that says in a header of its 200 that it had nothing to say.
    /// let layer = HttpRetryLayer::new(Retry::default())
    ///     .classify_response(|parts| parts.headers.contains_key("x-partial").then_some(Verdict::Transient));
    /// # let _ = layer;
    /// ```
    #[must_use]
    pub fn classify_response<R: Judgement>(
        mut self,
        judge: impl Fn(&response::Parts) -> R + Send + Sync + 'static,
    ) -> Self {
        self.rules.judge_parts(Box::new(move |parts| judge(parts).failure()));
        self
    }

    /// Judges responses with one of `statuses` by their body, where that is at most `limit` bytes long: a hint in JSON, say.
    /// It is read within the attempt's own time, and the caller gets it as if nobody had. One that is longer, that breaks
    /// off, or that is not there in time is judged without. `None` leaves the response to
    /// [`classify_response`](Self::classify_response), and that to the rules above.
    ///
    /// ```
    /// use http::StatusCode;
    /// use relent::{Hint, Retry, Verdict, http::HttpRetryLayer};
    /// use std::time::Duration;
    ///
    /// // {"retry_in_ms": 250}
    /// let layer = HttpRetryLayer::new(Retry::default()).peek_body(1024, [StatusCode::TOO_MANY_REQUESTS], |_, body| {
    ///     let text = std::str::from_utf8(body).ok()?;
    ///     let wait = text.split_once(r#""retry_in_ms":"#)?.1.trim_matches([' ', '}']).parse().ok()?;
    ///     Some(Verdict::Throttled { hint: Some(Hint::at_least(Duration::from_millis(wait))) })
    /// });
    /// # let _ = layer;
    /// ```
    #[must_use]
    pub fn peek_body<R: Judgement>(
        mut self,
        limit: u64,
        statuses: impl IntoIterator<Item = StatusCode>,
        judge: impl Fn(&response::Parts, &Bytes) -> R + Send + Sync + 'static,
    ) -> Self {
        let judge = move |parts: &response::Parts, body: &Bytes| judge(parts, body).failure();
        self.rules.judge_body(limit, statuses.into_iter().collect(), Box::new(judge));
        self
    }
}

impl<C, T> HttpRetryLayer<C, T> {
    /// Gives a request that has no `Idempotency-Key` and could be repeated only with one a fresh key: under the repeat rule
    /// `key-honoured`, for POST, PATCH and other methods that are not idempotent. The key is made once for the logical request,
    /// and all its attempts carry the same; a key of the caller's own is never touched.
    ///
    /// Keys are random UUIDs from the operating system's entropy, in quotes as the header's draft has it. Where there is no
    /// entropy no key is added, and the request goes by the rule for those without. A request among whose extensions is a
    /// [`Repeat`](crate::Repeat) gets none.
    ///
    /// A key made here is new for each call: what the *program* sends again, after a crash say, is a new request to the
    /// receiver. Where that matters make the key from the work itself, and send it as a header.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::Request;
    /// use http_body_util::Empty;
    /// use relent::http::{HttpRetryLayer, IDEMPOTENCY_KEY};
    /// use relent::testing::{self, HttpScript};
    /// use relent::{Policy, RepeatRule, Retry};
    /// use tower::{Layer, Service};
    ///
    /// let (seen, _) = testing::block_on(async |time| {
    ///     let server = HttpScript::on(&time).breaks().answers(201);
    ///     let policy = Policy::builder().repeat(RepeatRule::KeyHonoured).build().unwrap();
    ///     let layer = HttpRetryLayer::new(Retry::with_timer(policy, time)).generate_keys();
    ///     let order = Request::post("http://orders.test/").body(Empty::<Bytes>::new()).unwrap();
    ///     layer.layer(server.clone()).call(order).await.unwrap();
    ///     server.seen()
    /// });
    /// assert_eq!(seen.len(), 2);
    /// assert_eq!(seen[0].headers[IDEMPOTENCY_KEY], seen[1].headers[IDEMPOTENCY_KEY]);
    /// ```
    #[cfg(feature = "keys")]
    #[must_use]
    pub fn generate_keys(mut self) -> Self {
        self.keys = Some(Keys::made_by(super::keys::random));
        self
    }

    /// The same with keys of your own making; `None` adds none. They must not come twice, in this process or another.
    #[must_use]
    pub fn keys_from(mut self, make: impl Fn() -> Option<HeaderValue> + Send + Sync + 'static) -> Self {
        self.keys = Some(Keys::made_by(make));
        self
    }
}

impl<C: Clone, T: Clock> HttpRetryLayer<C, T> {
    /// Gives each authority (host and port) that requests go to a budget, a breaker and a bound on waiting calls of its own,
    /// as the policy describes them: for a client that calls many hosts, so that a dead one takes nothing from the others.
    /// A budget or breaker that was given to the handle itself stays one for all. [`DEFAULT_AUTHORITIES`] is a good number.
    ///
    /// Up to `most` authorities are known at a time. A new one takes the place of that which was used longest ago, whose
    /// state is then forgotten, but never of one that calls use; where calls use them all, it goes by the handle itself.
    ///
    /// # Panics
    /// If `most` is 0.
    ///
    /// ```
    /// use relent::{Retry, http::{DEFAULT_AUTHORITIES, HttpRetryLayer}};
    ///
    /// let layer = HttpRetryLayer::new(Retry::default()).per_authority(DEFAULT_AUTHORITIES);
    /// # let _ = layer;
    /// ```
    #[must_use]
    pub fn per_authority(mut self, most: usize) -> Self {
        assert!(most > 0, "a map of authorities needs room for one: leave per_authority out to have none");
        self.by_authority = Some(Arc::new(Authorities::new(most)));
        self
    }
}

impl<S, C: Clone, T> Layer<S> for HttpRetryLayer<C, T> {
    type Service = HttpRetry<S, C, T>;

    fn layer(&self, inner: S) -> Self::Service {
        HttpRetry {
            inner,
            retry: self.retry.clone(),
            by_authority: self.by_authority.clone(),
            peers: self.peers.clone(),
            rules: self.rules.clone(),
            keys: self.keys.clone(),
        }
    }
}

/// How many authorities [`HttpRetryLayer::per_authority`] may well know at a time.
pub const DEFAULT_AUTHORITIES: usize = 1024;

/// An HTTP client that retries: see [`HttpRetryLayer`].
#[derive(Clone, Debug)]
pub struct HttpRetry<S, C = Standard, T = SystemTimer> {
    inner: S,
    retry: Retry<C, T>,
    by_authority: Option<Arc<Authorities<C, T>>>,
    peers: Peers,
    rules: Rules,
    keys: Option<Keys>,
}

impl<S, C, T> HttpRetry<S, C, T> {
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

    /// Starts a call whose body can be replayed in a way of the caller's own.
    pub(crate) fn start<B, RB>(
        &mut self,
        request: Request<()>,
        body: impl FnOnce(u64, &Arc<ReplayMemory>) -> Replay<B>,
    ) -> HttpCall<S, B, RB, C, T>
    where
        S: Service<Request<ReplayBody<B>>, Response = Response<RB>> + Clone,
        C: Clone,
        T: Timer,
        RB: Body,
    {
        let service = take_ready(&mut self.inner);
        let (mut parts, ()) = request.into_parts();
        let retry = match &self.by_authority {
            Some(authorities) => authorities.of(&parts.uri, &parts.headers, &self.retry),
            None => self.retry.clone(),
        };
        if let Some(keys) = &self.keys {
            keys.give(&mut parts, retry.policy());
        }
        let repeat = method::repeat_of(&parts, retry.policy());
        let replay = body(retry.policy().replay_limit(), &retry.shared.memory);
        let sender = Sender::new(service, parts, replay, self.peers.clone()).ruled(self.rules.clone());
        HttpCall::new(retry, sender, repeat)
    }
}

/// The instance that was polled ready is the one to call; a clone stays, and waits for its own turn.
pub(crate) fn take_ready<S: Clone>(inner: &mut S) -> S {
    let clone = inner.clone();
    std::mem::replace(inner, clone)
}

impl<S, C, T, B, RB> Service<Request<B>> for HttpRetry<S, C, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<RB>> + Clone,
    C: Classify<S::Error> + Clone,
    T: Timer,
    B: Body,
    RB: Body,
{
    type Response = Response<super::RetryBody<RB>>;
    type Error = RetryError<S::Error>;
    type Future = HttpCall<S, B, RB, C, T>;

    /// Readiness is the inner service's.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(RetryError::before_the_first)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, body) = request.into_parts();
        self.start(Request::from_parts(parts, ()), |limit, memory| Replay::new(body, limit, memory))
    }
}
