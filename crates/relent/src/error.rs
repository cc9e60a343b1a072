//! How a call that gave up tells its story.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use relent_core::{Stop, StopReason};

/// Why a call gave up, and all that is known of its attempts.
///
/// `source()` is the last attempt's error, untouched. Where every attempt's time was up there is none, and `source()` says
/// just that, so that a layer above takes it for a timeout; where nothing was run it is `None`.
///
/// ```
/// use relent::{Policy, Retry, StopReason, Verdict};
///
/// let retry = Retry::new(Policy::constant(std::time::Duration::ZERO).build()?)
///     .classify(|_: &std::io::Error| Verdict::Transient);
/// let gave_up = retry.run_blocking(|_| std::fs::read("/no/such/file")).unwrap_err();
/// assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::AttemptsExhausted, 3));
/// assert_eq!(gave_up.last().map(|e| e.kind()), Some(std::io::ErrorKind::NotFound));
/// # Ok::<(), relent::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct RetryError<E>(Box<Story<E>>);

/// Behind a box, so that a `Result` of it is small: the way of success carries it along.
#[derive(Debug)]
struct Story<E> {
    stop: Stop,
    elapsed: Duration,
    failures: Failures<E>,
}

impl<E> RetryError<E> {
    pub(crate) fn new(stop: Stop, elapsed: Duration, failures: Failures<E>) -> RetryError<E> {
        RetryError(Box::new(Story { stop, elapsed, failures }))
    }

    /// The error of a service that was not ready to be called at all.
    #[cfg(feature = "tower")]
    pub(crate) fn before_the_first(error: E) -> RetryError<E> {
        let stop = Stop { reason: StopReason::NotRetryable, attempts: 0, ambiguous: false, hint: None };
        let mut failures = Failures::new(false);
        failures.add(error);
        RetryError::new(stop, Duration::ZERO, failures)
    }

    /// Why no further attempt was made.
    pub fn reason(&self) -> StopReason {
        self.0.stop.reason
    }

    /// Attempts made; 0 if the call ended before the first.
    pub fn attempts(&self) -> u32 {
        self.0.stop.attempts
    }

    /// How long the call took, waits included. On the system's clock it counts from when the first attempt was first pending,
    /// or failed: what the operation did before that without letting go of its thread is not in it.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed
    }

    /// Whether any attempt may have been executed although no answer came: what was asked for may have happened.
    pub fn ambiguous(&self) -> bool {
        self.0.stop.ambiguous
    }

    /// What the server had asked to wait, where the last failure came with that.
    pub fn hint(&self) -> Option<Duration> {
        self.0.stop.hint
    }

    /// Whether the last attempt ended because its time was up; [`last`](Self::last) is then an earlier attempt's error.
    pub fn last_timed_out(&self) -> bool {
        self.0.failures.last_timed_out
    }

    /// The last error that an attempt came to.
    pub fn last(&self) -> Option<&E> {
        self.0.failures.errors.last.as_ref()
    }

    /// The same, out of this one.
    pub fn into_last(self) -> Option<E> {
        self.0.failures.errors.last
    }

    /// Every error, the first one first (of more than a hundred, the first 99 and the last); only the last unless the handle was told to
    /// [`keep_errors`](crate::Retry::keep_errors).
    pub fn errors(&self) -> impl Iterator<Item = &E> {
        let Errors { last, earlier } = &self.0.failures.errors;
        earlier.iter().flat_map(|errors| errors.iter()).chain(last)
    }

    /// The same story with another error type.
    pub fn map<F>(self, mut change: impl FnMut(E) -> F) -> RetryError<F> {
        let Story { stop, elapsed, failures } = *self.0;
        let earlier =
            failures.errors.earlier.map(|errors| Box::new(errors.into_iter().map(&mut change).collect()));
        let last = failures.errors.last.map(change);
        RetryError::new(
            stop,
            elapsed,
            Failures { errors: Errors { last, earlier }, last_timed_out: failures.last_timed_out },
        )
    }
}

