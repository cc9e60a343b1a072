//! From an error to what it means for repeating.

use std::error::Error;
use std::fmt;
use std::io;

use relent_core::{Cause, Failure, Verdict};

use crate::deadline::DeadlineExceeded;
use crate::error::TimedOut;

/// Says what an error means for repeating the operation.
///
/// Closures classify: `|e: &MyError| Verdict::Transient`, or one that answers a whole [`Failure`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not know what a `{E}` means for repeating",
    note = "implement `std::error::Error` for it, or say what it means: `retry.classify(|error| …)`; for `anyhow::Error` and boxed errors: `retry.classify(relent::Boxed)`"
)]
pub trait Classify<E: ?Sized> {
    /// What `error` means.
    fn classify(&self, error: &E) -> Failure;
}

impl<E: ?Sized, F, R> Classify<E> for F
where
    F: Fn(&E) -> R,
    R: Into<Failure>,
{
    fn classify(&self, error: &E) -> Failure {
        self(error).into()
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
        classify_chain(error)
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
        classify_chain(error.as_ref())
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

/// How many causes deep a chain is followed: one that bites its own tail must not hang a call.
const DEEPEST: usize = 32;

/// The first error of the chain that is known decides; none is, so it is permanent.
pub(crate) fn classify_chain(error: &(dyn Error + 'static)) -> Failure {
    let mut current = Some(error);
    for _ in 0..DEEPEST {
        let Some(error) = current else { break };
        if let Some(failure) = known(error) {
            return failure;
        }
        current = cause(error);
    }
    Failure::new(Verdict::Permanent)
}

/// The next error inwards. An `io::Error` made around another one names that one's source as its own, and so would hide it.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

fn known(error: &(dyn Error + 'static)) -> Option<Failure> {
    if error.is::<Transient>() {
        return Some(Failure::new(Verdict::Transient));
    }
    if error.is::<TimedOut>() {
        return Some(Failure::timed_out());
    }
    if let Some(exceeded) = error.downcast_ref::<DeadlineExceeded>() {
        return Some(exceeded.failure());
    }
    #[cfg(feature = "http")]
    if let Some(failure) = crate::http::known_error(error) {
        return Some(failure);
    }
    error.downcast_ref::<io::Error>().and_then(known_io)
}

/// What an I/O error says by its kind. `None` where the kind says nothing and a cause inside may.
fn known_io(error: &io::Error) -> Option<Failure> {
    use io::ErrorKind as Kind;
    let transient = Failure::new(Verdict::Transient);
    match error.kind() {
        Kind::ConnectionRefused | Kind::HostUnreachable | Kind::NetworkUnreachable | Kind::NetworkDown => {
            Some(Failure::new(Verdict::Unprocessed).cause(Cause::Connect))
        }
        Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::BrokenPipe
        | Kind::NotConnected
        | Kind::UnexpectedEof => Some(transient.cause(Cause::Reset).ambiguous()),
        // A socket's own timeout is `WouldBlock` on Unix.
        Kind::TimedOut | Kind::WouldBlock => Some(transient.cause(Cause::Timeout).ambiguous()),
        Kind::Interrupted => Some(transient.ambiguous()),
        Kind::Other => None,
        _ if error.get_ref().is_some() => None,
        _ => Some(Failure::new(Verdict::Permanent)),
    }
}
