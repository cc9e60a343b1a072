//! The demo's clock: it is a live program and sleeps in real time, through relent's own timer.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use relent::Instant;
use relent::timer::{Clock as _, SystemTimer, Timer as _};

/// Time since the start of the run. Copies share the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub(crate) fn start() -> Clock {
        Clock { start: SystemTimer.now() }
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Duration {
        SystemTimer.now().since(self.start)
    }

    /// Sleeps until `at`; not at all when that has passed.
    pub(crate) async fn sleep_until(&self, at: Duration) {
        if at > self.now() {
            SystemTimer.sleep_until(self.start + at).await;
        }
    }

    /// Sleeps for a length.
    pub(crate) async fn sleep(&self, length: Duration) {
        self.sleep_until(self.now() + length).await;
    }

    /// What `work` came to, or `None` (and the work dropped) when it took longer than `limit`.
    pub(crate) async fn within<F: Future>(&self, limit: Duration, work: F) -> Option<F::Output> {
        let mut work = pin!(work);
        let mut alarm = pin!(self.sleep(limit));
        // The work first: an answer that is there in time counts, however late the thread looks.
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => alarm.as_mut().poll(cx).map(|()| None),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::{Context, Waker};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn polled_once<T>(work: impl Future<Output = T>) -> Poll<T> {
        pin!(work).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn work_beats_its_limit_and_time_that_has_passed_is_not_slept() {
        let clock = Clock::start();
        assert_eq!(polled_once(clock.within(HOUR, ready(7))), Poll::Ready(Some(7)));
        assert_eq!(polled_once(clock.within(Duration::ZERO, ready(7))), Poll::Ready(Some(7)));
        assert_eq!(polled_once(clock.within(Duration::ZERO, pending::<()>())), Poll::Ready(None));
        assert_eq!(polled_once(clock.sleep_until(Duration::ZERO)), Poll::Ready(()));
    }
}
