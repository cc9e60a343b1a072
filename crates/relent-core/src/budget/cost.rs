//! The budget of the AWS SDKs: a bucket, and a price for each class of retry.

use alloc::sync::Arc;

use super::meter::Meter;
use super::{Budget, BudgetCounts, Grant, Permit, TokenClass};
use crate::sync::{AtomicU32, Ordering};
use crate::{CostConfig, Health, Instant, Verdict};

/// Retries while the bucket affords their price. A retry that succeeds gets its price back, so that a blip costs nothing
/// in the end; a call that succeeds at its first try puts in `first_try`, so that an empty bucket fills again.
///
/// The price is taken at the decision and comes back if the retry is not launched. A success on a full bucket is one
/// relaxed read; nothing is ever locked, nor put aside for another call.
#[derive(Debug)]
pub struct CostBudget {
    tokens: AtomicU32,
    config: CostConfig,
    meter: Meter,
}

impl CostBudget {
    /// A full bucket.
    #[must_use]
    pub fn new(config: &CostConfig) -> CostBudget {
        CostBudget { tokens: AtomicU32::new(config.capacity), config: *config, meter: Meter::new() }
    }

    /// What is in the bucket.
    pub fn tokens(&self) -> u32 {
        self.tokens.load(Ordering::Relaxed)
    }

    fn price(&self, class: TokenClass) -> u32 {
        match class {
            TokenClass::Timeout => self.config.timeout,
            TokenClass::Throttled => self.config.throttled,
            _ => self.config.retry,
        }
    }

    fn put(&self, tokens: u32) {
        let capacity = self.config.capacity;
        if self.tokens() < capacity {
            let more = |held: u32| (held < capacity).then(|| held.saturating_add(tokens).min(capacity));
            let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// What was paid for a grant.
    fn paid(grant: Grant) -> u32 {
        u32::try_from(grant.mark).unwrap_or(u32::MAX)
    }
}

impl Budget for CostBudget {
    fn on_start(&self) {}

    fn hears_starts(&self) -> bool {
        false
    }

    fn on_success(&self, attempts: u32, _now: Option<Instant>) {
        if attempts == 1 {
            self.put(self.config.first_try);
        }
    }

    /// The SDKs reward a response that is no error.
    fn on_good_failure(&self, _attempts: u32, _now: Instant) {}

    fn on_failure(&self, _verdict: Verdict, _health: Health, _now: Instant) {}

    fn withdraw(self: Arc<Self>, class: TokenClass, _now: Instant) -> Option<Permit> {
        let price = self.price(class);
        let less = |held: u32| held.checked_sub(price);
        let paid = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok();
        self.meter.answered(paid)?;
        Some(Permit::new(self, Grant { source: 0, mark: u64::from(price) }))
    }

    fn give_back(&self, grant: Grant) {
        self.put(CostBudget::paid(grant));
        self.meter.returned();
    }

    fn succeeded(&self, grant: Grant) {
        self.put(CostBudget::paid(grant));
    }

    /// Of retries after a transient failure.
    fn balance(&self, _now: Instant) -> u64 {
        u64::from(self.tokens() / self.config.retry.max(1))
    }

    fn lower_to(&self, balance: u64, _now: Instant) {
        let most = balance.saturating_mul(u64::from(self.config.retry));
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let less = |held: u32| Some(held.min(most));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn counts(&self) -> Option<BudgetCounts> {
        Some(self.meter.counts())
    }
}
