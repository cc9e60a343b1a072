//! What the errors of HTTP clients mean for another attempt: hyper, h2, hyper-util and reqwest.
//!
//! The question behind all of it is whether a byte of the request may have been read. Only what provably never left
//! (no connection, a request handed back, a stream refused) may be repeated whatever it does; everything else that ended
//! without an answer is ambiguous.

use std::error::Error;
use std::io;

#[cfg(feature = "hyper")]
use relent_core::Cause;
use relent_core::{Failure, Verdict};

/// What one error of a chain means, its causes left aside unless they settle it. `None`: not known here.
pub(crate) fn known_error(error: &(dyn Error + 'static)) -> Option<Failure> {
    // `io::Error` hides what it wraps: its `source()` is the source of that.
    if let Some(inside) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        return known_error(inside);
    }
    if error.is::<http::Error>() {
        return Some(refused_here());
    }
    #[cfg(feature = "tonic")]
    if let Some(failure) = crate::adapter::tonic::known_error(error) {
        return Some(failure);
    }
    #[cfg(feature = "reqwest-middleware")]
    if let Some(error) = error.downcast_ref::<reqwest_middleware::Error>() {
        return crate::adapter::reqwest_middleware::known_error(error);
    }
    #[cfg(feature = "reqwest")]
    if let Some(error) = error.downcast_ref::<reqwest::Error>() {
        return reqwest_error(error);
    }
    #[cfg(feature = "hyper-util")]
    if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
        return legacy_error(error);
    }
    #[cfg(feature = "hyper")]
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        return Some(hyper_error(error));
    }
    #[cfg(feature = "hyper")]
    if let Some(error) = error.downcast_ref::<h2::Error>() {
        return Some(h2_error(error));
    }
    None
}

/// A request that nobody could send as it was: nothing left this process.
fn refused_here() -> Failure {
    Failure::new(Verdict::Rejected)
}

/// No connection came about, or it was gone before the first byte.
#[cfg(feature = "hyper")]
fn never_sent() -> Failure {
    Failure::new(Verdict::Unprocessed).cause(Cause::Connect)
}

/// The connection broke after bytes may have been read.
#[cfg(feature = "hyper")]
fn broke_off() -> Failure {
    Failure::new(Verdict::Transient).cause(Cause::Reset).ambiguous()
}

#[cfg(feature = "hyper")]
fn hyper_error(error: &hyper::Error) -> Failure {
    // A canceled message was never taken by the connection, and a closed one takes none.
    if error.is_canceled() || error.is_closed() {
        return never_sent();
    }
    // The caller's own body failed, or the runtime dropped the connection's task: part of it may have been sent.
    if error.is_user() {
        return Failure::new(Verdict::Permanent).ambiguous();
    }
    if error.is_timeout() {
        return Failure::timed_out();
    }
    let source = error.source();
    if let Some(error) = source.and_then(|source| source.downcast_ref::<h2::Error>()) {
        return h2_error(error);
    }
    match source.and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(error) if error.kind() == io::ErrorKind::TimedOut => Failure::timed_out(),
        // Also an answer that is no HTTP: whoever garbled it had the request.
        _ => broke_off(),
    }
}

#[cfg(feature = "hyper")]
fn h2_error(error: &h2::Error) -> Failure {
    use relent_core::Health;
    // RFC 9113 §6.8: streams above the last id that a GOAWAY names were not processed. A server that drains is well.
    if error.is_go_away() && error.is_remote() {
        return Failure::new(Verdict::Unprocessed).health(Health::Unknown).free();
    }
    // RFC 9113 §8.7: nothing was done before the stream was refused.
    if error.is_reset() && error.is_remote() && error.reason() == Some(h2::Reason::REFUSED_STREAM) {
        return Failure::new(Verdict::Unprocessed);
    }
    broke_off()
}

#[cfg(feature = "hyper-util")]
fn legacy_error(error: &hyper_util::client::legacy::Error) -> Option<Failure> {
    if error.is_connect() {
        return Some(never_sent());
    }
    // Without a cause it is the client itself that won't: a relative URI, a method or version it can't speak.
    if error.source().is_none() { Some(refused_here()) } else { None }
}

#[cfg(feature = "reqwest")]
fn reqwest_error(error: &reqwest::Error) -> Option<Failure> {
    if error.is_builder() {
        return Some(refused_here());
    }
    if let Some(status) = error.status() {
        return super::status::failure_of_status(status);
    }
    // Asked in this order: a connect timeout is both.
    if error.is_connect() {
        return Some(never_sent());
    }
    if error.is_timeout() {
        return Some(Failure::timed_out());
    }
    // Too many redirects: each was answered, and will be again.
    if error.is_redirect() {
        return Some(Failure::new(Verdict::Permanent).health(relent_core::Health::Good));
    }
    None
}
