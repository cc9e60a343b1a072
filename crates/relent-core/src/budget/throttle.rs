//! gRPC's budget (gRFC A6): a bucket that retryable failures drain, and that has to be over half full.

use alloc::sync::Arc;

use super::meter::Meter;
use super::{Budget, BudgetCounts, Grant, Permit, TokenClass};
use crate::sync::{AtomicU32, Ordering};
use crate::{Health, Instant, ThrottleConfig, Verdict};

/// Thousandths of a token: exact, since `token_ratio` has three decimal places.
const TOKEN: u32 = 1000;

/// Retries while more than half of the bucket is left. Each failure that the policy retries, or that came with the peer's
/// word to stop, takes a token, whether a retry follows or not; each success puts back `token_ratio`, up to the size.
///
/// Retries themselves take nothing, and so nothing has to come back. A success on a full bucket is one relaxed read.
#[derive(Debug)]
pub struct ThrottleBudget {
    tokens: AtomicU32,
    size: u32,
    reward: u32,
    meter: Meter,
}

impl ThrottleBudget {
    /// A full bucket.
    #[must_use]
    pub fn new(config: &ThrottleConfig) -> ThrottleBudget {
        let size = config.max_tokens.saturating_mul(TOKEN);
        ThrottleBudget {
            tokens: AtomicU32::new(size),
            size,
            reward: config.token_ratio.parts_per_million() / 1000,
            meter: Meter::new(),
        }
    }

    /// What is in the bucket, in thousandths of a token.
    pub fn thousandths(&self) -> u32 {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Whether so much is more than half: exactly half is not.
    fn is_over_half(&self, tokens: u32) -> bool {
        u64::from(tokens) * 2 > u64::from(self.size)
    }
}

impl Budget for ThrottleBudget {
    fn on_start(&self) {}

    fn hears_starts(&self) -> bool {
        false
    }

    fn on_success(&self, _attempts: u32, _now: Option<Instant>) {
        if self.thousandths() < self.size {
            let more =
                |tokens: u32| (tokens < self.size).then(|| tokens.saturating_add(self.reward).min(self.size));
            let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }

    /// gRPC counts the status OK alone.
    fn on_good_failure(&self, _attempts: u32, _now: Instant) {}

    fn on_failure(&self, verdict: Verdict, _health: Health, _now: Instant) {
        if !matches!(verdict, Verdict::Permanent | Verdict::Rejected) {
            let less = |tokens: u32| Some(tokens.saturating_sub(TOKEN));
            let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    fn withdraw(self: Arc<Self>, _class: TokenClass, _now: Instant) -> Option<Permit> {
        let over = self.is_over_half(self.thousandths());
        let grant = self.meter.answered(over.then_some(Grant { source: 0, mark: 0 }))?;
        Some(Permit::new(self, grant))
    }

    fn give_back(&self, _grant: Grant) {
        self.meter.returned();
    }

    /// How many further failures would still be followed by a retry.
    fn balance(&self, _now: Instant) -> u64 {
        let over = u64::from(self.thousandths()) * 2;
        let over = over.saturating_sub(u64::from(self.size));
        over.saturating_sub(1) / (2 * u64::from(TOKEN))
    }

    fn lower_to(&self, balance: u64, _now: Instant) {
        // The most that affords no more than so many.
        let half_up = u64::from(self.size / 2);
        let most = half_up.saturating_add(balance.saturating_add(1).saturating_mul(u64::from(TOKEN)));
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let less = |tokens: u32| Some(tokens.min(most));
        let _ = self.tokens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    fn counts(&self) -> Option<BudgetCounts> {
        Some(self.meter.counts())
    }
}
