//! From an error to what it means for repeating.

mod chain;
mod compose;
mod handle;

#[cfg(feature = "tonic")]
pub(crate) use chain::first as first_in_chain;
#[cfg(any(feature = "reqwest-middleware", feature = "tonic"))]
pub(crate) use chain::known as known_error;
pub use compose::{ClassifyExt, OnSource, Or, Refined, Sources, refine};

use std::error::Error;
use std::fmt;

use relent_core::{Failure, Verdict};

/// Says what an error means for repeating the operation.
///
/// Closures classify: `|e: &MyError| Verdict::Transient`, or one that answers a whole [`Failure`], or an `Option` of either:
/// `None` says that it does not know the error, and leaves it to the next one ([`ClassifyExt::or`]). What nobody knows is
/// not retried.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not know what a `{E}` means for repeating",
    note = "implement `std::error::Error` for it, or say what it means: `retry.classify(|error| …)`; for `anyhow::Error` and boxed errors: `retry.classify(relent::Boxed)`"
)]
pub trait Classify<E: ?Sized> {
    /// What `error` means.
    fn classify(&self, error: &E) -> Failure;

    /// The same, or `None` if this classifier does not know the error: then another one may. By default it knows them all.
    fn known(&self, error: &E) -> Option<Failure> {
        Some(self.classify(error))
    }
}

/// What a closure that classifies may answer: a [`Verdict`], a [`Failure`], or an `Option` of either.
pub trait Judgement {
    /// The failure; `None`: not known.
    fn failure(self) -> Option<Failure>;
}

impl Judgement for Verdict {
    fn failure(self) -> Option<Failure> {
        Some(self.into())
    }
}

impl Judgement for Failure {
    fn failure(self) -> Option<Failure> {
        Some(self)
    }
}

impl<J: Judgement> Judgement for Option<J> {
    fn failure(self) -> Option<Failure> {
        self.and_then(J::failure)
    }
}

/// An error that nobody knows is not retried.
fn unknown() -> Failure {
    Failure::new(Verdict::Permanent)
}

impl<E: ?Sized, F, R> Classify<E> for F
where
    F: Fn(&E) -> R,
    R: Judgement,
{
    fn classify(&self, error: &E) -> Failure {
        self.known(error).unwrap_or_else(unknown)
    }

    fn known(&self, error: &E) -> Option<Failure> {
        self(error).failure()
    }
}

/// Knows the errors of the standard library, of relent's adapters and [`Transient`], however deeply wrapped: it walks
/// `source()`. An error it does not know is not retryable.
///
/// ```
/// use relent::{Classify, Standard, Verdict};
/// use std::io::{Error, ErrorKind};
///
/// let busy = Error::from(ErrorKind::TimedOut);
/// assert_eq!(Standard.classify(&busy).verdict(), Verdict::Transient);
/// let missing = Error::from(ErrorKind::NotFound);
/// assert_eq!(Standard.classify(&missing).verdict(), Verdict::Permanent);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standard;

impl<E: Error + 'static> Classify<E> for Standard {
    fn classify(&self, error: &E) -> Failure {
        self.known(error).unwrap_or_else(unknown)
    }

    fn known(&self, error: &E) -> Option<Failure> {
        chain::first(error, chain::known)
    }
}

/// [`Standard`] for boxed errors: `anyhow::Error`, `Box<dyn Error + Send + Sync>` and whatever else lends a
/// `dyn Error`.
///
/// ```
/// use relent::{Boxed, Classify, Verdict};
///
/// let error: Box<dyn std::error::Error + Send + Sync> = "unknown".into();
/// assert_eq!(Boxed.classify(&error).verdict(), Verdict::Permanent);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Boxed;

impl<E: AsRef<dyn Error + Send + Sync + 'static>> Classify<E> for Boxed {
    fn classify(&self, error: &E) -> Failure {
        self.known(error).unwrap_or_else(unknown)
    }

    fn known(&self, error: &E) -> Option<Failure> {
        chain::first(error.as_ref(), chain::known)
    }
}

/// Marks an error as transient, for operations whose errors relent does not know.
///
/// ```
/// use relent::{Policy, Retry, Transient};
///
/// let retry = Retry::new(Policy::constant(std::time::Duration::ZERO).build()?);
/// let mut calls = 0;
/// let result = retry.run_blocking(|_| {
///     calls += 1;
///     if calls < 3 { Err(Transient::new(std::fmt::Error)) } else { Ok(calls) }
/// });
/// assert_eq!(result.ok(), Some(3));
/// # Ok::<(), relent::PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Transient(Box<dyn Error + Send + Sync>);

impl Transient {
    /// `error`, worth another attempt.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Transient {
        Transient(error.into())
    }

    /// The error itself.
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }
}

impl fmt::Display for Transient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Transient {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}
