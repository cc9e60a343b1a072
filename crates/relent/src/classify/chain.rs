//! Along `source()`: the first error of a chain that is known decides.

use std::error::Error;
use std::io;

use relent_core::{Cause, Failure, Verdict};

use super::Transient;
use crate::circuit::BreakerOpen;
use crate::deadline::DeadlineExceeded;
use crate::error::TimedOut;

/// How many causes deep a chain is followed: one that bites its own tail must not hang a call.
const DEEPEST: usize = 32;

/// The first answer along the chain, from the outermost error inwards.
pub(crate) fn first(
    error: &(dyn Error + 'static),
    ask: impl Fn(&(dyn Error + 'static)) -> Option<Failure>,
) -> Option<Failure> {
    let mut current = Some(error);
    for _ in 0..DEEPEST {
        let error = current?;
        if let Some(failure) = ask(error) {
            return Some(failure);
        }
        current = cause(error);
    }
    None
}

/// The next error inwards. An `io::Error` made around another one names that one's source as its own, and so would hide it.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// What one error of a chain means, its causes left aside.
pub(crate) fn known(error: &(dyn Error + 'static)) -> Option<Failure> {
    if error.is::<Transient>() {
        return Some(Failure::new(Verdict::Transient));
    }
    if error.is::<BreakerOpen>() {
        return Some(Failure::new(Verdict::Rejected));
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
