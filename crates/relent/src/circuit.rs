//! A circuit breaker by itself: without retries, or shared by several handles.

#[cfg(feature = "tower")]
mod layer;
mod permit;

#[cfg(feature = "tower")]
pub use layer::{BreakerFuture, BreakerLayer, BreakerService, Judges};
pub use permit::BreakerPermit;
use permit::{Guard, Leave};

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use relent_core::{
    Breaker, BreakerChange, BreakerState, Classic, ClassicConfig, ClassicState, Health, Instant, Locks,
    PolicyError, Random,
};

use crate::handles::Mutexes;
use crate::random::PerThread;
use crate::timer::{Clock, SystemTimer};

type Machine = Classic<<Mutexes as Locks>::Of<ClassicState>>;

/// A classic circuit breaker: it stops calls while their target fails, and lets a few probes find out when it is well.
///
/// Clones share one state: make one per target. It stands alone ([`run`](CircuitBreaker::run),
/// [`run_blocking`](CircuitBreaker::run_blocking), [`try_acquire`](CircuitBreaker::try_acquire)), in a tower stack
/// (`BreakerLayer`), or in a handle that retries ([`Retry::breaker`](crate::Retry::breaker)). A call that is dropped
/// before its end counts for neither side, and a probe among them gives its place to another.
///
/// *Defaults*: see [`ClassicConfig`].
///
/// ```
/// use relent::{BreakerError, BreakerState, CircuitBreaker, ClassicConfig};
///
/// let breaker = CircuitBreaker::new(ClassicConfig::new().consecutive_failures(2))?;
/// for _ in 0..2 {
///     let failed = breaker.run_blocking(|| Err::<(), _>("down"));
///     assert!(matches!(failed, Err(BreakerError::Inner("down"))));
/// }
/// assert_eq!(breaker.state(), BreakerState::Open);
/// let refused = breaker.run_blocking(|| Ok::<_, &str>("never run"));
/// assert!(matches!(refused, Err(BreakerError::Open(_))));
/// # Ok::<(), relent::PolicyError>(())
/// ```
pub struct CircuitBreaker<T = SystemTimer> {
    machine: Arc<Machine>,
    timer: T,
}

impl CircuitBreaker {
    /// A closed breaker.
    ///
    /// # Errors
    /// [`PolicyError`], the first contradiction in `config`.
    pub fn new(config: ClassicConfig) -> Result<CircuitBreaker, PolicyError> {
        CircuitBreaker::with_timer(config, SystemTimer)
    }
}

impl<T: Clock> CircuitBreaker<T> {
    /// A closed breaker on another timer: virtual time for tests.
    ///
    /// # Errors
    /// [`PolicyError`], the first contradiction in `config`.
    pub fn with_timer(config: ClassicConfig, timer: T) -> Result<CircuitBreaker<T>, PolicyError> {
        CircuitBreaker::telling(config, timer, |_| {})
    }

    /// The same, and `listener` hears of every change of state. It runs on the task whose call made the change: it must be
    /// quick.
    ///
    /// # Errors
    /// [`PolicyError`], the first contradiction in `config`.
    pub fn telling(
        config: ClassicConfig,
        timer: T,
        listener: impl Fn(&BreakerChange) + Send + Sync + 'static,
    ) -> Result<CircuitBreaker<T>, PolicyError> {
        config.check()?;
        let machine = Classic::new(config, PerThread.next_u64(), timer.now()).on_change(listener);
        Ok(CircuitBreaker { machine: Arc::new(machine), timer })
    }

    /// Leave for one call, to be told how it went; `Err` while the breaker refuses. Dropped untold, it counts for neither
    /// side.
    ///
    /// # Errors
    /// [`BreakerOpen`], with the time until the next call may be admitted.
    pub fn try_acquire(&self) -> Result<BreakerPermit<T>, BreakerOpen> {
        self.leave().map(|leave| BreakerPermit::new(self.clone(), leave))
    }

    /// Runs `operation`, unless the breaker refuses. Every error counts as a failure of the target; see
    /// [`run_counting`](CircuitBreaker::run_counting) for those that don't.
    ///
    /// # Errors
    /// [`BreakerError`]: the operation's own, or that it was not run.
    pub async fn run<V, E, Fut>(&self, operation: impl FnOnce() -> Fut) -> Result<V, BreakerError<E>>
    where
        Fut: Future<Output = Result<V, E>>,
    {
        self.run_counting(operation, |_| Health::Bad).await
    }

    /// The same, where `health` says what an error means for the target's health: a 404 is good work.
    ///
    /// # Errors
    /// As [`run`](CircuitBreaker::run).
    pub async fn run_counting<V, E, Fut>(
        &self,
        operation: impl FnOnce() -> Fut,
        health: impl FnOnce(&E) -> Health,
    ) -> Result<V, BreakerError<E>>
    where
        Fut: Future<Output = Result<V, E>>,
    {
        let permit = Guard::of(self)?;
        let outcome = operation().await;
        permit.tell(outcome.as_ref().map_or_else(health, |_| Health::Good));
        outcome.map_err(BreakerError::Inner)
    }

