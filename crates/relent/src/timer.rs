//! Where time comes from: the only place of the library that reads a clock or sleeps.
//!
//! Three timers come along: [`SystemTimer`] (real time; on tokio where the feature is on, so that tokio's paused time
//! holds too), [`Manual`] (virtual time for tests), and yours: implement [`Clock`] and [`Timer`] for another runtime.

mod manual;
mod system;

pub use manual::{Manual, ManualSleep};
pub use system::SystemTimer;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use relent_core::Instant;

/// Reads a monotonic clock.
pub trait Clock: Clone + Send + Sync + 'static {
    /// The time now. Never goes back; not affected by changes of the wall clock. All clocks of your own whose handles are
    /// used inside one another must count from one epoch; [`SystemTimer`]'s deadlines and theirs are kept apart.
    fn now(&self) -> Instant;

    /// The wall clock, for HTTP dates only.
    fn wall(&self) -> SystemTime;

    /// Whether [`now`](Clock::now) counts from the same epoch as [`SystemTimer`]'s. A call on such a clock reads it only
    /// when its first attempt does not end at once.
    fn is_system(&self) -> bool {
        false
    }
}

/// Waits without blocking a thread.
///
/// ```
/// use std::{future::Future, pin::Pin, time::SystemTime};
/// use relent::{Instant, timer::{Clock, Timer}};
///
/// /// Any runtime that has a sleep will do; this one borrows tokio's.
/// #[derive(Clone)]
/// struct Mine(std::time::Instant);
///
/// impl Clock for Mine {
///     fn now(&self) -> Instant {
///         Instant::ZERO + self.0.elapsed()
///     }
///     fn wall(&self) -> SystemTime {
///         SystemTime::now()
///     }
/// }
/// impl Timer for Mine {
///     type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;
///     fn sleep_until(&self, at: Instant) -> Self::Sleep {
///         Box::pin(tokio::time::sleep(at.since(self.now())))
///     }
/// }
///
/// let retry = relent::Retry::with_timer(relent::Policy::default(), Mine(std::time::Instant::now()));
/// # let _ = retry;
/// ```
pub trait Timer: Clock {
    /// Ends when its time has come.
    type Sleep: Future<Output = ()>;

    /// A future that ends at `at`, or soon after.
    fn sleep_until(&self, at: Instant) -> Self::Sleep;
}

/// Waits by blocking the thread.
pub trait BlockingTimer: Clock {
    /// Returns at `at`, or soon after.
    fn block_until(&self, at: Instant);
}

/// Ready once it is `at`, with the sleep that waits for it in `sleep`.
pub(crate) fn poll_until<T: Timer>(
    timer: &T,
    at: Instant,
    mut sleep: Pin<&mut Option<T::Sleep>>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    loop {
        if sleep.is_none() {
            sleep.set(Some(timer.sleep_until(at)));
        }
        ready!(sleep.as_mut().as_pin_mut().expect("just set").poll(cx));
        sleep.set(None);
        // A timer may round down.
        if timer.now() >= at {
            return Poll::Ready(());
        }
    }
}
