//! From wishes to a checked [`Policy`].

use core::time::Duration;

use super::class::AttemptLimits;
use super::{
    BreakerConfig, BudgetConfig, HedgeConfig, Hold, Nested, Policy, PolicyError, RatioConfig, RepeatRule,
    RetryOn, ThrottledConfig,
};
use crate::time::nanos;
use crate::{Backoff, Cause, Growth, Jitter, Ratio, defaults};

/// The longest length a policy takes.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Builds a [`Policy`]; bad values are refused by [`build`](PolicyBuilder::build), never clamped.
///
/// *Defaults*: see [`Policy`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a builder does nothing until build()"]
pub struct PolicyBuilder(Policy);

impl PolicyBuilder {
    /// Attempts in all, the first included (default 3).
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// The first wait, before jitter (default 100 ms). Zero means: at once.
    pub fn base(mut self, base: Duration) -> Self {
        self.0.backoff.base = nanos(base);
        self
    }

    /// The hard ceiling of every backoff (default 10 s).
    pub fn cap(mut self, cap: Duration) -> Self {
        self.0.backoff.cap = nanos(cap);
        self
    }

    /// How the wait grows from one retry to the next (default [`Growth::Exponential`]).
    pub fn growth(mut self, growth: Growth) -> Self {
        self.0.backoff.growth = growth;
        self
    }

    /// What the wait grows by from one retry to the next, where it grows exponentially (default 2).
    pub fn multiplier(mut self, multiplier: Ratio) -> Self {
        self.0.backoff.multiplier = multiplier;
        self
    }

