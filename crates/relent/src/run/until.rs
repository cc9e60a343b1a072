//! A call that a signal can end.

use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::{Operation, Run};
use crate::call::Handle;
use crate::classify::Classify;
use crate::error::RetryError;
use crate::timer::Timer;

pin_project! {
    /// A call that a signal can end: see [`Run::until`].
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct Until<R, S> {
        #[pin]
        run: R,
        #[pin]
        signal: S,
    }
}

impl<R, S> Until<R, S> {
    pub(super) fn new(run: R, signal: S) -> Until<R, S> {
        Until { run, signal }
    }
}

impl<H, F, Fut, V, E, S> Future for Until<Run<H, F, Fut, E>, S>
where
    H: Handle,
    H::Timer: Timer,
    H::Classifier: Classify<E>,
    F: Operation<E, Future = Fut>,
    Fut: Future<Output = Result<V, E>>,
    S: Future,
{
    type Output = Result<V, RetryError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        // An answer beats the signal; the signal beats an attempt that has not started yet.
        let starts_something = !this.run.is_attempting();
        if starts_something && this.signal.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(this.run.cancel()));
        }
        if let Poll::Ready(outcome) = this.run.as_mut().poll(cx) {
            return Poll::Ready(outcome);
        }
        this.signal.poll(cx).map(|_| Err(this.run.cancel()))
    }
}
