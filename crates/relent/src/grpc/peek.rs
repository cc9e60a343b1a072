//! Waits for the first frame after a response's head, where the status may still come instead of a message.
//!
//! A server that sends metadata before it fails can't fail in the head any more, and by gRFC A6 its call is committed. Where
//! the caller has said everything, and no message has come yet, nobody has seen anything of the answer though: its
//! trailers, if they are what comes next, can be taken for the head that they should have been.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use http::{Request, Response, StatusCode, response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use relent_core::{GrpcCode, Instant};
use tower_service::Service;

use super::speech::AttemptEnds;
use super::status::code_of;
use crate::http::{ReplayBody, Watch};
use crate::timer::{Timer, poll_until};

/// Frames without content are passed over, but not for ever.
const MOST_EMPTY: u32 = 16;

/// The client below the driver, which looks at the first frame where it was asked to.
#[derive(Clone, Debug)]
pub struct Peeking<S, T> {
    inner: S,
    timer: T,
    longest: Option<Duration>,
}

impl<S, T> Peeking<S, T> {
    pub(super) fn new(inner: S, timer: T, longest: Option<Duration>) -> Peeking<S, T> {
        Peeking { inner, timer, longest }
    }
}

impl<S, T, B, RB> Service<Request<ReplayBody<B>>> for Peeking<S, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<RB>>,
    T: Timer,
    B: Body,
    RB: Body,
{
    type Response = Response<Peeked<RB>>;
    type Error = S::Error;
    type Future = Peek<S::Future, B, RB, T>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<ReplayBody<B>>) -> Self::Future {
        let ends = request.extensions_mut().remove::<AttemptEnds>();
        let asked = self.longest.map(|longest| Asked {
            longest,
            ends: ends.map_or(Instant::NEVER, |ends| ends.0),
            request: request.body().watch(),
            timer: self.timer.clone(),
        });
        Peek { answer: self.inner.call(request), asked, head: None, body: None, sleep: None, empty: 0 }
    }
}

/// What a look needs.
struct Asked<B, T> {
    longest: Duration,
    /// When the attempt ends: an answer that has begun by then is one.
    ends: Instant,
    request: Watch<B>,
    timer: T,
}

/// A head whose first frame is awaited.
struct Head {
    parts: response::Parts,
    until: Instant,
}

pin_project! {
    /// A response to come, and what of its body is looked at.
    pub struct Peek<F, B, RB, T>
    where
        RB: Body,
        T: Timer,
    {
        #[pin]
        answer: F,
        asked: Option<Asked<B, T>>,
        head: Option<Head>,
        #[pin]
        body: Option<Pin<Box<RB>>>,
        #[pin]
        sleep: Option<T::Sleep>,
        empty: u32,
    }
}

type First<RB> = Result<Frame<<RB as Body>::Data>, <RB as Body>::Error>;

impl<F, B, RB, T, E> Future for Peek<F, B, RB, T>
where
    F: Future<Output = Result<Response<RB>, E>>,
    T: Timer,
    B: Body,
    RB: Body,
{
    type Output = Result<Response<Peeked<RB>>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut this = self.as_mut().project();
            let Some(head) = this.head.as_ref() else {
                let (parts, body) = ready!(this.answer.poll(cx))?.into_parts();
                let Some(asked) = this.asked.as_ref().filter(|asked| asked.looks_at(&parts, &body)) else {
                    return Poll::Ready(Ok(Response::from_parts(parts, Peeked::live(body))));
                };
                let until = (asked.timer.now() + asked.longest).min(asked.ends);
                *this.head = Some(Head { parts, until });
                this.body.set(Some(Box::pin(body)));
                continue;
            };
            let body = this.body.as_mut().as_pin_mut().expect("it came with the head").get_mut();
            let first = match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) if is_empty(&frame) && *this.empty < MOST_EMPTY => {
                    *this.empty += 1;
                    continue;
                }
                Poll::Ready(first) => first,
                Poll::Pending => {
                    let asked = this.asked.as_ref().expect("somebody asked");
                    ready!(poll_until(&asked.timer, head.until, this.sleep.as_mut(), cx));
                    None
                }
            };
            return Poll::Ready(Ok(self.seen(first)));
        }
    }
}

impl<F, B, RB: Body, T: Timer> Peek<F, B, RB, T> {
    /// The answer as it is now known.
    fn seen(self: Pin<&mut Self>, first: Option<First<RB>>) -> Response<Peeked<RB>> {
        let mut this = self.project();
        this.sleep.set(None);
        let Head { mut parts, .. } = this.head.take().expect("there is a head");
        let body = this.body.get_mut().take().expect("it came with the head");
        let first = match first.map(|first| first.map(Frame::into_trailers)) {
            Some(Ok(Ok(trailers))) if code_of(&trailers).is_some_and(|code| code != GrpcCode::Ok) => {
                parts.headers.remove(CONTENT_LENGTH);
                parts.headers.extend(trailers);
                return Response::from_parts(parts, Peeked::nothing());
            }
            Some(Ok(Ok(trailers))) => Some(Ok(Frame::trailers(trailers))),
            Some(Ok(Err(frame))) => Some(Ok(frame)),
            Some(Err(error)) => Some(Err(error)),
            None => None,
        };
        Response::from_parts(parts, Peeked { first, body: Rest::Boxed { body } })
    }
}

impl<B: Body, T> Asked<B, T> {
    /// Whether a status can still be all that comes.
    fn looks_at<RB: Body>(&self, head: &response::Parts, body: &RB) -> bool {
        head.status == StatusCode::OK
            && code_of(&head.headers).is_none()
            && !body.is_end_stream()
            && self.request.is_over()
    }
}

fn is_empty<D: bytes::Buf>(frame: &Frame<D>) -> bool {
    frame.data_ref().is_some_and(|data| !data.has_remaining())
}

impl<F, B, RB: Body, T: Timer> fmt::Debug for Peek<F, B, RB, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peek").field("head", &self.head.is_some()).finish_non_exhaustive()
    }
}

pin_project! {
    /// The body of a response, its first frame perhaps looked at already.
    pub struct Peeked<RB>
    where
        RB: Body,
    {
        first: Option<First<RB>>,
        #[pin]
        body: Rest<RB>,
    }
}

pin_project! {
    #[project = RestProjection]
    enum Rest<RB> {
        Live { #[pin] body: RB },
        Boxed { body: Pin<Box<RB>> },
        Nothing,
    }
}

impl<RB: Body> Peeked<RB> {
    fn live(body: RB) -> Peeked<RB> {
        Peeked { first: None, body: Rest::Live { body } }
    }

    fn nothing() -> Peeked<RB> {
        Peeked { first: None, body: Rest::Nothing }
    }
}

impl<RB: Body> Body for Peeked<RB> {
    type Data = RB::Data;
    type Error = RB::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<First<RB>>> {
        let this = self.project();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(first));
        }
        match this.body.project() {
            RestProjection::Live { body } => body.poll_frame(cx),
            RestProjection::Boxed { body } => body.as_mut().poll_frame(cx),
            RestProjection::Nothing => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none()
            && match &self.body {
                Rest::Live { body } => body.is_end_stream(),
                Rest::Boxed { body } => body.is_end_stream(),
                Rest::Nothing => true,
            }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.first, &self.body) {
            (None, Rest::Live { body }) => body.size_hint(),
            (None, Rest::Nothing) => SizeHint::with_exact(0),
            _ => SizeHint::default(),
        }
    }
}

impl<RB: Body> fmt::Debug for Peeked<RB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peeked").field("first", &self.first.is_some()).finish_non_exhaustive()
    }
}
