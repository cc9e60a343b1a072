//! Classifiers out of classifiers: one after another, by types along `source()`, and refined by what an error says.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use relent_core::{Cause, Failure, Hint, Verdict};

use super::{Boxed, Classify, Judgement, Standard, chain, unknown};

/// Makes classifiers out of classifiers. The same methods are on [`Retry`](crate::Retry), where they refine what the handle
/// has; this is for a classifier that several handles share.
///
/// ```
/// use relent::classify::ClassifyExt;
/// use relent::{Boxed, Classify, Verdict};
///
/// #[derive(Debug)]
/// struct Deadlock;
/// # impl std::fmt::Display for Deadlock { fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result { f.write_str("deadlock") } }
/// # impl std::error::Error for Deadlock {}
///
/// let database = Boxed.on_source(|_: &Deadlock| Verdict::Transient);
/// let error = anyhow::Error::from(Deadlock).context("booking a seat");
/// assert_eq!(database.classify(&error).verdict(), Verdict::Transient);
/// ```
pub trait ClassifyExt: Sized {
    /// Asks `judge` first, about every error of type `X` along the chain of sources, the outermost first; where it answers
    /// `None`, or there is none, this classifier.
    fn on_source<X: Error + 'static, R: Judgement, F: Fn(&X) -> R>(self, judge: F) -> OnSource<Self, F, X> {
        OnSource { inner: self, judge, asked: PhantomData }
    }

    /// Asks `next` about the errors that this one does not know.
    fn or<D>(self, next: D) -> Or<Self, D> {
        Or { first: self, next }
    }

    /// Retries exactly the errors for which `test` is true. What this classifier knows of them (hint, cause, health, whether
    /// they may have been executed) stays; a [`Verdict::Rejected`] too, since nothing was tried.
    ///
    /// The policy is asked all the same: whether its `retry_on` lists the cause, whether the call may be repeated.
    fn retry_if<E: ?Sized, F: Fn(&E) -> bool>(self, test: F) -> Refined<Self, F, refine::RetryIf> {
        Refined::new(self, test)
    }

    /// Also retries the errors for which `test` is true.
    fn also_if<E: ?Sized, F: Fn(&E) -> bool>(self, test: F) -> Refined<Self, F, refine::AlsoIf> {
        Refined::new(self, test)
    }

    /// Does not retry the errors for which `test` is true, whatever else is said of them.
    fn but_not_if<E: ?Sized, F: Fn(&E) -> bool>(self, test: F) -> Refined<Self, F, refine::ButNotIf> {
        Refined::new(self, test)
    }

    /// Takes the wait that the server asked for from the error: never retried earlier. An error that is not known otherwise
    /// and asks for a wait is taken for [`Verdict::Throttled`]; one that is not retryable does not become so.
    fn retry_after_from<E: ?Sized, F>(self, wait: F) -> Refined<Self, F, refine::RetryAfterFrom>
    where
        F: Fn(&E) -> Option<Duration>,
    {
        Refined::new(self, wait)
    }

    /// Says what kind of failure an error is, which the policy's `retry_on` and `attempts_on` go by. `None` leaves it.
    fn cause_from<E: ?Sized, F>(self, cause: F) -> Refined<Self, F, refine::CauseFrom>
    where
        F: Fn(&E) -> Option<Cause>,
    {
        Refined::new(self, cause)
    }

    /// Says which errors leave open whether the operation was executed: then it is repeated only where that does no harm,
    /// and the call's own error says so.
    fn ambiguous_if<E: ?Sized, F: Fn(&E) -> bool>(self, test: F) -> Refined<Self, F, refine::AmbiguousIf> {
        Refined::new(self, test)
    }

    /// Changes what is known of a failure in whatever way.
    fn map_failure<E: ?Sized, F>(self, change: F) -> Refined<Self, F, refine::MapFailure>
    where
        F: Fn(&E, Failure) -> Failure,
    {
        Refined::new(self, change)
    }
}