    /// The randomness laid over the curve (default [`Jitter::Full`]).
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.0.backoff.jitter = jitter;
        self
    }

    /// The least wait, whatever the jitter draws (default zero).
    pub fn floor(mut self, floor: Duration) -> Self {
        self.0.backoff.floor = nanos(floor);
        self
    }

    /// The bound of one attempt (default 5 s).
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.0.attempt_timeout = Some(timeout);
        self
    }

    /// An attempt may take as long as the call.
    pub fn no_attempt_timeout(mut self) -> Self {
        self.0.attempt_timeout = None;
        self
    }

    /// The bound of the whole call, waits included (default 15 s).
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.0.deadline = Some(deadline);
        self
    }

    /// The call may take as long as its attempts and waits take.
    pub fn no_deadline(mut self) -> Self {
        self.0.deadline = None;
        self
    }

    /// How long after its first failure a call may still start an attempt (default: no such bound). For work that lives long
    /// when all is well, a stream or a long poll, together with [`no_deadline`](PolicyBuilder::no_deadline): the time
    /// before it broke does not count, and an attempt that works is not cut short. An attempt that lasted at least this
    /// long did work: the time then counts anew from its failure.
    ///
    /// ```
    /// use core::time::Duration;
    /// use relent_core::Policy;
    ///
    /// let stream = Policy::builder().attempts(100).no_attempt_timeout().no_deadline();
    /// let stream = stream.give_up_after(Duration::from_secs(60)).build()?;
    /// assert_eq!(stream.give_up_after(), Some(Duration::from_secs(60)));
    /// # Ok::<(), relent_core::PolicyError>(())
    /// ```
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.0.give_up_after = Some(time);
        self
    }

    /// The time since the first failure bounds nothing.
    pub fn no_give_up_after(mut self) -> Self {
        self.0.give_up_after = None;
        self
    }

    /// What an attempt needs at least, to be worth starting before the deadline (default 1 ms).
    pub fn min_attempt_time(mut self, least: Duration) -> Self {
        self.0.min_attempt_time = least;
        self
    }

    /// The hint that a throttling answer without one counts as (default 1 s).
    pub fn throttled_base(mut self, wait: Duration) -> Self {
        self.0.throttled.base = wait;
        self
    }

    /// How throttled failures are retried: waits of their own, and fewer attempts (default [`ThrottledConfig::default`]).
    pub fn throttled(mut self, throttled: ThrottledConfig) -> Self {
        self.0.throttled = throttled;
        self
    }

    /// Fewer attempts in all, the first included, for calls whose last attempt failed for this cause (default: no such
    /// limit). Once for each cause; a second time replaces the first.
    ///
    /// ```
    /// use relent_core::{Cause, Policy};
    ///
    /// let policy = Policy::builder().attempts(5).attempts_on(Cause::Connect, 2).build()?;
    /// assert_eq!((policy.attempts_on(Cause::Connect), policy.attempts_on(Cause::Reset)), (Some(2), None));
    /// # Ok::<(), relent_core::PolicyError>(())
    /// ```
    pub fn attempts_on(mut self, cause: Cause, attempts: u32) -> Self {
        self.0.limits.set(cause, attempts);
        self
    }

    /// The longest hint that is waited out; a longer one ends the call (default 30 s).
    pub fn max_hint(mut self, longest: Duration) -> Self {
        self.0.max_hint = longest;
        self
    }

    /// Who pays for retries: one of the kinds of [`BudgetConfig`] (default `RatioConfig::new(0.1)`).
    pub fn budget(mut self, budget: impl Into<BudgetConfig>) -> Self {
        self.0.budget = Some(budget.into());
        self
    }

    /// Retries are bounded by `attempts` alone: fine for one person's command, a load multiplier for a service.
    pub fn no_budget(mut self) -> Self {
        self.0.budget = None;
        self
    }

    /// Refuse retries, or with [`ClassicConfig`](super::ClassicConfig) all attempts, while the target fails a large share of
    /// its calls (default: no breaker).
    pub fn breaker(mut self, breaker: impl Into<BreakerConfig>) -> Self {
        self.0.breaker = Some(breaker.into());
        self
    }

    /// Nobody asks how well the target is: the default, for a policy that is built on one with a breaker.
    pub fn no_breaker(mut self) -> Self {
        self.0.breaker = None;
        self
    }

    /// While an attempt takes long, start another beside it (default: no hedging). Read by the async drivers; a blocking
    /// one can't run two attempts at once and makes none.
    pub fn hedge(mut self, hedge: HedgeConfig) -> Self {
        self.0.hedge = Some(hedge);
        self
    }

    /// No hedging: the default, for a policy that is built on one with hedges.
    pub fn no_hedge(mut self) -> Self {
        self.0.hedge = None;
        self
    }

    /// What a 429's hint holds back (default [`Hold::Call`]).
    pub fn hold(mut self, hold: Hold) -> Self {
        self.0.hold = hold;
        self
    }

    /// How many calls may be in backoff at once, per target (default 10 000).
    pub fn max_waiting(mut self, calls: u32) -> Self {
        self.0.max_waiting = calls;
        self
    }

    /// What may be sent again (default [`RepeatRule::IdempotentMethods`]).
    pub fn repeat(mut self, rule: RepeatRule) -> Self {
        self.0.repeat = rule;
        self
    }

    /// Which kinds of failure are retried (default: see [`RetryOn`]).
    pub fn retry_on(mut self, kinds: RetryOn) -> Self {
        self.0.retry_on = kinds;
        self
    }

    /// What layers below are told of this layer's attempts (default [`Nested::Credit`]).
    pub fn nested(mut self, nested: Nested) -> Self {
        self.0.nested = nested;
        self
    }

    /// Bytes of a request body that are kept for a repeat, per call (default 64 KiB; 0: none).
    pub fn replay_limit(mut self, bytes: u64) -> Self {
        self.0.replay_limit = bytes;
        self
    }

    /// Bytes kept for repeats in all, per handle (default 64 MiB).
    pub fn replay_total(mut self, bytes: u64) -> Self {
        self.0.replay_total = bytes;
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// [`PolicyError`], the first contradiction found, with the field and the mend.
    pub fn build(self) -> Result<Policy, PolicyError> {
        let policy = self.0;
        if policy.attempts == 0 {
            return Err(PolicyError::NoAttempts);
        }
        check_lengths(&policy)?;
        check_backoff(&policy.backoff)?;
        super::growth::check(&policy)?;
        check_time(&policy)?;
        super::class::check(&policy)?;
        check_handles(&policy)?;
        super::hedge::check(&policy)?;
        let (limit, total) = (policy.replay_limit, policy.replay_total);
        if limit > total {
            return Err(PolicyError::ReplayLimitAboveTotal { limit, total });
        }
        if policy.attempts > 1 && policy.retry_on.is_empty() {
            return Err(PolicyError::NothingToRetryOn);
        }
        Ok(policy)
    }

    /// What was said so far, unchecked: for the defaults, which a test proves valid.
    pub(super) fn unchecked(self) -> Policy {
        self.0
    }
}

fn check_lengths(policy: &Policy) -> Result<(), PolicyError> {
    let lengths = [
        ("base", policy.backoff.base()),
        ("cap", policy.backoff.cap()),
        ("floor", policy.backoff.floor()),
        ("attempt_timeout", policy.attempt_timeout.unwrap_or_default()),
        ("deadline", policy.deadline.unwrap_or_default()),
        ("give_up_after", policy.give_up_after.unwrap_or_default()),
        ("min_attempt_time", policy.min_attempt_time),
        ("throttled_base", policy.throttled.base),
        ("throttled.cap", policy.throttled.cap.unwrap_or_default()),
        ("max_hint", policy.max_hint),
        ("hedge.delay", policy.hedge.map_or(Duration::ZERO, |hedge| hedge.least_delay())),
        policy.budget.as_ref().map_or(("budget.window", Duration::ZERO), BudgetConfig::length),
        policy.breaker.as_ref().map_or(("breaker.window", Duration::ZERO), super::breaker::longest),
    ];
    match lengths.into_iter().find(|(_, value)| *value > LONGEST) {
        Some((field, value)) => Err(PolicyError::TooLong { field, value }),
        None => Ok(()),
    }
}

