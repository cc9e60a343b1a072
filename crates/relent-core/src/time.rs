//! Points in time as the engine sees them: nanoseconds since an epoch that the driver picks.
//!
//! The engine never reads a clock; a driver hands `now` in with every event. All arithmetic saturates.

use core::fmt;
use core::time::Duration;

/// A point in monotonic time, in nanoseconds since an epoch of the driver's choice.
///
/// Only instants of one clock may be compared. [`Instant::NEVER`] stands for "no bound".
///
/// ```
/// use core::time::Duration;
/// use relent_core::Instant;
///
/// let start = Instant::from_nanos(5);
/// assert_eq!(start + Duration::from_nanos(7), Instant::from_nanos(12));
/// assert_eq!(start + Duration::MAX, Instant::NEVER);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The clock's epoch.
    pub const ZERO: Instant = Instant(0);
    /// Later than every other instant: "no deadline".
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The point `nanos` nanoseconds after the clock's epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since the clock's epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whether this is [`Instant::NEVER`].
    #[must_use]
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The time left until `self`, or `None` if this is [`Instant::NEVER`].
    #[must_use]
    #[inline]
    pub const fn left(self, now: Instant) -> Option<Duration> {
        if self.is_never() { None } else { Some(self.since(now)) }
    }
}

impl core::ops::Add<Duration> for Instant {
    type Output = Instant;

    /// Saturates at [`Instant::NEVER`].
    #[inline]
    fn add(self, length: Duration) -> Instant {
        Instant(self.0.saturating_add(nanos(length)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() { f.write_str("never") } else { write!(f, "{}ns", self.0) }
    }
}

/// A length as whole nanoseconds, saturating: 584 years are enough for anybody's retry.
#[inline]
pub(crate) const fn nanos(length: Duration) -> u64 {
    length.as_secs().saturating_mul(1_000_000_000).saturating_add(length.subsec_nanos() as u64)
}
