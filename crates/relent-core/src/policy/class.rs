//! What a policy says of one class of failures alone: the waits of throttled ones, and fewer attempts for some.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Policy, PolicyError};
use crate::time::nanos;
use crate::{Backoff, Cause, Failure, Growth, Jitter, Ratio, Verdict, defaults};

/// How throttled failures are retried ([`Verdict::Throttled`], a 429 say).
///
/// *Defaults*: `base` 1 s, no `cap`, no `attempts` of their own.
///
/// AWS's SDKs wait from 1 s on, doubling, where a service throttles, and from 100 ms otherwise. With a `cap` this does the
/// same: before retry k a throttled call that was told no time waits for at least min(cap, base × multiplier^(k−1)),
/// with the policy's multiplier. Without one it waits for at least `base` each time. A hint of the server goes before either.
///
/// ```
/// use relent_core::{Policy, ThrottledConfig};
/// use std::time::Duration;
///
/// let throttled = ThrottledConfig::from_base(Duration::from_secs(1)).cap(Duration::from_secs(20)).attempts(3);
/// let policy = Policy::builder().attempts(5).throttled(throttled).build()?;
/// assert_eq!(policy.throttled().attempts, Some(3));
/// assert!(Policy::builder().attempts(2).throttled(throttled).build().is_err());
/// # Ok::<(), relent_core::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThrottledConfig {
    /// The hint that a throttling answer without one counts as.
    pub base: Duration,
    /// What that grows to from retry to retry; `None`: it does not grow.
    pub cap: Option<Duration>,
    /// Attempts in all, the first included, where the last one was throttled; `None`: the policy's `attempts`.
    pub attempts: Option<u32>,
}

impl ThrottledConfig {
    /// Waits from `base` on.
    #[must_use]
    pub const fn from_base(base: Duration) -> ThrottledConfig {
        ThrottledConfig { base, cap: None, attempts: None }
    }

    /// Lets the wait grow by the policy's multiplier, up to `cap`.
    #[must_use]
    pub const fn cap(mut self, cap: Duration) -> ThrottledConfig {
        self.cap = Some(cap);
        self
    }

    /// Attempts in all where the last one was throttled; at most the policy's `attempts`.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> ThrottledConfig {
        self.attempts = Some(attempts);
        self
    }

    /// What a throttling answer without a hint asks for before retry `retry` (1 is the first).
    #[must_use]
    pub fn wait(&self, retry: u32, multiplier: Ratio) -> Duration {
        let Some(cap) = self.cap else { return self.base };
        let (base, cap) = (nanos(self.base), nanos(cap));
        let growth = Growth::Exponential;
        Backoff { base, cap, floor: 0, growth, multiplier, jitter: Jitter::None }.unjittered(retry.max(1))
    }
}

impl Default for ThrottledConfig {
    fn default() -> ThrottledConfig {
        ThrottledConfig::from_base(defaults::THROTTLED_BASE)
    }
}

/// Fewer attempts for some kinds of failure, in the order of their kinds. `retry_on` bounds how many there can be.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct AttemptLimits(Vec<(Cause, u32)>);

impl AttemptLimits {
    pub(super) fn set(&mut self, cause: Cause, attempts: u32) {
        match self.0.binary_search_by_key(&rank(cause), |(cause, _)| rank(*cause)) {
            Ok(at) => self.0[at].1 = attempts,
            Err(at) => self.0.insert(at, (cause, attempts)),
        }
    }

    pub(super) fn of(&self, cause: Cause) -> Option<u32> {
        self.0.iter().find(|(limited, _)| *limited == cause).map(|(_, attempts)| *attempts)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Cause, u32)> {
        self.0.iter().copied()
    }
}

fn rank(cause: Cause) -> u32 {
    match cause {
        Cause::Connect => 0,
        Cause::Reset => 1,
        Cause::Timeout => 2,
        Cause::Other => 3,
        Cause::Status(code) => 4 + u32::from(code),
        Cause::Grpc(code) => (1 << 17) + u32::from(code.number()),
    }
}

impl Policy {
    /// How throttled failures are retried.
    pub fn throttled(&self) -> &ThrottledConfig {
        &self.throttled
    }

    /// The hint that a throttling answer without one counts as, at least.
    pub fn throttled_base(&self) -> Duration {
        self.throttled.base
    }

    /// Attempts in all for calls whose last attempt failed for this cause; `None` if it has no limit of its own.
    pub fn attempts_on(&self, cause: Cause) -> Option<u32> {
        self.limits.of(cause)
    }

    /// All limits of this kind.
    pub fn attempt_limits(&self) -> impl Iterator<Item = (Cause, u32)> {
        self.limits.iter()
    }

    /// Attempts in all for a call whose last attempt failed like this: the least of the policy's attempts, those for
    /// throttled failures and those for the failure's cause.
    pub fn attempts_after(&self, failure: &Failure) -> u32 {
        let throttled = match failure.verdict {
            Verdict::Throttled { .. } => self.throttled.attempts,
            _ => None,
        };
        let limits = [throttled, self.limits.of(failure.cause)];
        limits.into_iter().flatten().fold(self.attempts, u32::min)
    }
}

pub(super) fn check(policy: &Policy) -> Result<(), PolicyError> {
    let ThrottledConfig { base, cap, attempts } = policy.throttled;
    let max_hint = policy.max_hint;
    if base > max_hint {
        return Err(PolicyError::ThrottledBaseAboveMaxHint { throttled_base: base, max_hint });
    }
    if let Some(cap) = cap {
        if cap < base {
            return Err(PolicyError::ThrottledCapBelowBase { cap, base });
        }
        if cap > max_hint {
            return Err(PolicyError::ThrottledCapAboveMaxHint { cap, max_hint });
        }
    }
    let limits = policy.limits.iter().map(|(_, attempts)| ("attempts_on", attempts));
    for (field, limit) in attempts.map(|attempts| ("throttled.attempts", attempts)).into_iter().chain(limits)
    {
        if limit == 0 {
            return Err(PolicyError::Zero(field));
        }
        if limit > policy.attempts {
            return Err(PolicyError::LimitAboveAttempts { field, limit, attempts: policy.attempts });
        }
    }
    match policy.limits.iter().find(|(cause, _)| !policy.retry_on.contains(*cause)) {
        Some((cause, _)) => Err(PolicyError::LimitOnNotRetried(cause)),
        None => Ok(()),
    }
}
