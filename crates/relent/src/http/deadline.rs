//! A server's side of time and credit: what the hop before gives is read, kept to, and known to all that the handler calls.

mod answer;
mod body;

pub use body::DeadlineBody;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::HeaderName;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use relent_core::Instant;
use tower_layer::Layer;
use tower_service::Service;

use self::answer::Dialect;
use super::time_fields::{TimeFields, TimeUnit};
use super::wire;
use crate::ambient::{Bound, Surroundings};
use crate::deadline::Deadline;
use crate::run::poll_to_its_end;
use crate::timer::{Clock, SystemTimer, Timer, poll_until};

/// Keeps a server to its callers' time: for axum, tonic, hyper and whatever else speaks tower.
///
/// What the request says is read: `grpc-timeout` where it is gRPC, `x-envoy-expected-rq-timeout-ms` (what relent's own
/// clients and proxy send, and Envoy), and a [`header`](DeadlineLayer::header) of your choice; the least of them holds. What
/// can't be read, comes twice or is zero counts as absent, but for a `grpc-timeout` of zero: that one is up. A caller can
/// only lower the time, never raise it over [`at_most`](DeadlineLayer::at_most), so everybody's word is taken.
///
/// - Work whose time is up on arrival is refused before the handler runs.
/// - When the time is up the handler is dropped, and with it all that it calls. The caller, if still there, is answered
///   504, or gRPC's status 4; a body that is not complete by then breaks off.
/// - The handler and its response's body see the time as [`Deadline::current`], in the request's extensions as
///   [`Deadline`], and each relent call inside fits into it.
/// - The attempt credit of a caller that runs relent (`relent-attempts: left=2`) bounds the retries of the calls inside, and
///   the response says how many of them were made (`used=1`).
///
/// *Defaults*: no time of its own, so that a request that says nothing runs as long as it likes; bodies are bound too.
///
/// Stand it outside of what queues or limits, so that time spent there counts. The service's errors stay what they are: under
/// axum, `Router::layer(DeadlineLayer::new())` is all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::time::Duration;
/// use bytes::Bytes;
/// use http::{Request, Response, StatusCode};
/// use http_body_util::Full;
/// use relent::http::DeadlineLayer;
/// use relent::{Retry, StopReason};
/// use tower::{Service, ServiceBuilder, ServiceExt};
///
/// let database = Retry::default(); // by its policy a call may take 15 s
/// let mut server = ServiceBuilder::new()
///     .layer(DeadlineLayer::new().at_most(Duration::from_secs(30)))
///     .service_fn(move |_: Request<Full<Bytes>>| {
///         let database = database.clone();
///         async move {
///             let hangs = database.run(|_| std::future::pending::<std::io::Result<()>>());
///             assert_eq!(hangs.await.unwrap_err().reason(), StopReason::DeadlineExceeded);
///             Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::default()))
///         }
///     });
///
/// let request = Request::get("/").header("x-envoy-expected-rq-timeout-ms", "200");
/// let request = request.body(Full::default()).unwrap();
/// let response = server.ready().await.unwrap().call(request).await.unwrap();
/// assert_eq!(response.status(), StatusCode::OK); // at 200 ms: an answer beats the clock
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct DeadlineLayer<T = SystemTimer> {
    settings: Settings<T>,
}

#[derive(Clone, Debug, Default)]
struct Settings<T> {
    timer: T,
    fields: TimeFields,
    at_most: Option<Duration>,
    head_only: bool,
}

impl DeadlineLayer {
    /// A layer in real time, without a time of its own.
    #[must_use]
    pub fn new() -> DeadlineLayer {
        DeadlineLayer::default()
    }
}

impl<T: Clock> DeadlineLayer<T> {
    /// The same by `timer`'s clock.
    #[must_use]
    pub fn with_timer(timer: T) -> DeadlineLayer<T> {
        let fields = TimeFields::default();
        DeadlineLayer { settings: Settings { timer, fields, at_most: None, head_only: false } }
    }

    /// The longest that any request may take, also one that says nothing.
    #[must_use]
    pub fn at_most(mut self, time: Duration) -> Self {
        self.settings.at_most = Some(time);
        self
    }

    /// Reads this header field too.
    #[must_use]
    pub fn header(mut self, name: HeaderName, unit: TimeUnit) -> Self {
        self.settings.fields.also(name, unit);
        self
    }

    /// Binds the handler alone: once its response has a head, the body may outlast the time. For callers who mean the head by
    /// the time that they send; relent's HTTP clients do, since an attempt of theirs ends with it.
    #[must_use]
    pub fn head_only(mut self) -> Self {
        self.settings.head_only = true;
        self
    }
}

impl<S, T: Clone> Layer<S> for DeadlineLayer<T> {
    type Service = DeadlineService<S, T>;

    fn layer(&self, inner: S) -> Self::Service {
        DeadlineService { inner, settings: self.settings.clone() }
    }
}

/// A server that keeps to its callers' time: see [`DeadlineLayer`].
#[derive(Clone, Debug)]
pub struct DeadlineService<S, T = SystemTimer> {
    inner: S,
    settings: Settings<T>,
}

