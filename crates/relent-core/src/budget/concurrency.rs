//! Envoy's budget: retries as a share of the calls in flight.

use alloc::sync::Arc;

use super::meter::Meter;
use super::{Budget, BudgetCounts, Grant, Permit, TokenClass};
use crate::ratio::MILLION;
use crate::sync::{AtomicU64, Ordering, Tally};
use crate::{ConcurrencyConfig, Health, Instant, Verdict};

const STARTED: usize = 0;
const ENDED: usize = 1;

/// At any moment, retries ≤ max(minimum, ⌊ratio × calls in flight⌋).
///
/// A retry counts from the decision to the end of its attempt, its wait included: so a thousand calls that fail at once
/// don't all wait now and come back together. A call is in flight from its start to its end, also while it waits: so the
/// bound does not shrink with the number of those who wait.
///
/// A call costs two relaxed adds on lines of its threads' own, one when it starts and one when it ends.
#[derive(Debug)]
pub struct ConcurrencyBudget {
    config: ConcurrencyConfig,
    calls: Tally<2>,
    /// Decided, waiting or running.
    retries: AtomicU64,
    meter: Meter,
}

impl ConcurrencyBudget {
    /// A budget with nothing in flight.
    #[must_use]
    pub fn new(config: &ConcurrencyConfig) -> ConcurrencyBudget {
        ConcurrencyBudget {
            config: *config,
            calls: Tally::new(),
            retries: AtomicU64::new(0),
            meter: Meter::new(),
        }
    }

    /// Calls that have started and not ended.
    pub fn in_flight(&self) -> u64 {
        let [started, ended] = self.calls.totals();
        started.saturating_sub(ended)
    }

    /// Retries that are decided, wait or run.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// How many retries there may be now.
    fn most(&self) -> u64 {
        let share = u128::from(self.in_flight()) * u128::from(self.config.ratio.parts_per_million());
        let share = u64::try_from(share / u128::from(MILLION)).unwrap_or(u64::MAX);
        share.max(u64::from(self.config.minimum))
    }
}

impl Budget for ConcurrencyBudget {
    fn on_start(&self) {
        self.calls.add_one(STARTED);
    }

    fn hears_ends(&self) -> bool {
        true
    }

    fn on_end(&self) {
        self.calls.add_one(ENDED);
    }

    fn on_success(&self, _attempts: u32, _now: Option<Instant>) {}

    fn on_failure(&self, _verdict: Verdict, _health: Health, _now: Instant) {}

    fn withdraw(self: Arc<Self>, _class: TokenClass, _now: Instant) -> Option<Permit> {
        let most = self.most();
        let one_more = |retries: u64| (retries < most).then(|| retries + 1);
        let granted = self.retries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok();
        self.meter.answered(granted)?;
        Some(Permit::new(self, Grant { source: 0, mark: 0 }))
    }

    fn give_back(&self, grant: Grant) {
        self.finished(grant);
        self.meter.returned();
    }

    fn finished(&self, _grant: Grant) {
        self.retries.fetch_sub(1, Ordering::Relaxed);
    }

    fn balance(&self, _now: Instant) -> u64 {
        self.most().saturating_sub(self.retries())
    }

    fn counts(&self) -> Option<BudgetCounts> {
        Some(self.meter.counts())
    }
}
