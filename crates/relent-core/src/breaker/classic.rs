//! The classic breaker: closed, open, half-open.

#[cfg(all(test, relent_loom))]
mod loom_tests;
mod state;

pub use state::{BreakerChange, BreakerState, ClassicState, TripReason};

use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use super::{Admission, Breaker};
use crate::sync::{AtomicU32, AtomicU64, Lock, Ordering, Tally};
use crate::{ClassicConfig, Health, Instant};
use state::Ended;

/// Who hears of every change.
type Listener = Box<dyn Fn(&BreakerChange) + Send + Sync>;

/// A breaker that stops all attempts while the target fails, and lets a few probes find out when it is well again.
///
/// - *closed*: everything goes. It opens when the failure rate or the rate of slow calls over the window, or the failures
///   in a row, reach what the configuration names.
/// - *open*: nothing goes, for `open_for`.
/// - *half-open*: exactly `probes` attempts go. All of them good: it closes. One bad: it opens again.
///
/// Every state has a generation, and a result that was admitted by an older one changes nothing. A probe that is given
/// up, or dropped, gives its leave back; probes that never report are given up for lost after
/// [`PROBE_LEASE`](crate::defaults::PROBE_LEASE).
///
/// While it is closed, an attempt costs one load, and its success one relaxed add on a cache line of the thread's own. Only
/// failures and slow calls take the lock, and bring the good ones since the last of them along. So the rates are judged when
/// an attempt fails or is slow, never when one does well; over a window of time the good ones count as evenly spread over
/// the time since the failure before, and a success that ends in the very moment of a change may count for the state after.
pub struct Classic<L> {
    config: ClassicConfig,
    /// The generation, doubled, and in the lowest bit whether it is anything but closed.
    word: AtomicU32,
    /// While it is open: until when.
    until: AtomicU64,
    good: Tally<1>,
    /// Bad attempts since the last good one.
    in_a_row: AtomicU32,
    state: L,
    listener: Option<Listener>,
}

impl<L: Lock<ClassicState>> Classic<L> {
    /// A closed breaker. `seed` is what the jitter of its open times is drawn from.
    #[must_use]
    pub fn new(config: ClassicConfig, seed: u64, now: Instant) -> Classic<L> {
        Classic {
            word: AtomicU32::new(0),
            until: AtomicU64::new(0),
            good: Tally::new(),
            in_a_row: AtomicU32::new(0),
            state: L::new(ClassicState::new(&config, seed, now)),
            config,
            listener: None,
        }
    }

    /// Tells `listener` of every change of state, after it was made and outside of the lock. It must not block.
    #[must_use]
    pub fn on_change(mut self, listener: impl Fn(&BreakerChange) + Send + Sync + 'static) -> Classic<L> {
        self.listener = Some(Box::new(listener));
        self
    }

    /// What it goes by.
    pub fn config(&self) -> &ClassicConfig {
        &self.config
    }

    /// The state. An open breaker whose time is up says so still: the next attempt makes it half-open.
    pub fn state(&self) -> BreakerState {
        if self.word.load(Ordering::Relaxed) & 1 == 0 {
            return BreakerState::Closed;
        }
        self.state.with(|state| state.state())
    }

    /// Refuses everything until [`close`](Classic::close).
    pub fn open(&self, now: Instant) {
        self.change(|state| state.force_open(now));
    }

    /// Closes it, whatever it was, and forgets all counts.
    pub fn close(&self, now: Instant) {
        self.change(|state| state.close(TripReason::ByHand, now));
    }

    /// Attempts, failures and slow calls in the window.
    pub fn counts(&self, now: Instant) -> (u64, u64, u64) {
        let sums = self.state.with(|state| {
            self.gather(state);
            state.settle(now)
        });
        (sums.all, sums.bad, sums.slow)
    }

