//! Curves other than the exponential one.

use core::time::Duration;

use super::{Policy, PolicyBuilder, PolicyError};
use crate::{Growth, Jitter, Steps, defaults};

impl Policy {
    /// A builder whose wait grows by `base` with each retry, to at most `cap`, and defaults for the rest.
    ///
    /// ```
    /// use core::time::Duration;
    /// use relent_core::Policy;
    ///
    /// let policy = Policy::linear(Duration::from_millis(200), Duration::from_secs(1)).build()?;
    /// let curve = [1, 2, 3, 9].map(|retry| policy.backoff().unjittered(retry).as_millis());
    /// assert_eq!(curve, [200, 400, 600, 1000]);
    /// # Ok::<(), relent_core::PolicyError>(())
    /// ```
    pub fn linear(base: Duration, cap: Duration) -> PolicyBuilder {
        PolicyBuilder::default().base(base).cap(cap).growth(Growth::Linear)
    }

    /// A builder whose wait is `base` × 1, 1, 2, 3, 5, 8, …, to at most `cap`, and defaults for the rest.
    pub fn fibonacci(base: Duration, cap: Duration) -> PolicyBuilder {
        PolicyBuilder::default().base(base).cap(cap).growth(Growth::Fibonacci)
    }

    /// A builder whose waits are listed, the last of them for all further retries, and defaults for the rest: full jitter
    /// among them, so each is the longest that is drawn; [`Jitter::None`](crate::Jitter::None) takes the list as it is.
    ///
    /// ```
    /// use core::time::Duration;
    /// use relent_core::{Jitter, Policy};
    ///
    /// let waits = [1, 1, 30, 5].map(Duration::from_secs);
    /// let policy = Policy::steps(&waits).jitter(Jitter::None).attempts(9).no_deadline().build()?;
    /// let drawn = [1, 2, 3, 4, 8].map(|retry| policy.backoff().draw(retry, Duration::ZERO, 0).as_secs());
    /// assert_eq!(drawn, [1, 1, 30, 5, 5]);
    /// # Ok::<(), relent_core::PolicyError>(())
    /// ```
    pub fn steps(waits: &[Duration]) -> PolicyBuilder {
        let steps = Steps::new(waits);
        let longest = Duration::from_nanos(steps.longest());
        PolicyBuilder::default().base(steps.get(1)).cap(longest).growth(Growth::Steps(steps))
    }
}

/// Nothing that was said of the curve may be left aside.
pub(super) fn check(policy: &Policy) -> Result<(), PolicyError> {
    let backoff = &policy.backoff;
    if backoff.growth == Growth::Exponential {
        return Ok(());
    }
    if let Growth::Steps(steps) = backoff.growth {
        let (base, first) = (backoff.base(), steps.get(1));
        if !steps.fits() {
            return Err(PolicyError::StepsOutOfRange(steps.len()));
        }
        if base != first {
            return Err(PolicyError::BaseNotFirstStep { base, first });
        }
    }
    // Throttled waits that have a cap grow by it, too.
    if backoff.multiplier != defaults::MULTIPLIER && policy.throttled.cap.is_none() {
        return Err(PolicyError::MultiplierUnused(backoff.multiplier));
    }
    match backoff.jitter {
        Jitter::Decorrelated | Jitter::DecorrelatedBounded => {
            Err(PolicyError::GrowthUnused(backoff.growth.name()))
        }
        _ => Ok(()),
    }
}
