//! A future in slow motion, for tests that stop it half-way. Those that run one to its end take [`Manual::run`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use relent::timer::Manual;

/// A future that is polled by hand.
pub(crate) struct Stepper<'a, F> {
    time: &'a Manual,
    future: Pin<Box<F>>,
    woken: Arc<Flag>,
}

impl<'a, F: Future> Stepper<'a, F> {
    pub(crate) fn new(time: &'a Manual, future: F) -> Stepper<'a, F> {
        Stepper { time, future: Box::pin(future), woken: Arc::default() }
    }

    /// One poll.
    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Moves the clock until the future asks to be polled again.
    pub(crate) fn until_woken(&self) {
        while !self.woken.0.swap(false, Ordering::Relaxed) {
            assert!(
                self.time.advance_to_next().is_some(),
                "nobody sleeps, and nobody was woken: this would hang"
            );
        }
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