    /// Does something under the lock, publishes what came of it, and then tells.
    #[cold]
    fn change<R>(&self, work: impl FnOnce(&mut ClassicState) -> R) -> R {
        let (answer, change) = self.state.with(|state| {
            self.gather(state);
            let answer = work(state);
            let change = state.take_change();
            if change.is_some() {
                self.in_a_row.store(0, Ordering::Relaxed);
                self.until.store(state.until().as_nanos(), Ordering::Relaxed);
                self.word.store(state.word(), Ordering::Relaxed);
            }
            (answer, change)
        });
        if let (Some(change), Some(listener)) = (change, &self.listener) {
            listener(&change);
        }
        answer
    }

    #[cold]
    fn admit_when_not_closed(&self, now: Instant) -> Option<Admission> {
        if now.as_nanos() < self.until.load(Ordering::Relaxed) {
            return None;
        }
        self.change(|state| state.admit(&self.config, now))
    }

    /// Takes the good attempts along since the last time.
    fn gather(&self, state: &mut ClassicState) {
        let [good] = self.good.collect();
        state.gather(good);
    }

    /// A failure, a slow call, a probe, or something that happened in a state that is no more.
    #[cold]
    fn record_with_care(&self, admission: Admission, health: Health, slow: bool, now: Instant) {
        let is_stale = self.word.load(Ordering::Relaxed) >> 1 != admission.generation();
        if is_stale || (health == Health::Unknown && !admission.is_probe()) {
            return;
        }
        self.change(|state| {
            if !state.is_current(admission) {
                return;
            }
            let in_a_row = match health {
                Health::Bad => self.in_a_row.fetch_add(1, Ordering::Relaxed).saturating_add(1),
                Health::Good => {
                    self.in_a_row.store(0, Ordering::Relaxed);
                    0
                }
                Health::Unknown => 0,
            };
            state.record(&self.config, Ended { admission, health, slow, in_a_row }, now);
        });
    }
}

impl<L: Lock<ClassicState> + fmt::Debug> Breaker for Classic<L> {
    #[inline]
    fn admit_first(&self, now: Instant) -> Option<Admission> {
        let word = self.word.load(Ordering::Relaxed);
        if word & 1 == 0 { Some(Admission::of(word >> 1, false)) } else { self.admit_when_not_closed(now) }
    }

    #[inline]
    fn admit_untimed(&self) -> Option<Admission> {
        let word = self.word.load(Ordering::Relaxed);
        (word & 1 == 0 && self.config.slow_call.is_none()).then_some(Admission::of(word >> 1, false))
    }

    fn admits_retry(&self, _now: Instant, at: Instant) -> bool {
        self.word.load(Ordering::Relaxed) & 1 == 0
            || self.state.with(|state| state.would_admit(&self.config, at))
    }

    fn admit_retry(&self, now: Instant) -> Option<Admission> {
        self.admit_first(now)
    }

    #[inline]
    fn record(&self, admission: Admission, health: Health, took: Duration, now: Instant) {
        let slow = self.is_slow(took);
        let closed = Admission::of(self.word.load(Ordering::Relaxed) >> 1, false);
        if health == Health::Good && !slow && admission == closed {
            self.good.add_one(0);
            if self.in_a_row.load(Ordering::Relaxed) != 0 {
                self.in_a_row.store(0, Ordering::Relaxed);
            }
            return;
        }
        self.record_with_care(admission, health, slow, now);
    }

    fn hears_times(&self) -> bool {
        self.config.slow_call.is_some()
    }

    #[inline]
    fn is_slow(&self, took: Duration) -> bool {
        self.config.slow_call.is_some_and(|limit| took >= limit)
    }

    fn state(&self) -> Option<BreakerState> {
        Some(Classic::state(self))
    }

    fn opens_again(&self, now: Instant) -> Option<Instant> {
        if self.word.load(Ordering::Relaxed) & 1 == 0 {
            return None;
        }
        let until = Instant::from_nanos(self.until.load(Ordering::Relaxed));
        (until > now && !until.is_never()).then_some(until)
    }
}

impl<L: fmt::Debug> fmt::Debug for Classic<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Classic").field("state", &self.state).finish_non_exhaustive()
    }
}
