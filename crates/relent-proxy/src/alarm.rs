//! Bounds the time of attempts, without a new timer for each.
//!
//! A timer that an attempt did not need stays set for the next one: it rings too early for that, and is set anew then. With
//! attempts that are shorter than their bound by far, a worker's timers are hardly ever touched.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use relent::timer::{Clock, SystemTimer, Timer};
use relent_core::Instant;

/// The timers of one worker that nobody needs at the moment.
#[derive(Debug, Default)]
pub(crate) struct Alarms(Mutex<Vec<Alarm>>);

#[derive(Debug)]
struct Alarm {
    sleep: Pin<Box<<SystemTimer as Timer>::Sleep>>,
    /// When it rings.
    at: Instant,
}

/// One of them in use; dropped, it is kept for the next.
struct Borrowed<'a> {
    all: &'a Alarms,
    alarm: Option<Alarm>,
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm.take() {
            self.all.idle().push(alarm);
        }
    }
}

impl Alarms {
    fn idle(&self) -> MutexGuard<'_, Vec<Alarm>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The output of `future`, unless `ends` comes first. At equal times the output wins.
    pub(crate) async fn in_time<F: Future>(
        &self,
        ends: Instant,
        mut future: Pin<&mut F>,
    ) -> Option<F::Output> {
        let mut borrowed = Borrowed { all: self, alarm: None };
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            if ends.is_never() {
                return Poll::Pending;
            }
            let alarm = borrowed.alarm.get_or_insert_with(|| self.take(ends));
            loop {
                if alarm.sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                // It rang for an earlier attempt, or a little early.
                if SystemTimer.now() >= ends {
                    alarm.at = Instant::ZERO;
                    return Poll::Ready(None);
                }
                alarm.set(ends);
            }
        })
        .await
    }

    /// A timer that rings at `ends`, or before it.
    fn take(&self, ends: Instant) -> Alarm {
        match self.idle().pop() {
            Some(alarm) if alarm.at <= ends => alarm,
            Some(mut alarm) => {
                alarm.set(ends);
                alarm
            }
            None => Alarm { sleep: Box::pin(SystemTimer.sleep_until(ends)), at: ends },
        }
    }
}

impl Alarm {
    fn set(&mut self, at: Instant) {
        self.sleep.set(SystemTimer.sleep_until(at));
        self.at = at;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::Duration;

    use super::*;

    async fn ends(alarms: &Alarms, after: u64, future: impl Future<Output = ()>) -> (bool, Duration) {
        let began = SystemTimer.now();
        let ended = alarms.in_time(began + Duration::from_millis(after), pin!(future)).await;
        (ended.is_some(), SystemTimer.now().since(began))
    }

    fn lasting(length: u64) -> impl Future<Output = ()> {
        SystemTimer.sleep_until(SystemTimer.now() + Duration::from_millis(length))
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_is_used_again_rings_at_the_new_time() {
        let alarms = Alarms::default();
        assert_eq!(ends(&alarms, 100, lasting(10)).await, (true, Duration::from_millis(10)));
        assert_eq!(ends(&alarms, 500, lasting(400)).await, (true, Duration::from_millis(400)));
        assert_eq!(ends(&alarms, 500, lasting(9_000)).await, (false, Duration::from_millis(500)));
        assert_eq!(ends(&alarms, 20, lasting(9_000)).await, (false, Duration::from_millis(20)));
        assert_eq!(ends(&alarms, 9_000, lasting(30)).await, (true, Duration::from_millis(30)));
        assert_eq!(ends(&alarms, 40, lasting(9_000)).await, (false, Duration::from_millis(40)));
        assert_eq!(alarms.idle().len(), 1, "it is always the same one");
    }

    #[tokio::test(start_paused = true)]
    async fn at_equal_times_the_output_wins() {
        let alarms = Alarms::default();
        assert!(ends(&alarms, 50, lasting(50)).await.0);
    }
}
