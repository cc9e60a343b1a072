//! Hedging as a value: when a second attempt starts beside one that takes long.

use core::time::Duration;

use super::{Policy, PolicyError};
use crate::{Ratio, defaults};

/// Hedging: while an attempt takes long, another starts beside it; the first success is the call's.
///
/// Only calls that may be repeated whatever happens are hedged. Every hedge is one of the policy's `attempts`, and is
/// granted by the same deadline, breaker, credit and budget as a retry; a refused hedge leaves the attempts in flight
/// alone. Losers are dropped at once, and nobody is blamed for them.
///
/// *Source*: Dean and Barroso, "The Tail at Scale" (2013); gRFC A6.
///
/// ```
/// use relent_core::{HedgeConfig, Policy, Ratio};
/// use std::time::Duration;
///
/// let policy = Policy::builder().hedge(HedgeConfig::after(Duration::from_millis(80))).build()?;
/// assert_eq!(policy.hedge().map(|hedge| hedge.most), Some(1));
/// let tail = HedgeConfig::at_quantile(Ratio::percent(95));
/// assert!(Policy::builder().attempts(4).hedge(tail.most(2)).build().is_ok());
/// # Ok::<(), relent_core::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HedgeConfig {
    /// When a hedge starts, counted from the latest attempt.
    pub delay: HedgeDelay,
    /// Hedges per call at most (default 1).
    pub most: u32,
}

/// When a hedge starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HedgeDelay {
    /// After so long. Zero: at once, as far as the budget pays.
    After(Duration),
    /// After as long as this share of successful attempts takes, as measured over the last minute of this handle's
    /// calls; not at all until 20 of them were measured.
    Quantile {
        /// The share of attempts that end sooner: above 0 and below 1.
        quantile: Ratio,
        /// The least delay, whatever was measured.
        least: Duration,
    },
}

impl HedgeConfig {
    /// One hedge after `delay`.
    #[must_use]
    pub const fn after(delay: Duration) -> HedgeConfig {
        HedgeConfig { delay: HedgeDelay::After(delay), most: defaults::HEDGES }
    }

    /// One hedge where an attempt takes longer than this share of them (0.95 costs about 5 % more requests); never
    /// sooner than after 1 ms.
    #[must_use]
    pub const fn at_quantile(quantile: Ratio) -> HedgeConfig {
        let delay = HedgeDelay::Quantile { quantile, least: defaults::HEDGE_LEAST };
        HedgeConfig { delay, most: defaults::HEDGES }
    }

    /// So many hedges per call at most.
    #[must_use]
    pub const fn most(mut self, hedges: u32) -> HedgeConfig {
        self.most = hedges;
        self
    }

    /// The least delay of a measured quantile; without effect on a fixed delay.
    #[must_use]
    pub const fn least(mut self, least: Duration) -> HedgeConfig {
        if let HedgeDelay::Quantile { quantile, .. } = self.delay {
            self.delay = HedgeDelay::Quantile { quantile, least };
        }
        self
    }

    /// The delay itself, or the least that is measured.
    #[must_use]
    pub const fn least_delay(&self) -> Duration {
        match self.delay {
            HedgeDelay::After(delay) => delay,
            HedgeDelay::Quantile { least, .. } => least,
        }
    }
}

/// What a 429's hint holds back. (A 503's always holds all retries to its endpoint.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hold {
    /// The retries of the call that it came to: others may have a quota of their own. The default.
    Call,
    /// All retries to the target: they share one quota.
    Target,
}

pub(super) fn check(policy: &Policy) -> Result<(), PolicyError> {
    let Some(hedge) = policy.hedge() else { return Ok(()) };
    if hedge.most == 0 {
        return Err(PolicyError::Zero("hedge.most"));
    }
    if hedge.most >= policy.attempts() {
        return Err(PolicyError::HedgesNotBelowAttempts { hedges: hedge.most, attempts: policy.attempts() });
    }
    if let HedgeDelay::Quantile { quantile, .. } = hedge.delay
        && (quantile == Ratio::ZERO || quantile >= Ratio::ONE)
    {
        return Err(PolicyError::HedgeQuantileOutOfRange(quantile));
    }
    match policy.attempt_timeout().or(policy.deadline()) {
        Some(bound) if hedge.least_delay() >= bound => {
            Err(PolicyError::HedgeDelayTooLong { delay: hedge.least_delay(), bound })
        }
        _ => Ok(()),
    }
}