fn check_backoff(backoff: &Backoff) -> Result<(), PolicyError> {
    let (base, cap, floor) = (backoff.base(), backoff.cap(), backoff.floor());
    let (multiplier, jitter) = (backoff.multiplier(), backoff.jitter());
    if cap < base {
        return Err(PolicyError::CapBelowBase { cap, base });
    }
    if floor > base {
        return Err(PolicyError::FloorAboveBase { floor, base });
    }
    if multiplier < Ratio::ONE {
        return Err(PolicyError::MultiplierBelowOne(multiplier));
    }
    match jitter {
        Jitter::Proportional(x) | Jitter::Additive(x) if x > Ratio::ONE => {
            Err(PolicyError::JitterAboveOne(x))
        }
        _ => Ok(()),
    }
}

fn check_time(policy: &Policy) -> Result<(), PolicyError> {
    let bounds = [
        ("attempt_timeout", policy.attempt_timeout),
        ("deadline", policy.deadline),
        ("give_up_after", policy.give_up_after),
    ];
    for (field, value) in bounds {
        if value.is_some_and(|v| v.is_zero()) {
            return Err(PolicyError::Zero(field));
        }
    }
    if let (Some(attempt_timeout), Some(deadline)) = (policy.attempt_timeout, policy.deadline)
        && attempt_timeout >= deadline
    {
        return Err(PolicyError::AttemptTimeoutNotBelowDeadline { attempt_timeout, deadline });
    }
    let min_attempt_time = policy.min_attempt_time;
    for bound in [policy.attempt_timeout, policy.deadline].into_iter().flatten() {
        if min_attempt_time >= bound {
            return Err(PolicyError::MinAttemptTimeTooLong { min_attempt_time, bound });
        }
    }
    let base = policy.backoff.base();
    if let Some(deadline) = policy.deadline
        && policy.attempts > 1
        && base + min_attempt_time >= deadline
    {
        return Err(PolicyError::FirstWaitBeyondDeadline { base, deadline });
    }
    check_give_up(policy)
}

fn check_give_up(policy: &Policy) -> Result<(), PolicyError> {
    let Some(give_up_after) = policy.give_up_after else { return Ok(()) };
    let base = policy.backoff.base();
    match policy.deadline {
        Some(deadline) if give_up_after >= deadline => {
            Err(PolicyError::GiveUpNotBelowDeadline { give_up_after, deadline })
        }
        _ if policy.attempts > 1 && base + policy.min_attempt_time >= give_up_after => {
            Err(PolicyError::FirstWaitBeyondGiveUp { base, give_up_after })
        }
        _ => Ok(()),
    }
}

fn check_handles(policy: &Policy) -> Result<(), PolicyError> {
    if let Some(budget) = &policy.budget {
        budget.check()?;
    }
    if let Some(breaker) = &policy.breaker {
        super::breaker::check(breaker)?;
    }
    Ok(())
}

impl From<&Policy> for PolicyBuilder {
    fn from(policy: &Policy) -> PolicyBuilder {
        PolicyBuilder(policy.clone())
    }
}

impl Default for PolicyBuilder {
    /// All defaults; see [`Policy`].
    fn default() -> PolicyBuilder {
        PolicyBuilder(Policy {
            attempts: defaults::ATTEMPTS,
            backoff: Backoff::exponential(defaults::BASE, defaults::CAP),
            attempt_timeout: Some(defaults::ATTEMPT_TIMEOUT),
            deadline: Some(defaults::DEADLINE),
            give_up_after: None,
            min_attempt_time: defaults::MIN_ATTEMPT_TIME,
            throttled: ThrottledConfig::default(),
            limits: AttemptLimits::default(),
            max_hint: defaults::MAX_HINT,
            budget: Some(RatioConfig::new(defaults::BUDGET_RATIO).into()),
            breaker: None,
            hedge: None,
            hold: Hold::Call,
            max_waiting: defaults::MAX_WAITING,
            repeat: RepeatRule::IdempotentMethods,
            retry_on: RetryOn::default(),
            nested: Nested::Credit,
            replay_limit: defaults::REPLAY_LIMIT,
            replay_total: defaults::REPLAY_TOTAL,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(PolicyBuilder::default().build(), Ok(Policy::default()));
    }
}