impl<S, T: Timer> DeadlineService<S, T> {
    /// The nearest of what the request says, the layer's own, a layer outside said, and the code around grants.
    fn deadline<B>(&self, request: &Request<B>) -> Option<Deadline<T>> {
        let Settings { timer, fields, at_most, .. } = &self.settings;
        let told = fields.read(request.headers());
        let own = told.into_iter().chain(*at_most).min();
        let own = own.map_or(Instant::NEVER, |time| timer.now() + time);
        let outside = request.extensions().get::<Deadline<T>>().map_or(Instant::NEVER, Deadline::at);
        let at = Surroundings::current().nearer(timer, own.min(outside));
        (!at.is_never()).then(|| Deadline::new(timer.clone(), at))
    }
}

impl<S, T, B, RB> Service<Request<B>> for DeadlineService<S, T>
where
    S: Service<Request<B>, Response = Response<RB>>,
    T: Timer,
    RB: Body,
{
    type Response = Response<DeadlineBody<RB, T>>;
    type Error = S::Error;
    type Future = DeadlineResponse<S::Future, T>;

    /// Readiness is the inner service's.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let deadline = self.deadline(&request);
        let granted = wire::granted(request.headers());
        let dialect = Dialect::of(request.headers());
        let is_past = deadline.as_ref().is_some_and(Deadline::is_past);
        if let Some(deadline) = &deadline {
            request.extensions_mut().insert(deadline.clone());
        }
        let mut inside = Inside::new(granted, deadline);
        let handler = if is_past { None } else { Some(inside.enter(|| self.inner.call(request))) };
        let head_only = self.settings.head_only;
        DeadlineResponse {
            inside: Some(inside),
            granted,
            dialect,
            head_only,
            begun: false,
            handler,
            sleep: None,
        }
    }
}

/// What the work for one request sees around it.
struct Inside<T: Clock> {
    /// Where the hop before grants credit: an account of the request's own.
    credit: Option<Surroundings>,
    deadline: Option<Deadline<T>>,
}

impl<T: Clock> Inside<T> {
    fn new(granted: Option<u32>, deadline: Option<Deadline<T>>) -> Inside<T> {
        let account = |left| Surroundings::new(Some(left), Bound::at(Instant::NEVER));
        Inside { credit: granted.map(account), deadline }
    }

    fn enter<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let Inside { credit, deadline } = self;
        let bounded = || match deadline {
            Some(deadline) => deadline.run_blocking(work),
            None => work(),
        };
        match credit {
            Some(credit) => credit.enter(bounded),
            None => bounded(),
        }
    }

    fn left(&self) -> u32 {
        self.credit.and_then(|credit| credit.left()).unwrap_or(0)
    }
}

pin_project! {
    /// The response of a [`DeadlineService`] to come.
    #[must_use = "futures do nothing unless polled"]
    pub struct DeadlineResponse<F, T>
    where
        T: Timer,
    {
        // `None` once it goes along with the response's body.
        inside: Option<Inside<T>>,
        granted: Option<u32>,
        dialect: Dialect,
        head_only: bool,
        begun: bool,
        // `None` if it is not to be run.
        #[pin]
        handler: Option<F>,
        #[pin]
        sleep: Option<T::Sleep>,
    }

    impl<F, T> PinnedDrop for DeadlineResponse<F, T>
    where
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if let Some(inside) = this.inside {
                inside.enter(|| this.handler.set(None));
            }
        }
    }
}

impl<F, T, RB, E> Future for DeadlineResponse<F, T>
where
    F: Future<Output = Result<Response<RB>, E>>,
    T: Timer,
    RB: Body,
{
    type Output = Result<Response<DeadlineBody<RB, T>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let inside = this.inside.as_mut().expect("not polled after its end");
        if !std::mem::replace(this.begun, true) && inside.deadline.as_ref().is_some_and(Deadline::is_past) {
            inside.enter(|| this.handler.set(None));
        }
        if this.handler.is_none() {
            return Poll::Ready(Ok(this.dialect.refused(*this.granted)));
        }
        match inside.enter(|| poll_to_its_end(this.handler.as_mut(), cx)) {
            Poll::Ready(outcome) => {
                this.sleep.set(None);
                let inside = this.inside.take().expect("it was here just now");
                let (granted, head_only) = (*this.granted, *this.head_only);
                Poll::Ready(
                    outcome.map(|response| answered(response, inside, granted, *this.dialect, head_only)),
                )
            }
            Poll::Pending => {
                let Some(deadline) = &inside.deadline else { return Poll::Pending };
                ready!(poll_until(deadline.timer(), deadline.at(), this.sleep, cx));
                inside.enter(|| this.handler.set(None));
                let used = this.granted.map(|granted| granted.saturating_sub(inside.left()));
                Poll::Ready(Ok(this.dialect.cut_off(used)))
            }
        }
    }
}

/// The handler's own response, its body bound like the handler was.
fn answered<RB: Body, T: Timer>(
    response: Response<RB>,
    mut inside: Inside<T>,
    granted: Option<u32>,
    dialect: Dialect,
    head_only: bool,
) -> Response<DeadlineBody<RB, T>> {
    let (mut parts, body) = response.into_parts();
    if let Some(granted) = granted {
        wire::report(&mut parts.headers, granted.saturating_sub(inside.left()));
        // What a failure's body still spent, nobody would hear of.
        if parts.status.as_u16() >= 400 {
            inside.credit = Some(Surroundings::new(Some(0), Bound::at(Instant::NEVER)));
        }
    }
    if head_only {
        inside.deadline = None;
    }
    Response::from_parts(parts, DeadlineBody::bound(body, inside, dialect))
}

impl<F, T: Timer> fmt::Debug for DeadlineResponse<F, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineResponse").field("begun", &self.begun).finish_non_exhaustive()
    }
}
