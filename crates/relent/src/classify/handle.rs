//! The same refinements on a handle: `retry.retry_if(…)`.

use std::error::Error;
use std::time::Duration;

use relent_core::{Cause, Failure};

use super::Judgement;
use super::compose::{ClassifyExt, OnSource, Or, Refined, refine};
use crate::retry::Retry;
use crate::timer::Clock;

/// Classification that composes: each of these refines what the handle makes of an error so far. Budget, breaker and all
/// else stay shared with the handle that it was made from. The rules are [`ClassifyExt`]'s.
///
/// ```
/// use relent::{Retry, StopReason, Verdict};
/// use std::io::{Error, ErrorKind};
///
/// // What the standard classifier knows, and locks that somebody else holds.
/// let retry = Retry::default().also_if(|error: &Error| error.kind() == ErrorKind::ResourceBusy);
///
/// // Exactly these, whatever anybody knows.
/// let picky = Retry::default().retry_if(|error: &Error| error.kind() == ErrorKind::ResourceBusy);
/// let reset = picky.run_blocking(|_| Err::<(), _>(Error::from(ErrorKind::ConnectionReset))).unwrap_err();
/// assert_eq!((reset.reason(), reset.ambiguous()), (StopReason::NotRetryable, true));
/// # let _ = retry;
/// ```
impl<C, T: Clock> Retry<C, T> {
    /// Asks `judge` about every error of type `X` along the chain of sources before anybody else: [`ClassifyExt::on_source`].
    ///
    /// ```
    /// use relent::{Boxed, Retry, Verdict};
    ///
    /// let retry = Retry::default().classify(Boxed).on_source(|_: &std::num::ParseIntError| Verdict::Transient);
    /// let answer = retry.run_blocking(|attempt| match attempt.number() {
    ///     1 => Err(anyhow::Error::from("x".parse::<u8>().unwrap_err()).context("half an answer")),
    ///     number => Ok(number),
    /// });
    /// assert_eq!(answer.unwrap(), 2);
    /// ```
    pub fn on_source<X, R, F>(self, judge: F) -> Retry<OnSource<C, F, X>, T>
    where
        X: Error + 'static,
        R: Judgement,
        F: Fn(&X) -> R,
    {
        self.reclassify(|inner| inner.on_source(judge))
    }

    /// Asks `next` about the errors that the handle does not know yet: [`ClassifyExt::or`].
    pub fn or<D>(self, next: D) -> Retry<Or<C, D>, T> {
        self.reclassify(|inner| inner.or(next))
    }

    /// Retries exactly the errors for which `test` is true: [`ClassifyExt::retry_if`].
    pub fn retry_if<E: ?Sized, F>(self, test: F) -> Retry<Refined<C, F, refine::RetryIf>, T>
    where
        F: Fn(&E) -> bool,
    {
        self.reclassify(|inner| inner.retry_if(test))
    }

    /// Also retries the errors for which `test` is true: [`ClassifyExt::also_if`].
    pub fn also_if<E: ?Sized, F>(self, test: F) -> Retry<Refined<C, F, refine::AlsoIf>, T>
    where
        F: Fn(&E) -> bool,
    {
        self.reclassify(|inner| inner.also_if(test))
    }

    /// Does not retry the errors for which `test` is true: [`ClassifyExt::but_not_if`].
    pub fn but_not_if<E: ?Sized, F>(self, test: F) -> Retry<Refined<C, F, refine::ButNotIf>, T>
    where
        F: Fn(&E) -> bool,
    {
        self.reclassify(|inner| inner.but_not_if(test))
    }

    /// Takes the wait that the server asked for from the error: [`ClassifyExt::retry_after_from`].
    ///
    /// ```
    /// use relent::{Retry, StopReason};
    /// use std::time::Duration;
    ///
    /// struct Quota { free_in: Duration }
    ///
    /// let retry = Retry::default().classify(|_: &Quota| None::<relent::Verdict>).retry_after_from(|e: &Quota| Some(e.free_in));
    /// let later = retry.run_blocking(|_| Err::<(), _>(Quota { free_in: Duration::from_secs(3600) })).unwrap_err();
    /// assert_eq!((later.reason(), later.hint()), (StopReason::HintTooLong, Some(Duration::from_secs(3600))));
    /// ```
    pub fn retry_after_from<E: ?Sized, F>(self, wait: F) -> Retry<Refined<C, F, refine::RetryAfterFrom>, T>
    where
        F: Fn(&E) -> Option<Duration>,
    {
        self.reclassify(|inner| inner.retry_after_from(wait))
    }

    /// Says what kind of failure an error is: [`ClassifyExt::cause_from`].
    pub fn cause_from<E: ?Sized, F>(self, cause: F) -> Retry<Refined<C, F, refine::CauseFrom>, T>
    where
        F: Fn(&E) -> Option<Cause>,
    {
        self.reclassify(|inner| inner.cause_from(cause))
    }

    /// Says which errors leave open whether the operation was executed: [`ClassifyExt::ambiguous_if`].
    pub fn ambiguous_if<E: ?Sized, F>(self, test: F) -> Retry<Refined<C, F, refine::AmbiguousIf>, T>
    where
        F: Fn(&E) -> bool,
    {
        self.reclassify(|inner| inner.ambiguous_if(test))
    }

    /// Changes what is known of a failure in whatever way: [`ClassifyExt::map_failure`].
    pub fn map_failure<E: ?Sized, F>(self, change: F) -> Retry<Refined<C, F, refine::MapFailure>, T>
    where
        F: Fn(&E, Failure) -> Failure,
    {
        self.reclassify(|inner| inner.map_failure(change))
    }

    fn reclassify<D>(self, change: impl FnOnce(C) -> D) -> Retry<D, T> {
        Retry { classify: change(self.classify), shared: self.shared }
    }
}
