//! The retries-only breaker: for when the target is so sick that even a budget's share of retries only hurts.

use core::fmt;
use core::time::Duration;

use super::{Admission, Breaker};
use crate::ratio::MILLION;
use crate::sync::{Lock, Tally};
use crate::window::Window;
use crate::{Health, Instant, RetriesOnlyConfig};

/// The retries-only breaker: first tries always go, so it needs no probes and can't lock anyone out; retries go only
/// while the failure rate of attempts over the window is under the limit.
#[derive(Debug)]
pub struct RetriesOnly<L> {
    config: RetriesOnlyConfig,
    good: Tally<1>,
    state: L,
}

/// What a [`RetriesOnly`] breaker keeps under its lock.
pub struct RetriesOnlyState(Window<2>);

const GOOD: usize = 0;
const BAD: usize = 1;

impl<L: Lock<RetriesOnlyState>> RetriesOnly<L> {
    /// A closed breaker.
    #[must_use]
    pub fn new(config: RetriesOnlyConfig, now: Instant) -> RetriesOnly<L> {
        let state = L::new(RetriesOnlyState(Window::new(config.window, now)));
        RetriesOnly { config, good: Tally::new(), state }
    }

    /// Whether retries are refused now.
    pub fn is_open(&self, now: Instant) -> bool {
        !self.under_limit(now, now)
    }

    fn under_limit(&self, now: Instant, at: Instant) -> bool {
        self.state.with(|RetriesOnlyState(window)| {
            turn(window, &self.good, now);
            let (good, bad) = (window.remaining(GOOD, at), window.remaining(BAD, at));
            let all = good + bad;
            let limit = u128::from(all) * u128::from(self.config.failure_rate.parts_per_million());
            all < u64::from(self.config.minimum_calls) || u128::from(bad) * u128::from(MILLION) < limit
        })
    }
}

impl<L: Lock<RetriesOnlyState> + fmt::Debug> Breaker for RetriesOnly<L> {
    fn admit_first(&self, _now: Instant) -> Option<Admission> {
        Some(Admission::ANY)
    }

    fn admit_untimed(&self) -> Option<Admission> {
        Some(Admission::ANY)
    }

    fn admits_retry(&self, now: Instant, at: Instant) -> bool {
        self.under_limit(now, at)
    }

    fn admit_retry(&self, now: Instant) -> Option<Admission> {
        self.under_limit(now, now).then_some(Admission::ANY)
    }

    fn record(&self, _admission: Admission, health: Health, _took: Duration, now: Instant) {
        match health {
            Health::Good => self.good.add_one(GOOD),
            Health::Bad => self.state.with(|RetriesOnlyState(window)| {
                turn(window, &self.good, now);
                window.add(BAD);
            }),
            Health::Unknown => {}
        }
    }
}

/// Moves on to `now`; nobody knows when the good attempts were, so they are taken to have come evenly.
fn turn(window: &mut Window<2>, good: &Tally<1>, now: Instant) {
    let since = window.turn(now);
    let [good] = good.collect();
    window.spread(GOOD, good, since);
}

impl fmt::Debug for RetriesOnlyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (good, bad) = (self.0.at_least(GOOD), self.0.at_least(BAD));
        f.debug_struct("RetriesOnlyState").field("good", &good).field("bad", &bad).finish()
    }
}

#[cfg(all(test, relent_loom))]
mod loom_tests {
    use alloc::sync::Arc;
    use core::time::Duration;

    use loom::thread;

    use super::*;
    use crate::Ratio;
    use crate::sync::loom_lock::LoomLock;

    #[test]
    fn loom_no_attempt_is_lost_between_the_tally_and_the_window() {
        loom::model(|| {
            let config = RetriesOnlyConfig {
                failure_rate: Ratio::percent(50),
                window: Duration::from_secs(10),
                minimum_calls: 2,
            };
            let breaker = Arc::new(RetriesOnly::<LoomLock<_>>::new(config, Instant::ZERO));
            let now = Instant::from_nanos(1_000_000_000);
            let other = Arc::clone(&breaker);
            let there =
                thread::spawn(move || other.record(Admission::ANY, Health::Good, Duration::ZERO, now));
            breaker.record(Admission::ANY, Health::Bad, Duration::ZERO, now);
            assert!(breaker.admit_first(now).is_some());
            there.join().expect("it does not panic");
            assert!(breaker.is_open(now), "one of two is half");
        });
    }
}
