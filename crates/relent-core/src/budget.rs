//! Who pays for a retry: a budget keeps retries to a share of the traffic.

mod adaptive;
mod concurrency;
mod cost;
#[cfg(all(test, relent_loom))]
mod loom_kinds;
#[cfg(all(test, relent_loom))]
mod loom_tests;
mod meter;
mod permit;
mod ratio;
mod throttle;
mod windowed;

pub use adaptive::{AdaptiveBudget, AdaptiveState};
pub use concurrency::ConcurrencyBudget;
pub use cost::CostBudget;
pub use meter::BudgetCounts;
pub(crate) use permit::Presence;
pub use permit::{Grant, Permit};
pub use ratio::{RatioBudget, RatioState};
pub use throttle::ThrottleBudget;
pub use windowed::{WindowedBudget, WindowedState};

use alloc::sync::Arc;
use core::fmt::Debug;

use crate::{BudgetConfig, Health, Instant, Locks, Verdict};

/// What kind of extra attempt a token is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenClass {
    /// A retry after a transient failure.
    Transient,
    /// A retry after a timeout: dearer for the budgets that make a difference.
    Timeout,
    /// A retry after a throttling answer.
    Throttled,
    /// A hedge: nothing has failed yet.
    Hedge,
}

/// A shared allowance for retries: hooks that the session calls, and the return of unspent tokens.
///
/// A token is taken at the decision to retry, comes back if the call is dropped before the launch, and is spent at the
/// launch. Implementations never block on a success.
pub trait Budget: Debug + Send + Sync {
    /// A call starts.
    fn on_start(&self);

    /// Whether [`on_start`](Budget::on_start) does anything: a driver may leave it out where it does not.
    fn hears_starts(&self) -> bool {
        true
    }

    /// Whether [`on_end`](Budget::on_end) does anything; only then the end of a call is told, and it costs it a clone of
    /// the budget's handle.
    fn hears_ends(&self) -> bool {
        false
    }

    /// A call that started has ended: told exactly once, however it ends, also where it is dropped.
    fn on_end(&self) {}

    /// A call succeeded after so many attempts, free repeats aside. `now` is given where the driver has read its clock
    /// anyway.
    fn on_success(&self, attempts: u32, now: Option<Instant>);

    /// A call ended with a failure that is good work of the target (a 404): most budgets take it for a success.
    fn on_good_failure(&self, attempts: u32, now: Instant) {
        self.on_success(attempts, Some(now));
    }

    /// An attempt failed. `verdict` is [`Verdict::Permanent`] too where the policy does not retry this kind of failure.
    fn on_failure(&self, verdict: Verdict, health: Health, now: Instant);

    /// Asks for one extra attempt; `None` means: not affordable.
    fn withdraw(self: Arc<Self>, class: TokenClass, now: Instant) -> Option<Permit>;

    /// A granted token was not spent.
    fn give_back(&self, grant: Grant);

    /// The attempt that a token was spent on has ended; only budgets that count concurrency care.
    fn finished(&self, grant: Grant) {
        let _ = grant;
    }

    /// The attempt that a token was spent on has succeeded; told in place of [`finished`](Budget::finished).
    fn succeeded(&self, grant: Grant) {
        self.finished(grant);
    }

    /// How many retries would be granted now, if asked one after another.
    fn balance(&self, now: Instant) -> u64;

    /// Takes tokens away until the balance is at most this: a budget that takes another one's place carries on from there.
    /// Budgets that keep no tokens ignore it.
    fn lower_to(&self, balance: u64, now: Instant) {
        let _ = (balance, now);
    }

    /// What became of the tokens so far; `None` where nobody counts.
    fn counts(&self) -> Option<BudgetCounts> {
        None
    }
}

impl BudgetConfig {
    /// A budget as described, full, for calls of so many attempts (which the reserve of a [`RatioConfig`](crate::RatioConfig)
    /// that leaves its size open is for).
    #[must_use]
    pub fn build<L: Locks>(&self, attempts: u32, now: Instant) -> Arc<dyn Budget> {
        match self {
            BudgetConfig::Ratio(config) => {
                Arc::new(RatioBudget::<L::Of<RatioState>>::new(config, attempts, now))
            }
            BudgetConfig::Windowed(config) => {
                Arc::new(WindowedBudget::<L::Of<WindowedState>>::new(config, now))
            }
            BudgetConfig::Throttle(config) => Arc::new(ThrottleBudget::new(config)),
            BudgetConfig::Concurrency(config) => Arc::new(ConcurrencyBudget::new(config)),
            BudgetConfig::Cost(config) => Arc::new(CostBudget::new(config)),
            BudgetConfig::Adaptive(config) => {
                Arc::new(AdaptiveBudget::<L::Of<AdaptiveState>>::new(config, now))
            }
        }
    }
}