impl<C> ClassifyExt for C {}

/// Lends the outermost error of a chain, for classifiers that walk along it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't look inside of a `{E}`",
    note = "`on_source` needs `std::error::Error`; for `anyhow::Error` and boxed errors begin with `relent::Boxed`: `retry.classify(Boxed).on_source(…)`"
)]
pub trait Sources<E: ?Sized> {
    /// The outermost error.
    fn outermost<'e>(&self, error: &'e E) -> &'e (dyn Error + 'static);
}

impl<E: Error + 'static> Sources<E> for Standard {
    fn outermost<'e>(&self, error: &'e E) -> &'e (dyn Error + 'static) {
        error
    }
}

impl<E: AsRef<dyn Error + Send + Sync + 'static>> Sources<E> for Boxed {
    fn outermost<'e>(&self, error: &'e E) -> &'e (dyn Error + 'static) {
        error.as_ref()
    }
}

impl<E: Error + 'static, F: Fn(&E) -> R, R> Sources<E> for F {
    fn outermost<'e>(&self, error: &'e E) -> &'e (dyn Error + 'static) {
        error
    }
}

/// One classifier after another: see [`ClassifyExt::or`].
#[derive(Clone, Copy, Debug)]
pub struct Or<C, D> {
    first: C,
    next: D,
}

impl<E: ?Sized, C: Classify<E>, D: Classify<E>> Classify<E> for Or<C, D> {
    fn classify(&self, error: &E) -> Failure {
        self.first.known(error).unwrap_or_else(|| self.next.classify(error))
    }

    fn known(&self, error: &E) -> Option<Failure> {
        self.first.known(error).or_else(|| self.next.known(error))
    }
}

impl<E: ?Sized, C: Sources<E>, D> Sources<E> for Or<C, D> {
    fn outermost<'e>(&self, error: &'e E) -> &'e (dyn Error + 'static) {
        self.first.outermost(error)
    }
}

/// A classifier that asks about one type of errors first: see [`ClassifyExt::on_source`].
pub struct OnSource<C, F, X> {
    inner: C,
    judge: F,
    asked: PhantomData<fn(&X)>,
}

impl<E: ?Sized, C, F, X, R> Classify<E> for OnSource<C, F, X>
where
    C: Classify<E> + Sources<E>,
    F: Fn(&X) -> R,
    X: Error + 'static,
    R: Judgement,
{
    fn classify(&self, error: &E) -> Failure {
        self.known(error).unwrap_or_else(unknown)
    }

    fn known(&self, error: &E) -> Option<Failure> {
        let ask = |error: &(dyn Error + 'static)| (self.judge)(error.downcast_ref::<X>()?).failure();
        chain::first(self.inner.outermost(error), ask).or_else(|| self.inner.known(error))
    }
}

impl<E: ?Sized, C: Sources<E>, F, X> Sources<E> for OnSource<C, F, X> {
    fn outermost<'e>(&self, error: &'e E) -> &'e (dyn Error + 'static) {
        self.inner.outermost(error)
    }
}

impl<C: Clone, F: Clone, X> Clone for OnSource<C, F, X> {
    fn clone(&self) -> Self {
        OnSource { inner: self.inner.clone(), judge: self.judge.clone(), asked: PhantomData }
    }
}

impl<C: fmt::Debug, F, X> fmt::Debug for OnSource<C, F, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnSource").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// A classifier refined by what an error says of itself; `How` is one of [`refine`].
#[derive(Clone, Copy)]
pub struct Refined<C, F, How> {
    inner: C,
    ask: F,
    how: PhantomData<How>,
}

impl<C, F, How> Refined<C, F, How> {
    fn new(inner: C, ask: F) -> Self {
        Refined { inner, ask, how: PhantomData }
    }
}

