//! When the target is so sick that more requests only hurt.

mod classic;
mod counts;
mod retries_only;

pub use classic::{BreakerChange, BreakerState, Classic, ClassicState, TripReason};
pub use retries_only::{RetriesOnly, RetriesOnlyState};

use core::fmt;
use core::time::Duration;

use crate::{Health, Instant};

/// Leave to make one attempt, in the breaker's own words: from which of its states it is, and whether it is a probe.
///
/// To be told to [`Breaker::record`] exactly once, with [`Health::Unknown`] if the attempt came to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission(u32);

impl Admission {
    /// From a breaker that does not care; and for the one attempt that goes without leave: a free repeat, which its target
    /// never saw the first time.
    pub const ANY: Admission = Admission(0);

    const PROBE: u32 = 1 << 31;

    /// For authors of breakers: leave from the state of that number (31 bits of it), of which none is 0 where that should not
    /// be taken for [`ANY`](Admission::ANY); and whether it is for a probe.
    #[must_use]
    pub const fn of(generation: u32, probe: bool) -> Admission {
        Admission(generation & !Admission::PROBE | if probe { Admission::PROBE } else { 0 })
    }

    /// Whether the attempt is to find out if the target is well again.
    #[must_use]
    pub const fn is_probe(self) -> bool {
        self.0 & Admission::PROBE != 0
    }

    /// The number of the state that it is from.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.0 & !Admission::PROBE
    }
}

/// Says whether an attempt may start, and hears what became of each.
pub trait Breaker: fmt::Debug + Send + Sync {
    /// May a call's first attempt start now?
    fn admit_first(&self, now: Instant) -> Option<Admission>;

    /// Leave for a call's first attempt from a breaker that need not know the time for it, and does not ask how long a
    /// success took: it is closed, say. `None`: to be asked with the time ([`admit_first`](Breaker::admit_first)). A driver
    /// that has no clock reading yet asks here first, and may tell an attempt that was so admitted and ended well with
    /// [`Instant::ZERO`] for the time.
    fn admit_untimed(&self) -> Option<Admission> {
        None
    }

    /// Would a retry be admitted at `at`, as far as is known at `now`? Takes nothing.
    fn admits_retry(&self, now: Instant, at: Instant) -> bool;

    /// May a retry start now?
    fn admit_retry(&self, now: Instant) -> Option<Admission>;

    /// An admitted attempt ended, and took so long. [`Health::Unknown`]: nothing is known of it, and its leave goes back.
    /// `now` is the end's time where [`hears_times`](Breaker::hears_times) asks for it, else the last time that is known.
    fn record(&self, admission: Admission, health: Health, took: Duration, now: Instant);

    /// Whether it matters how long a success took: the driver then reads its clock at the end.
    fn hears_times(&self) -> bool {
        false
    }

    /// Whether an attempt that took so long was slow, whatever it came to: one that its caller cut off after that is told as
    /// [`Health::Good`], with its time.
    fn is_slow(&self, took: Duration) -> bool {
        let _ = took;
        false
    }

    /// When the next attempt will be admitted; `None` if one is now, or only somebody's word can say.
    fn opens_again(&self, now: Instant) -> Option<Instant> {
        let _ = now;
        None
    }

    /// The state that it is in; `None` where it has none to tell.
    fn state(&self) -> Option<BreakerState> {
        None
    }
}