impl<E> RetryError<E> {
    pub(crate) fn stop(&self) -> Stop {
        self.0.stop
    }

    /// The same story without the errors for which there is no other; the last one is asked about last.
    pub(crate) fn filter_map<F>(self, mut change: impl FnMut(E) -> Option<F>) -> RetryError<F> {
        let Story { stop, elapsed, failures } = *self.0;
        let earlier = failures
            .errors
            .earlier
            .map(|errors| Box::new(errors.into_iter().filter_map(&mut change).collect()));
        let last = failures.errors.last.and_then(change);
        RetryError::new(
            stop,
            elapsed,
            Failures { errors: Errors { last, earlier }, last_timed_out: failures.last_timed_out },
        )
    }
}

impl<E> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0.stop.attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {} attempt{plural}", self.0.stop.attempts)?;
        // Where nothing was pending the clock was never read.
        if !self.0.elapsed.is_zero() {
            write!(f, " in {:.1?}", self.0.elapsed)?;
        }
        write!(f, ": {}", self.0.stop.reason)?;
        if let (StopReason::HintTooLong, Some(hint)) = (self.0.stop.reason, self.0.stop.hint) {
            write!(f, " ({hint:?})")?;
        }
        if self.0.failures.last_timed_out && self.0.stop.reason != StopReason::DeadlineExceeded {
            f.write_str("; the last attempt timed out")?;
        }
        if self.0.stop.ambiguous {
            f.write_str("; it may have taken effect")?;
        }
        Ok(())
    }
}

impl<E: Error + 'static> Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let Failures { errors: Errors { last, .. }, last_timed_out } = &self.0.failures;
        match last {
            Some(error) => Some(error),
            None => last_timed_out.then_some(&TimedOut),
        }
    }
}

/// What is told of attempts that were ended by their time, where none came to an error of its own.
#[derive(Debug)]
pub(crate) struct TimedOut;

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no attempt was answered in time")
    }
}

impl Error for TimedOut {}

/// A call of a million attempts keeps the errors that it began with, and its last one.
const MOST_EARLIER: usize = 99;

/// What a call's attempts came to, as far as its error tells of it.
#[derive(Debug)]
pub(crate) struct Failures<E> {
    errors: Errors<E>,
    last_timed_out: bool,
}

impl<E> Failures<E> {
    #[inline]
    pub(crate) fn new(keep_all: bool) -> Failures<E> {
        Failures { errors: Errors::new(keep_all), last_timed_out: false }
    }

    /// These errors, and whether the last attempt was ended by its time.
    pub(crate) fn of(errors: Errors<E>, last_timed_out: bool) -> Failures<E> {
        Failures { errors, last_timed_out }
    }

    pub(crate) fn add(&mut self, error: E) {
        self.last_timed_out = false;
        self.errors.add(error);
    }

    pub(crate) fn last(&self) -> Option<&E> {
        self.errors.last()
    }

    #[cfg(feature = "http")]
    pub(crate) fn timed_out(&mut self) {
        self.last_timed_out = true;
    }
}

/// The errors of a call's attempts, as they come.
#[derive(Debug)]
pub(crate) struct Errors<E> {
    last: Option<E>,
    /// `None`: only the last is asked for. Behind a box, since most callers ask for no more and many calls wait.
    #[expect(clippy::box_collection, reason = "a pointer is all that the common case should carry")]
    earlier: Option<Box<Vec<E>>>,
}

impl<E> Errors<E> {
    #[inline]
    pub(crate) fn new(keep_all: bool) -> Errors<E> {
        Errors { last: None, earlier: keep_all.then(Box::default) }
    }

    pub(crate) fn add(&mut self, error: E) {
        if let (Some(before), Some(earlier)) = (self.last.replace(error), &mut self.earlier)
            && earlier.len() < MOST_EARLIER
        {
            earlier.push(before);
        }
    }

    pub(crate) fn last(&self) -> Option<&E> {
        self.last.as_ref()
    }
}