impl<E: ?Sized, C: Classify<E>, F, How: refine::Refine<E, F>> Classify<E> for Refined<C, F, How> {
    fn classify(&self, error: &E) -> Failure {
        self.known(error).unwrap_or_else(unknown)
    }

    fn known(&self, error: &E) -> Option<Failure> {
        How::refine(&self.ask, error, self.inner.known(error))
    }
}

impl<E: ?Sized, C: Sources<E>, F, How> Sources<E> for Refined<C, F, How> {
    fn outermost<'e>(&self, error: &'e E) -> &'e (dyn Error + 'static) {
        self.inner.outermost(error)
    }
}

impl<C: fmt::Debug, F, How> fmt::Debug for Refined<C, F, How> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refined").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// The ways in which [`ClassifyExt`] refines a classifier, as types: only to be named.
pub mod refine {
    use super::{Cause, Duration, Failure, Hint, Verdict, unknown};

    /// What becomes of a failure, by the answer of a closure of type `F` to an error `E`.
    pub trait Refine<E: ?Sized, F> {
        /// `known` is what the classifier refined makes of the error.
        fn refine(ask: &F, error: &E, known: Option<Failure>) -> Option<Failure>;
    }

    macro_rules! ways {
        ($($(#[$doc:meta])* $way:ident, $answer:ty, |$known:ident, $said:ident| $body:expr;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub enum $way {}

            impl<E: ?Sized, F: Fn(&E) -> $answer> Refine<E, F> for $way {
                fn refine(ask: &F, error: &E, $known: Option<Failure>) -> Option<Failure> {
                    let $said = ask(error);
                    $body
                }
            }
        )*};
    }

    ways! {
        /// [`retry_if`](super::ClassifyExt::retry_if).
        RetryIf, bool, |known, yes| Some(if yes { retried(known) } else { not_retried(known) });
        /// [`also_if`](super::ClassifyExt::also_if).
        AlsoIf, bool, |known, yes| if yes { Some(retried(known)) } else { known };
        /// [`but_not_if`](super::ClassifyExt::but_not_if).
        ButNotIf, bool, |known, yes| if yes { Some(not_retried(known)) } else { known };
        /// [`ambiguous_if`](super::ClassifyExt::ambiguous_if).
        AmbiguousIf, bool, |known, yes| if yes { Some(known.unwrap_or_else(unknown).ambiguous()) } else { known };
        /// [`retry_after_from`](super::ClassifyExt::retry_after_from).
        RetryAfterFrom, Option<Duration>, |known, wait| match (known, wait.map(Hint::at_least)) {
            (Some(failure), Some(hint)) => Some(failure.hint(hint)),
            (None, Some(hint)) => Some(Verdict::Throttled { hint: Some(hint) }.into()),
            (known, None) => known,
        };
        /// [`cause_from`](super::ClassifyExt::cause_from).
        CauseFrom, Option<Cause>, |known, cause| match cause {
            Some(cause) => Some(known.unwrap_or_else(unknown).cause(cause)),
            None => known,
        };
    }

    /// [`map_failure`](super::ClassifyExt::map_failure).
    #[derive(Clone, Copy, Debug)]
    pub enum MapFailure {}

    impl<E: ?Sized, F: Fn(&E, Failure) -> Failure> Refine<E, F> for MapFailure {
        fn refine(ask: &F, error: &E, known: Option<Failure>) -> Option<Failure> {
            Some(ask(error, known.unwrap_or_else(unknown)))
        }
    }

    fn retried(known: Option<Failure>) -> Failure {
        match known {
            None => Verdict::Transient.into(),
            Some(failure) if failure.verdict() == Verdict::Permanent => {
                failure.with_verdict(Verdict::Transient)
            }
            Some(failure) => failure,
        }
    }

    fn not_retried(known: Option<Failure>) -> Failure {
        known.unwrap_or_else(unknown).with_verdict(Verdict::Permanent)
    }
}
