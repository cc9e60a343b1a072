//! Client-side throttling by what the target accepts (Google SRE, "Handling Overload"; gax for Rust), of retries alone.

use alloc::sync::Arc;
use core::fmt;

use super::meter::Meter;
use super::{Budget, BudgetCounts, Grant, Permit, TokenClass};
use crate::ratio::MILLION;
use crate::sync::{AtomicU64, Lock, Ordering, Tally};
use crate::time::nanos;
use crate::window::Window;
use crate::{AdaptiveConfig, Health, Instant, Verdict};

/// What the window counts.
const ACCEPTED: usize = 0;
const REQUESTS: usize = 1;

/// Refuses the share max(0, (requests − factor × accepted) / (requests + 1)) of the retries that are asked for.
///
/// A request is an attempt that was sent, or a retry that was refused here; the target accepted it where it succeeded, or
/// failed for good: an overloaded one answers neither way. The share is kept exactly: refusals are spread over the retries
/// that ask, and nothing is drawn by lot.
///
/// A success costs one relaxed add on a line of the thread's own.
#[derive(Debug)]
pub struct AdaptiveBudget<L> {
    turn_every: u64,
    successes: Tally<1>,
    turned: AtomicU64,
    state: L,
    meter: Meter,
}

/// What an [`AdaptiveBudget`] keeps under its lock.
pub struct AdaptiveState {
    window: Window<2>,
    /// In millionths.
    factor: u64,
    /// What has been owed in refusals and not been refused yet, in millionths: always below one.
    owed: u64,
}

impl<L: Lock<AdaptiveState>> AdaptiveBudget<L> {
    /// A budget that has seen nothing, and refuses nothing.
    #[must_use]
    pub fn new(config: &AdaptiveConfig, now: Instant) -> AdaptiveBudget<L> {
        AdaptiveBudget {
            turn_every: nanos(config.window) / 100,
            successes: Tally::new(),
            turned: AtomicU64::new(now.as_nanos()),
            state: L::new(AdaptiveState {
                window: Window::new(config.window, now),
                factor: u64::from(config.factor.parts_per_million()),
                owed: 0,
            }),
            meter: Meter::new(),
        }
    }

    fn turned_state<R>(&self, now: Instant, work: impl FnOnce(&mut AdaptiveState) -> R) -> R {
        self.state.with(|state| {
            self.turn(state, now);
            work(state)
        })
    }

    fn turn(&self, state: &mut AdaptiveState, now: Instant) {
        let [successes] = self.successes.collect();
        let since = state.window.turn(now);
        state.window.spread(ACCEPTED, successes, since);
        state.window.spread(REQUESTS, successes, since);
        self.turned.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl<L: Lock<AdaptiveState> + fmt::Debug + 'static> Budget for AdaptiveBudget<L> {
    fn on_start(&self) {}

    fn hears_starts(&self) -> bool {
        false
    }

    fn on_success(&self, _attempts: u32, now: Option<Instant>) {
        self.successes.add_one(0);
        let Some(now) = now else { return };
        if now.as_nanos().saturating_sub(self.turned.load(Ordering::Relaxed)) >= self.turn_every {
            // Unless somebody else is at it.
            let _ = self.state.try_with(|state| self.turn(state, now));
        }
    }

    /// Its attempt was counted when it failed.
    fn on_good_failure(&self, _attempts: u32, _now: Instant) {}

    fn on_failure(&self, verdict: Verdict, _health: Health, now: Instant) {
        if verdict == Verdict::Rejected {
            return;
        }
        self.turned_state(now, |state| {
            state.window.add(REQUESTS);
            if verdict == Verdict::Permanent {
                state.window.add(ACCEPTED);
            }
        });
    }

    fn withdraw(self: Arc<Self>, _class: TokenClass, now: Instant) -> Option<Permit> {
        let granted = self.turned_state(now, AdaptiveState::ask);
        let grant = self.meter.answered(granted.then_some(Grant { source: 0, mark: 0 }))?;
        Some(Permit::new(self, grant))
    }

    /// Nothing was taken.
    fn give_back(&self, _grant: Grant) {
        self.meter.returned();
    }

    /// How many retries would be granted before one is refused; as many as can be counted where none is.
    fn balance(&self, now: Instant) -> u64 {
        self.turned_state(now, |state| match state.refused_share() {
            0 => u64::MAX,
            share => (MILLION - 1 - state.owed) / share,
        })
    }

    fn counts(&self) -> Option<BudgetCounts> {
        Some(self.meter.counts())
    }
}

impl AdaptiveState {
    /// The share of retries that is refused now, in millionths: always below one.
    fn refused_share(&self) -> u64 {
        let million = u128::from(MILLION);
        let requests = u128::from(self.window.at_most(REQUESTS));
        let accepted = u128::from(self.window.at_most(ACCEPTED)) * u128::from(self.factor);
        let over = (requests * million).saturating_sub(accepted);
        u64::try_from(over / (requests + 1)).unwrap_or(MILLION - 1)
    }

    /// Whether this retry is granted. One that is refused was asked of the target all the same.
    fn ask(&mut self) -> bool {
        self.owed += self.refused_share();
        if self.owed < MILLION {
            return true;
        }
        self.owed -= MILLION;
        self.window.add(REQUESTS);
        false
    }
}

impl fmt::Debug for AdaptiveState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptiveState")
            .field("accepted", &self.window.at_most(ACCEPTED))
            .field("requests", &self.window.at_most(REQUESTS))
            .field("refused_share", &self.refused_share())
            .finish_non_exhaustive()
    }
}