    /// Runs `operation` on this thread, unless the breaker refuses. Every error counts as a failure of the target.
    ///
    /// # Errors
    /// As [`run`](CircuitBreaker::run).
    pub fn run_blocking<V, E>(&self, operation: impl FnOnce() -> Result<V, E>) -> Result<V, BreakerError<E>> {
        let permit = Guard::of(self)?;
        let outcome = operation();
        permit.tell(if outcome.is_ok() { Health::Good } else { Health::Bad });
        outcome.map_err(BreakerError::Inner)
    }

    /// The state. An open breaker whose time is up says so still: the next call makes it half-open.
    pub fn state(&self) -> BreakerState {
        self.machine.state()
    }

    /// Refuses every call until [`close`](CircuitBreaker::close).
    pub fn open(&self) {
        self.machine.open(self.timer.now());
    }

    /// Closes it, whatever it was, and forgets all counts.
    pub fn close(&self) {
        self.machine.close(self.timer.now());
    }

    /// What was counted over its window.
    pub fn counts(&self) -> BreakerCounts {
        let (calls, failures, slow) = self.machine.counts(self.timer.now());
        BreakerCounts { calls, failures, slow }
    }

    /// What it goes by.
    pub fn config(&self) -> &ClassicConfig {
        self.machine.config()
    }

    /// Leave for one call. The clock is read only where the breaker asks for the time.
    #[inline]
    fn leave(&self) -> Result<Leave, BreakerOpen> {
        match self.machine.admit_untimed() {
            Some(admission) => Ok(Leave { admission, began: None }),
            None => self.leave_by_the_clock(),
        }
    }

    #[inline(never)]
    fn leave_by_the_clock(&self) -> Result<Leave, BreakerOpen> {
        let now = self.timer.now();
        let admission = self.machine.admit_first(now);
        let retry_after = || self.machine.opens_again(now).map(|until| until.since(now));
        let admission = admission.ok_or_else(|| BreakerOpen { retry_after: retry_after() })?;
        Ok(Leave { admission, began: Some(now) })
    }

    #[inline]
    fn tell(&self, leave: Leave, health: Health) {
        match leave {
            Leave { admission, began: None } if health == Health::Good => {
                self.machine.record(admission, health, Duration::ZERO, Instant::ZERO);
            }
            leave => self.tell_by_the_clock(leave, health),
        }
    }

    #[inline(never)]
    fn tell_by_the_clock(&self, Leave { admission, began }: Leave, health: Health) {
        let now = self.timer.now();
        self.machine.record(admission, health, now.since(began.unwrap_or(now)), now);
    }
}

impl<T: Clone> Clone for CircuitBreaker<T> {
    fn clone(&self) -> CircuitBreaker<T> {
        CircuitBreaker { machine: Arc::clone(&self.machine), timer: self.timer.clone() }
    }
}

impl<T> fmt::Debug for CircuitBreaker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CircuitBreaker").field(&self.machine).finish()
    }
}

/// For [`Retry::breaker`](crate::Retry::breaker): the handle must be on the same clock.
impl<T> From<CircuitBreaker<T>> for Arc<dyn Breaker> {
    fn from(breaker: CircuitBreaker<T>) -> Arc<dyn Breaker> {
        breaker.machine
    }
}

/// What a breaker counted over its window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerCounts {
    /// Calls whose end says something.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Those that were slow.
    pub slow: u64,
}

/// A breaker refused a call: nothing was run. A retry around it does not repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerOpen {
    /// When a call may be admitted again; `None` if nobody knows (its probes are on their way, or it is held open by hand).
    pub retry_after: Option<Duration>,
}

impl fmt::Display for BreakerOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the circuit breaker is open")?;
        match self.retry_after {
            Some(after) => write!(f, " for another {after:.1?}"),
            None => Ok(()),
        }
    }
}

impl Error for BreakerOpen {}

/// Why a call behind a breaker failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerError<E> {
    /// It was not run.
    Open(BreakerOpen),
    /// It was, and failed with this.
    Inner(E),
}

impl<E> BreakerError<E> {
    /// The operation's own error.
    pub fn into_inner(self) -> Option<E> {
        match self {
            BreakerError::Inner(error) => Some(error),
            BreakerError::Open(_) => None,
        }
    }
}

impl<E> From<BreakerOpen> for BreakerError<E> {
    fn from(open: BreakerOpen) -> BreakerError<E> {
        BreakerError::Open(open)
    }
}

impl<E: fmt::Display> fmt::Display for BreakerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BreakerError::Open(open) => open.fmt(f),
            BreakerError::Inner(error) => error.fmt(f),
        }
    }
}

/// The `source()` is what happened itself, so that whoever walks the chain finds the operation's error, or [`BreakerOpen`].
impl<E: Error + 'static> Error for BreakerError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BreakerError::Open(open) => Some(open),
            BreakerError::Inner(error) => Some(error),
        }
    }
}
