//! What most tests need: an error worth repeating, a policy without bounds of its own, and a count of attempts.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use relent::timer::{Clock, Manual};
use relent::{Policy, PolicyBuilder, Retry, RetryError, Verdict};

/// A failure that may work next time; told apart by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy(pub(crate) u32);

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "busy {}", self.0)
    }
}

impl std::error::Error for Busy {}

/// A call that gave up is a failure to the layer above it.
impl From<RetryError<Busy>> for Busy {
    fn from(error: RetryError<Busy>) -> Busy {
        error.into_last().unwrap_or(Busy(0))
    }
}

pub(crate) type Transient = fn(&Busy) -> Verdict;

/// Takes every [`Busy`] as transient.
pub(crate) fn handle<T: Clock>(policy: PolicyBuilder, time: &T) -> Retry<Transient, T> {
    let transient: Transient = |_| Verdict::Transient;
    Retry::with_timer(policy.build().unwrap(), time.clone()).classify(transient)
}

/// So many attempts, 10 ms apart, bounded by nothing else.
pub(crate) fn unbounded(attempts: u32) -> PolicyBuilder {
    Policy::constant(ms(10)).attempts(attempts).no_budget().no_deadline().no_attempt_timeout()
}

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// How much credit the code that runs now has: found out by spending all of it. `None`: no layer above says anything.
pub(crate) fn spend_all_credit() -> Option<u32> {
    const MORE_THAN_ANYBODY_GRANTS: u32 = 50;
    let policy = Policy::constant(Duration::ZERO).attempts(MORE_THAN_ANYBODY_GRANTS).no_budget();
    let attempts = Cell::new(0);
    let _ = handle(policy.no_deadline().no_attempt_timeout(), &Manual::new()).run_blocking(|_| {
        attempts.set(attempts.get() + 1);
        Err::<(), _>(Busy(0))
    });
    (attempts.get() < MORE_THAN_ANYBODY_GRANTS).then(|| attempts.get() - 1)
}
