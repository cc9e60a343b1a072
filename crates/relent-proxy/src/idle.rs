//! Bounds the time in which a body does not move.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use relent::timer::{Clock, SystemTimer, Timer};

/// Watches one direction of a body. No clock is read for what moves: a stall is found after one to two timeouts.
#[derive(Debug)]
pub(crate) struct IdleGuard {
    timeout: Duration,
    /// Boxed: most bodies are never waited for.
    sleep: Option<Pin<Box<<SystemTimer as Timer>::Sleep>>>,
    moved: bool,
}

impl IdleGuard {
    pub(crate) fn new(timeout: Duration) -> IdleGuard {
        IdleGuard { timeout, sleep: None, moved: false }
    }

    /// Something came through.
    pub(crate) fn moved(&mut self) {
        self.moved = true;
    }

    /// Nothing is there: ready if that has been so for too long.
    pub(crate) fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let sleep = match &mut self.sleep {
                Some(sleep) => sleep,
                None => {
                    self.moved = false;
                    let until = SystemTimer.now() + self.timeout;
                    self.sleep.insert(Box::pin(SystemTimer.sleep_until(until)))
                }
            };
            ready!(sleep.as_mut().poll(cx));
            self.sleep = None;
            if !self.moved {
                return Poll::Ready(());
            }
        }
    }
}
