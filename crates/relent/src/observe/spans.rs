//! A span for each attempt.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::attempt::Attempt;

/// Gives each attempt of `operation` a span `attempt`, a child of the span that is current now, with its `number` and, from
/// the second on, OpenTelemetry's `http.request.resend_count`. The span is entered whenever the attempt runs, and when it
/// is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use relent::{Retry, observe};
///
/// let retry = Retry::default();
/// let price = retry.run(observe::spans("price of tea", |_| async { Ok::<_, std::io::Error>(350) })).await;
/// assert_eq!(price.unwrap(), 350);
/// # }
/// ```
pub fn spans<F, Fut>(name: &'static str, mut operation: F) -> impl FnMut(Attempt) -> SpannedAttempt<Fut>
where
    F: FnMut(Attempt) -> Fut,
{
    let call = Span::current();
    move |attempt| {
        let span = info_span!(
            target: "relent",
            parent: &call,
            "attempt",
            operation = name,
            number = attempt.number(),
            "http.request.resend_count" = Empty,
        );
        resent(&span, &attempt);
        let future = span.in_scope(|| operation(attempt));
        SpannedAttempt { span, future: Some(future) }
    }
}

/// The first attempt is sent, the others are sent again.
fn resent(span: &Span, attempt: &Attempt) {
    if attempt.is_retry() {
        span.record("http.request.resend_count", attempt.number() - 1);
    }
}

pin_project! {
    /// An attempt in its span: see [`spans`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct SpannedAttempt<Fut> {
        span: Span,
        #[pin]
        future: Option<Fut>,
    }

    impl<Fut> PinnedDrop for SpannedAttempt<Fut> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _entered = this.span.enter();
            this.future.set(None);
        }
    }
}

impl<Fut: Future> Future for SpannedAttempt<Fut> {
    type Output = Fut::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Fut::Output> {
        let this = self.project();
        let _entered = this.span.enter();
        this.future.as_pin_mut().expect("there until it is dropped").poll(cx)
    }
}

#[cfg(feature = "http")]
mod layer {
    use http::{Request, Response};
    use tower_layer::Layer;
    use tower_service::Service;

    use super::*;

    /// Gives each attempt a client span: to be put *inside* of the retry layer.
    ///
    /// Named `HTTP`, with the attributes of OpenTelemetry's conventions for HTTP clients: `http.request.method`,
    /// `server.address`, `http.response.status_code` and, from the second attempt on, `http.request.resend_count`. The path
    /// is left out: it may hold what is nobody's business.
    #[derive(Clone, Copy, Debug, Default)]
    #[non_exhaustive]
    pub struct AttemptSpanLayer;

    impl AttemptSpanLayer {
        /// The layer.
        #[must_use]
        pub fn new() -> AttemptSpanLayer {
            AttemptSpanLayer
        }
    }

    impl<S> Layer<S> for AttemptSpanLayer {
        type Service = AttemptSpanService<S>;

        fn layer(&self, inner: S) -> AttemptSpanService<S> {
            AttemptSpanService { inner }
        }
    }

    /// A client whose requests have a span each: see [`AttemptSpanLayer`].
    #[derive(Clone, Debug)]
    pub struct AttemptSpanService<S> {
        inner: S,
    }

    impl<S, B, RB> Service<Request<B>> for AttemptSpanService<S>
    where
        S: Service<Request<B>, Response = Response<RB>>,
    {
        type Response = S::Response;
        type Error = S::Error;
        type Future = SpannedResponse<S::Future>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
            self.inner.poll_ready(cx)
        }

        fn call(&mut self, request: Request<B>) -> SpannedResponse<S::Future> {
            let span = info_span!(
                target: "relent",
                "HTTP",
                "otel.kind" = "client",
                "http.request.method" = request.method().as_str(),
                "server.address" = request.uri().host().unwrap_or(""),
                "http.request.resend_count" = Empty,
                "http.response.status_code" = Empty,
            );
            if let Some(attempt) = request.extensions().get::<Attempt>() {
                resent(&span, attempt);
            }
            let future = span.in_scope(|| self.inner.call(request));
            SpannedResponse { attempt: SpannedAttempt { span, future: Some(future) } }
        }
    }

    pin_project! {
        /// One request in its span.
        #[derive(Debug)]
        #[must_use = "futures do nothing unless polled"]
        pub struct SpannedResponse<F> {
            #[pin]
            attempt: SpannedAttempt<F>,
        }
    }

    impl<F, RB, E> Future for SpannedResponse<F>
    where
        F: Future<Output = Result<Response<RB>, E>>,
    {
        type Output = F::Output;

        fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
            let mut attempt = self.project().attempt;
            let outcome = attempt.as_mut().poll(cx);
            if let Poll::Ready(Ok(response)) = &outcome {
                attempt.span.record("http.response.status_code", response.status().as_u16());
            }
            outcome
        }
    }
}

#[cfg(feature = "http")]
pub use layer::{AttemptSpanLayer, AttemptSpanService, SpannedResponse};
