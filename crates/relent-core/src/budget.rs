//! Who pays for a retry: a budget keeps retries to a share of the traffic.

#[cfg(all(test, relent_loom))]
mod loom_tests;
mod permit;
mod ratio;
mod refusing;

pub use permit::{Grant, Permit};
pub use ratio::{RatioBudget, RatioState};

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

/// A shared allowance for retries: four hooks that the session calls, and the return of unspent tokens.
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

    /// A call succeeded after so many attempts, or ended with a failure that is good work of the target (a 404). `now` is
    /// given where the driver has read its clock anyway.
    fn on_success(&self, attempts: u32, now: Option<Instant>);

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

    /// How many retries would be granted now, if asked one after another.
    fn balance(&self, now: Instant) -> u64;
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
            _ => Arc::new(refusing::Refusing),
        }
    }
}
