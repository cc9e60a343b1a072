//! The budget of Finagle, Linkerd and tower: a share of the calls of a window, and so many a second.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use super::meter::Meter;
use super::{Budget, BudgetCounts, Grant, Permit, TokenClass};
use crate::ratio::MILLION;
use crate::sync::{AtomicU64, Lock, Ordering, Tally};
use crate::time::nanos;
use crate::window::Window;
use crate::{Health, Instant, Verdict, WindowedConfig};

/// What the window counts.
const DEPOSITS: usize = 0;
const WITHDRAWN: usize = 1;

/// Retries ≤ ⌊`min_per_second` × ttl + ratio × calls⌋ over any ttl: a leaky bucket into which each call deposits when it
/// starts, and from which deposits and withdrawals fade after `ttl`.
///
/// The arithmetic is that of Finagle's `RetryBudget`, but exact: a deposit is worth `ratio` in millionths, not 1000 of
/// ⌊1000 / ratio⌋ (Finagle) or 1 of ⌊1 / ratio⌋ (tower, to which 0.6 is 1). The window is cut finer than into their ten
/// slices: what is counted is never older than `ttl`, and at most a 128th younger.
///
/// A call costs one relaxed add on a line of the thread's own. When a call started is known to the tenth of the window where
/// the budget is asked that often; of a longer time without any turn, calls are taken to have started evenly.
#[derive(Debug)]
pub struct WindowedBudget<L> {
    /// A hundredth of the window: how old it may get before a success that knows the time turns it.
    turn_every: u64,
    deposits: Tally<1>,
    turned: AtomicU64,
    state: L,
    meter: Meter,
}

/// What a [`WindowedBudget`] keeps under its lock.
pub struct WindowedState {
    window: Window<2>,
    tenth: Duration,
    /// Of one deposit, in millionths of a retry.
    worth: u64,
    /// `min_per_second` × ttl, in millionths of a retry.
    reserve: u128,
}

impl<L: Lock<WindowedState>> WindowedBudget<L> {
    /// A budget with its whole reserve.
    #[must_use]
    pub fn new(config: &WindowedConfig, now: Instant) -> WindowedBudget<L> {
        let per_ttl = u128::from(config.min_per_second) * u128::from(nanos(config.ttl));
        WindowedBudget {
            turn_every: nanos(config.ttl) / 100,
            deposits: Tally::new(),
            turned: AtomicU64::new(now.as_nanos()),
            state: L::new(WindowedState {
                window: Window::new(config.ttl, now),
                tenth: config.ttl / 10,
                worth: u64::from(config.ratio.parts_per_million()),
                reserve: per_ttl * u128::from(MILLION) / Duration::from_secs(1).as_nanos(),
            }),
            meter: Meter::new(),
        }
    }

    fn turned_state<R>(&self, now: Instant, work: impl FnOnce(&mut WindowedState) -> R) -> R {
        self.state.with(|state| {
            self.turn(state, now);
            work(state)
        })
    }

    fn turn(&self, state: &mut WindowedState, now: Instant) {
        let [deposits] = self.deposits.collect();
        state.turn(deposits, now);
        self.turned.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl<L: Lock<WindowedState> + fmt::Debug + 'static> Budget for WindowedBudget<L> {
    fn on_start(&self) {
        self.deposits.add_one(DEPOSITS);
    }

    fn on_success(&self, _attempts: u32, now: Option<Instant>) {
        let Some(now) = now else { return };
        if now.as_nanos().saturating_sub(self.turned.load(Ordering::Relaxed)) >= self.turn_every {
            // Unless somebody else is at it.
            let _ = self.state.try_with(|state| self.turn(state, now));
        }
    }

    fn on_failure(&self, _verdict: Verdict, _health: Health, _now: Instant) {}

    fn withdraw(self: Arc<Self>, _class: TokenClass, now: Instant) -> Option<Permit> {
        let grant = self.meter.answered(self.turned_state(now, WindowedState::take))?;
        Some(Permit::new(self, grant))
    }

    fn give_back(&self, grant: Grant) {
        self.state.with(|state| state.window.take_back(WITHDRAWN, grant.mark));
        self.meter.returned();
    }

    fn balance(&self, now: Instant) -> u64 {
        self.turned_state(now, |state| state.balance())
    }

    fn lower_to(&self, balance: u64, now: Instant) {
        self.turned_state(now, |state| {
            let over = state.balance().saturating_sub(balance);
            state.window.place(WITHDRAWN, over, now);
        });
    }

    fn counts(&self) -> Option<BudgetCounts> {
        Some(self.meter.counts())
    }
}

impl WindowedState {
    fn turn(&mut self, deposits: u64, now: Instant) {
        let since = self.window.turn(now);
        if since.length() <= self.tenth {
            // The earliest time that they can have, so that never one too many is granted.
            self.window.place(DEPOSITS, deposits, since.from());
        } else {
            self.window.spread(DEPOSITS, deposits, since);
        }
    }

    fn take(&mut self) -> Option<Grant> {
        (self.balance() > 0).then(|| Grant { source: 0, mark: self.window.add(WITHDRAWN) })
    }

    /// Deposits rounded down at the window's edge, withdrawals up.
    fn balance(&self) -> u64 {
        let earned = u128::from(self.window.at_least(DEPOSITS)) * u128::from(self.worth);
        let spent = u128::from(self.window.at_most(WITHDRAWN)) * u128::from(MILLION);
        let left = self.reserve.saturating_add(earned).saturating_sub(spent);
        u64::try_from(left / u128::from(MILLION)).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for WindowedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowedState")
            .field("deposits", &self.window.at_least(DEPOSITS))
            .field("withdrawn", &self.window.at_most(WITHDRAWN))
            .field("balance", &self.balance())
            .finish_non_exhaustive()
    }
}
