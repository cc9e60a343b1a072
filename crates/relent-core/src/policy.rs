//! The policy: a plain, checked value that says how a call is retried.

mod breaker;
mod budget;
mod builder;
mod class;
mod error;
mod growth;
mod hedge;
mod retry_on;

pub use breaker::{BreakerConfig, BreakerWindow, ClassicConfig, RetriesOnlyConfig};
pub use budget::{
    AdaptiveConfig, BudgetConfig, ConcurrencyConfig, CostConfig, Deposit, RatioConfig, ThrottleConfig,
    WindowedConfig,
};
pub use builder::PolicyBuilder;
pub use class::ThrottledConfig;
pub use error::PolicyError;
pub use hedge::{HedgeConfig, HedgeDelay, Hold};
pub use retry_on::{BadGrpcCode, BadStatus, RetryOn};

use core::time::Duration;

use crate::{Backoff, Ratio};

/// What may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RepeatRule {
    /// Nothing, not even what was provably not executed (free repeats excepted).
    Never,
    /// GET, HEAD, OPTIONS, TRACE, PUT, DELETE (RFC 9110 §9.2.2); others only when provably not executed. The default.
    IdempotentMethods,
    /// These, and requests with an `Idempotency-Key`: your word that the receiver deduplicates by it.
    KeyHonoured,
    /// Everything: your word that repeating does no harm.
    Always,
}

/// What one call may do, by the rule, its method, its key and the caller's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Not at all.
    No,
    /// Only when an attempt was provably not executed.
    UnprocessedOnly,
    /// Yes.
    Yes,
}

/// What layers below are told of this layer's attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nested {
    /// They share one allowance, and the one nearest to the failure spends it first. The default.
    Credit,
    /// They get none: retries happen here only.
    PassThrough,
    /// They are told nothing: attempts multiply.
    Allow,
}

/// How a call is retried: a plain value that can be cloned, compared and kept, and is valid by construction.
///
/// Made by a [`PolicyBuilder`] ([`Policy::exponential`], [`Policy::constant`], [`Policy::builder`]) or read from the
/// policy file. *Defaults* (all in [`defaults`](crate::defaults)): 3 attempts; 100 ms doubling to 10 s, full jitter;
/// attempt timeout 5 s; deadline 15 s; `ratio` budget of 0.1; no breaker; idempotent methods; attempt credit shared.
///
/// ```
/// use core::time::Duration;
/// use relent_core::{Jitter, Policy};
///
/// let policy = Policy::exponential(Duration::from_millis(50), Duration::from_secs(1))
///     .attempts(4)
///     .jitter(Jitter::Full)
///     .attempt_timeout(Duration::from_millis(500))
///     .deadline(Duration::from_secs(2))
///     .build()?;
/// assert_eq!(policy.attempts(), 4);
/// # Ok::<(), relent_core::PolicyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    attempts: u32,
    backoff: Backoff,
    attempt_timeout: Option<Duration>,
    deadline: Option<Duration>,
    give_up_after: Option<Duration>,
    min_attempt_time: Duration,
    throttled: ThrottledConfig,
    limits: class::AttemptLimits,
    max_hint: Duration,
    budget: Option<BudgetConfig>,
    breaker: Option<BreakerConfig>,
    hedge: Option<HedgeConfig>,
    hold: Hold,
    max_waiting: u32,
    repeat: RepeatRule,
    retry_on: RetryOn,
    nested: Nested,
    replay_limit: u64,
    replay_total: u64,
}

impl Policy {
    /// A builder with exponential backoff from `base` to at most `cap`, and defaults for the rest.
    pub fn exponential(base: Duration, cap: Duration) -> PolicyBuilder {
        PolicyBuilder::default().base(base).cap(cap)
    }

    /// A builder that always waits `wait`, without jitter, and defaults for the rest.
    pub fn constant(wait: Duration) -> PolicyBuilder {
        PolicyBuilder::default().base(wait).cap(wait).multiplier(Ratio::ONE).jitter(crate::Jitter::None)
    }

    /// A builder with all defaults.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// A builder that starts from this policy, for one that differs in a few fields.
    ///
    /// ```
    /// use relent_core::Policy;
    ///
    /// let patient = Policy::default().rebuild().attempts(5).build()?;
    /// assert_eq!((patient.attempts(), patient.deadline()), (5, Policy::default().deadline()));
    /// # Ok::<(), relent_core::PolicyError>(())
    /// ```
    pub fn rebuild(&self) -> PolicyBuilder {
        PolicyBuilder::from(self)
    }

    /// Attempts in all, the first included.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The wait before each retry.
    pub fn backoff(&self) -> &Backoff {
        &self.backoff
    }

    /// The bound of one attempt; `None` if the builder was told `no_attempt_timeout()`.
    pub fn attempt_timeout(&self) -> Option<Duration> {
        self.attempt_timeout
    }

    /// The bound of the whole call, waits included; `None` if the builder was told `no_deadline()`.
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// How long after its first failure a call may still start an attempt; `None`: that bounds nothing.
    pub fn give_up_after(&self) -> Option<Duration> {
        self.give_up_after
    }

    /// What an attempt needs at least, to be worth starting before the deadline.
    pub fn min_attempt_time(&self) -> Duration {
        self.min_attempt_time
    }

    /// The longest hint that is waited out.
    pub fn max_hint(&self) -> Duration {
        self.max_hint
    }

    /// The budget's description; `None` if the builder was told `no_budget()`.
    pub fn budget(&self) -> Option<&BudgetConfig> {
        self.budget.as_ref()
    }

    /// The breaker's description, if one was asked for.
    pub fn breaker(&self) -> Option<&BreakerConfig> {
        self.breaker.as_ref()
    }

    /// Whether, and when, a second attempt starts beside one that takes long.
    pub fn hedge(&self) -> Option<&HedgeConfig> {
        self.hedge.as_ref()
    }

    /// What a 429's hint holds back.
    pub fn hold(&self) -> Hold {
        self.hold
    }

    /// How many calls may be in backoff at once, per target.
    pub fn max_waiting(&self) -> u32 {
        self.max_waiting
    }

    /// What may be sent again.
    pub fn repeat(&self) -> RepeatRule {
        self.repeat
    }

    /// Which kinds of failure are retried.
    pub fn retry_on(&self) -> &RetryOn {
        &self.retry_on
    }

    /// What layers below are told of this layer's attempts.
    pub fn nested(&self) -> Nested {
        self.nested
    }

    /// Bytes of a request body that are kept for a repeat, per call.
    pub fn replay_limit(&self) -> u64 {
        self.replay_limit
    }

    /// Bytes kept for repeats in all, per handle.
    pub fn replay_total(&self) -> u64 {
        self.replay_total
    }

    /// Whether a driver must read its clock before the first attempt.
    pub fn is_timed(&self) -> bool {
        self.deadline.is_some()
            || self.attempt_timeout.is_some()
            || self.breaker.is_some()
            || self.hedge.is_some()
    }
}

impl Default for Policy {
    /// All defaults; see [`defaults`](crate::defaults).
    fn default() -> Policy {
        PolicyBuilder::default().unchecked()
    }
}
