//! Real time.

use std::sync::OnceLock;
#[cfg(feature = "tokio")]
use std::time::Duration;
use std::time::SystemTime;

use relent_core::Instant;

use super::{BlockingTimer, Clock};

/// Real time: the operating system's monotonic clock; sleeps on tokio (feature `tokio`) or by blocking the thread.
///
/// Under tokio's paused time (its `test-util`) it follows that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemTimer;

/// All instants of the process count from one point, so that deadlines may be compared wherever they were made.
///
/// It may lie in the future of some: the process's first reading may be that of a test whose paused clock is far ahead.
fn epoch() -> std::time::Instant {
    static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
    *EPOCH.get_or_init(std_now)
}

/// What that point is counted as, in nanoseconds: 36 years are left for clocks that are behind it.
const EPOCH: u64 = 1 << 60;

#[allow(clippy::disallowed_methods, reason = "the one place where the library reads the clock")]
fn std_now() -> std::time::Instant {
    #[cfg(feature = "tokio")]
    return tokio::time::Instant::now().into_std();
    #[cfg(not(feature = "tokio"))]
    return std::time::Instant::now();
}

impl Clock for SystemTimer {
    #[inline]
    fn now(&self) -> Instant {
        let epoch = epoch();
        let now = std_now();
        match now.checked_duration_since(epoch) {
            Some(since) => Instant::from_nanos(EPOCH) + since,
            None => {
                let before = u64::try_from(epoch.duration_since(now).as_nanos()).unwrap_or(u64::MAX);
                Instant::from_nanos(EPOCH.saturating_sub(before))
            }
        }
    }

    #[allow(clippy::disallowed_methods, reason = "the one place where the library reads the wall clock")]
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn is_system(&self) -> bool {
        true
    }
}

impl BlockingTimer for SystemTimer {
    #[allow(clippy::disallowed_methods, reason = "the one place where the library blocks a thread")]
    fn block_until(&self, at: Instant) {
        std::thread::sleep(at.since(self.now()));
    }
}

/// How long before the first reading `at` is; `None`: it is not.
#[cfg(feature = "tokio")]
fn before_the_epoch(at: Instant) -> Option<Duration> {
    EPOCH.checked_sub(at.as_nanos()).filter(|before| *before > 0).map(Duration::from_nanos)
}

#[cfg(feature = "tokio")]
impl super::Timer for SystemTimer {
    type Sleep = tokio::time::Sleep;

    #[allow(clippy::disallowed_methods, reason = "the one place where the library sleeps")]
    fn sleep_until(&self, at: Instant) -> tokio::time::Sleep {
        match before_the_epoch(at) {
            // No clock is read: the point in time is the same on both clocks.
            None => {
                let since = Duration::from_nanos(at.as_nanos() - EPOCH);
                match epoch().checked_add(since) {
                    Some(at) => tokio::time::sleep_until(at.into()),
                    None => tokio::time::sleep(Duration::MAX),
                }
            }
            Some(_) => tokio::time::sleep(at.since(self.now())),
        }
    }
}
