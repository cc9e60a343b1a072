//! Virtual time.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use relent_core::Instant;

use super::{BlockingTimer, Clock, Timer};

/// Virtual time for tests: it stands still until it is moved, so that a minute of backoff takes no time at all.
///
/// Clones share one clock. A blocking wait moves the clock itself; asynchronous sleepers wake when it is moved past
/// them.
///
/// ```
/// use std::time::Duration;
/// use relent::{Policy, Retry, Verdict, timer::{Clock, Manual}};
///
/// let time = Manual::new();
/// let policy = Policy::constant(Duration::from_secs(60)).no_deadline().build()?;
/// let retry = Retry::with_timer(policy, time.clone()).classify(|_: &&str| Verdict::Transient);
///
/// let mut answers = [Err("busy"), Ok(7)].into_iter();
/// let value = retry.run_blocking(|_| answers.next().expect("two attempts at most"));
/// assert_eq!(value.ok(), Some(7));
/// assert_eq!(time.elapsed(), Duration::from_secs(60));
/// # Ok::<(), relent::PolicyError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Manual(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    now: u64,
    wall: Duration,
    next: u64,
    /// By time, then by age: they wake in the order in which they asked.
    sleepers: BTreeMap<(u64, u64), Waker>,
}

impl Manual {
    /// A clock that stands at its start; the wall clock at 1970.
    #[must_use]
    pub fn new() -> Manual {
        Manual::default()
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.state().now)
    }

    /// Moves the clock on, and wakes whoever is due.
    pub fn advance(&self, by: Duration) {
        let to = Instant::from_nanos(self.state().now) + by;
        self.advance_to(to);
    }

    /// Moves the clock to `at` (never back), and wakes whoever is due.
    pub fn advance_to(&self, at: Instant) {
        let due = {
            let mut state = self.state();
            state.now = state.now.max(at.as_nanos());
            let after_now = (state.now.saturating_add(1), 0);
            let later = state.sleepers.split_off(&after_now);
            std::mem::replace(&mut state.sleepers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// Moves the clock to the nearest sleeper's time and wakes it; `None` if nobody sleeps.
    pub fn advance_to_next(&self) -> Option<Instant> {
        let next = self.state().sleepers.keys().next().map(|(at, _)| Instant::from_nanos(*at))?;
        self.advance_to(next);
        Some(next)
    }

    /// Runs `future` to its end, moving the clock to the nearest sleeper whenever it waits: no runtime is needed.
    ///
    /// # Panics
    /// If it waits for something else than this clock: nothing would ever wake it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::{Policy, Retry, StopReason, Verdict, timer::Manual};
    ///
    /// let time = Manual::new();
    /// let policy = Policy::constant(Duration::from_secs(3600)).no_deadline().build()?;
    /// let retry = Retry::with_timer(policy, time.clone()).classify(|_: &&str| Verdict::Transient);
    ///
    /// let gave_up = time.run(retry.run(|_| async { Err::<(), _>("busy") })).unwrap_err();
    /// assert_eq!(gave_up.reason(), StopReason::AttemptsExhausted);
    /// assert_eq!(time.elapsed(), Duration::from_secs(2 * 3600));
    /// # Ok::<(), relent::PolicyError>(())
    /// ```
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&woken));
        let mut future = std::pin::pin!(future);
        loop {
            if woken.0.swap(false, Ordering::Relaxed) {
                match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(output) => return output,
                    Poll::Pending => continue,
                }
            }
            assert!(
                self.advance_to_next().is_some(),
                "the future waits, and nobody sleeps on this clock: at {:?} of virtual time it would wait for ever. \
                 What it waits for must come from this clock, or from a future that is polled with it",
                self.elapsed(),
            );
        }
    }

    /// How many sleepers wait.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.state().sleepers.len()
    }

    /// Sets the wall clock, which the monotonic one takes no notice of.
    pub fn set_wall(&self, wall: SystemTime) {
        let mut state = self.state();
        state.wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the future that [`Manual::run`] runs wants to be polled.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Clock for Manual {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.state().now)
    }

    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + self.state().wall
    }
}

impl BlockingTimer for Manual {
    fn block_until(&self, at: Instant) {
        self.advance_to(at);
    }
}

impl Timer for Manual {
    type Sleep = ManualSleep;

    fn sleep_until(&self, at: Instant) -> ManualSleep {
        let mut state = self.state();
        state.next += 1;
        ManualSleep { time: self.clone(), key: (at.as_nanos(), state.next) }
    }
}

/// A sleeper of a [`Manual`] timer.
#[derive(Debug)]
pub struct ManualSleep {
    time: Manual,
    key: (u64, u64),
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.time.state();
        if state.now >= self.key.0 {
            state.sleepers.remove(&self.key);
            return Poll::Ready(());
        }
        state.sleepers.insert(self.key, cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        self.time.state().sleepers.remove(&self.key);
    }
}
