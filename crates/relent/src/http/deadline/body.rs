//! A response's body that keeps to the caller's time.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::Inside;
use super::answer::Dialect;
use crate::deadline::{Deadline, DeadlineExceeded};
use crate::http::kept::into_bytes;
use crate::timer::{Timer, poll_until};

pin_project! {
    /// The body of a [`DeadlineService`](super::DeadlineService)'s response: the handler's, or a few words of the layer's.
    ///
    /// One that is not complete when the time is up breaks off: gRPC's with the status `DEADLINE_EXCEEDED` in its trailers,
    /// others with [`DeadlineExceeded`] for an error.
    pub struct DeadlineBody<B, T>
    where
        T: Timer,
    {
        inside: Inside<T>,
        dialect: Dialect,
        text: Option<Bytes>,
        // `None` once it is at its end.
        #[pin]
        body: Option<B>,
        #[pin]
        sleep: Option<T::Sleep>,
    }

    impl<B, T> PinnedDrop for DeadlineBody<B, T>
    where
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            this.inside.enter(|| this.body.set(None));
        }
    }
}

impl<B, T: Timer> DeadlineBody<B, T> {
    /// A handler's body.
    pub(super) fn bound(body: B, inside: Inside<T>, dialect: Dialect) -> DeadlineBody<B, T> {
        DeadlineBody { inside, dialect, text: None, body: Some(body), sleep: None }
    }

    /// The layer's own words.
    pub(super) fn text(text: Bytes) -> DeadlineBody<B, T> {
        let text = Some(text).filter(|text| !text.is_empty());
        DeadlineBody {
            inside: Inside::new(None, None),
            dialect: Dialect::Http,
            text,
            body: None,
            sleep: None,
        }
    }
}

impl<B, T> Body for DeadlineBody<B, T>
where
    B: Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    T: Timer,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut this = self.project();
        if let Some(text) = this.text.take() {
            return Poll::Ready(Some(Ok(Frame::data(text))));
        }
        let Some(body) = this.body.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        match this.inside.enter(|| body.poll_frame(cx)) {
            Poll::Ready(Some(Ok(frame))) => {
                // A producer that is always ahead of its reader would never meet the clock otherwise.
                let complete =
                    frame.is_trailers() || this.body.as_ref().get_ref().as_ref().is_none_or(B::is_end_stream);
                if complete || !this.inside.deadline.as_ref().is_some_and(Deadline::is_past) {
                    return Poll::Ready(Some(Ok(into_bytes(frame))));
                }
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => {
                this.inside.enter(|| this.body.set(None));
                return Poll::Ready(None);
            }
            Poll::Pending => {
                let Some(deadline) = &this.inside.deadline else { return Poll::Pending };
                ready!(poll_until(deadline.timer(), deadline.at(), this.sleep.as_mut(), cx));
            }
        }
        this.sleep.set(None);
        this.inside.enter(|| this.body.set(None));
        Poll::Ready(Some(match this.dialect.trailers() {
            Some(trailers) => Ok(Frame::trailers(trailers)),
            None => Err(Box::new(DeadlineExceeded::AMID)),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.text.is_none() && self.body.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.text, &self.body) {
            (Some(text), _) => SizeHint::with_exact(text.len() as u64),
            (None, Some(body)) => body.size_hint(),
            (None, None) => SizeHint::with_exact(0),
        }
    }
}

impl<B, T: Timer> fmt::Debug for DeadlineBody<B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineBody").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}
