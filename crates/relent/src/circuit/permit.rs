//! Leave for one call through a breaker, which gives itself back.

use std::fmt;

use relent_core::{Admission, Health, Instant};

use super::{BreakerOpen, CircuitBreaker};
use crate::timer::{Clock, SystemTimer};

/// Leave for one call: see [`CircuitBreaker::try_acquire`].
///
/// ```
/// use relent::{CircuitBreaker, ClassicConfig};
///
/// let breaker = CircuitBreaker::new(ClassicConfig::new())?;
/// if let Ok(permit) = breaker.try_acquire() {
///     // … the call …
///     permit.success();
/// }
/// assert_eq!(breaker.counts().calls, 1);
/// # Ok::<(), relent::PolicyError>(())
/// ```
#[must_use = "dropped, a permit counts for neither side"]
pub struct BreakerPermit<T: Clock = SystemTimer> {
    breaker: CircuitBreaker<T>,
    leave: Leave,
    told: bool,
}

/// The breaker's leave, and when it was given, if that was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    pub(super) admission: Admission,
    pub(super) began: Option<Instant>,
}

/// The same over a breaker that is there for longer.
pub(super) struct Guard<'b, T: Clock> {
    breaker: &'b CircuitBreaker<T>,
    leave: Leave,
    told: bool,
}

impl<'b, T: Clock> Guard<'b, T> {
    #[inline]
    pub(super) fn of(breaker: &'b CircuitBreaker<T>) -> Result<Guard<'b, T>, BreakerOpen> {
        breaker.leave().map(|leave| Guard { breaker, leave, told: false })
    }

    #[inline]
    pub(super) fn tell(mut self, health: Health) {
        self.told = true;
        self.breaker.tell(self.leave, health);
    }
}

impl<T: Clock> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.told {
            self.breaker.tell(self.leave, Health::Unknown);
        }
    }
}

impl<T: Clock> BreakerPermit<T> {
    pub(super) fn new(breaker: CircuitBreaker<T>, leave: Leave) -> BreakerPermit<T> {
        BreakerPermit { breaker, leave, told: false }
    }

    /// The target did its work.
    pub fn success(self) {
        self.tell(Health::Good);
    }

    /// The target failed.
    pub fn failure(self) {
        self.tell(Health::Bad);
    }

    /// What the call says about the target.
    pub fn tell(mut self, health: Health) {
        self.told = true;
        self.breaker.tell(self.leave, health);
    }

    /// Whether the call is one of those that find out if the target is well again.
    pub fn is_probe(&self) -> bool {
        self.leave.admission.is_probe()
    }
}

impl<T: Clock> Drop for BreakerPermit<T> {
    fn drop(&mut self) {
        if !self.told {
            self.breaker.tell(self.leave, Health::Unknown);
        }
    }
}

impl<T: Clock> fmt::Debug for BreakerPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerPermit").field("probe", &self.is_probe()).finish_non_exhaustive()
    }
}
