//! tonic's `Status`: what it means, what it is made of, and what a server adds to it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use ::tonic::{Code, ConnectError, Status, TimeoutExpired};
use http::Response;
use relent_core::{Cause, Failure, GrpcCode, StopReason, Verdict};

use crate::classify::{first_in_chain, known_error as known_elsewhere};
use crate::error::RetryError;
use crate::grpc::{self, Pushback, code_of_http};
use crate::http::Stopped;

/// For handlers: how many attempts of this call went before, by the client's word.
///
/// ```
/// use relent::adapter::tonic::previous_attempts;
///
/// let mut request = tonic::Request::new("a question");
/// assert_eq!(previous_attempts(&request), 0);
/// request.metadata_mut().insert("grpc-previous-rpc-attempts", "2".parse()?);
/// assert_eq!(previous_attempts(&request), 2);
/// # Ok::<(), tonic::metadata::errors::InvalidMetadataValue>(())
/// ```
pub fn previous_attempts<M>(request: &::tonic::Request<M>) -> u32 {
    grpc::previous_attempts(request.metadata().as_ref())
}

/// For handlers: a failure that asks the client for a wait, or for no retry.
///
/// ```
/// use std::time::Duration;
/// use relent::adapter::tonic::with_pushback;
/// use relent::grpc::Pushback;
/// use tonic::Status;
///
/// let full = Status::resource_exhausted("the queue is full");
/// let full = with_pushback(full, Pushback::After(Duration::from_millis(300)));
/// assert_eq!(full.metadata().get("grpc-retry-pushback-ms").unwrap(), "300");
/// ```
#[must_use]
pub fn with_pushback(mut status: Status, pushback: Pushback) -> Status {
    pushback.write(status.metadata_mut().as_mut());
    status
}

/// Why a call that failed was not repeated (once more); `None` for a `Status` that didn't come through
/// [`TonicRetryLayer`](super::TonicRetryLayer), or out of a message stream.
pub fn stopped(status: &Status) -> Option<&Stopped> {
    status.source()?.downcast_ref::<GaveUp>().map(|gave_up| &gave_up.stopped)
}

/// What stands behind the `Status` of a call that was given up.
#[derive(Debug)]
struct GaveUp {
    stopped: Stopped,
    /// The last error, where no attempt was answered.
    error: Option<Box<dyn Error + Send + Sync>>,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stopped { reason, attempts, .. } = self.stopped;
        let plural = if attempts == 1 { "" } else { "s" };
        write!(f, "gave up after {attempts} attempt{plural}: {reason}")
    }
}

impl Error for GaveUp {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.as_ref().map(|error| &**error as _)
    }
}

/// The status of a call that ended with a response after all; `None` where it is not given up.
pub(super) fn of_response<B>(response: &Response<B>) -> Option<Status> {
    let stopped = *response.extensions().get::<Stopped>()?;
    let mut status = Status::from_header_map(response.headers()).unwrap_or_else(|| {
        let code = code_of_http(response.status());
        // A 200 that is no answer of gRPC.
        let code = if code == GrpcCode::Ok { GrpcCode::Unknown } else { code };
        let message = format!("the answer is no gRPC: HTTP status {}", response.status());
        Status::new(Code::from_i32(code.number().into()), message)
    });
    status.set_source(Arc::new(GaveUp { stopped, error: None }));
    Some(status)
}

/// The status of a call that no attempt has an answer for.
pub(super) fn of_error<E: Error + Send + Sync + 'static>(error: RetryError<E>) -> Status {
    let stopped = Stopped {
        reason: error.reason(),
        attempts: error.attempts(),
        ambiguous: error.ambiguous(),
        elapsed: error.elapsed(),
        hint: error.hint(),
        without_body: false,
    };
    let message = error.to_string();
    // tonic takes its own timeout for a cancellation.
    let expired = |error: &(dyn Error + 'static)| error.is::<TimeoutExpired>().then(Failure::timed_out);
    let timed_out = error.last_timed_out() || first_in_chain(&error, expired).is_some();
    let mut status = if error.reason() == StopReason::DeadlineExceeded || timed_out {
        Status::deadline_exceeded(message)
    } else if error.reason() == StopReason::BreakerOpen && error.last().is_none() {
        Status::unavailable(message)
    } else {
        let known = Status::from_error(Box::new(error));
        let mut status = Status::new(known.code(), known.message());
        *status.metadata_mut() = known.metadata().clone();
        status.set_source(Arc::new(GaveUp { stopped, error: Some(Box::new(known)) }));
        return status;
    };
    status.set_source(Arc::new(GaveUp { stopped, error: Some(Box::new(error)) }));
    status
}

/// What tonic's own errors mean.
pub(crate) fn known_error(error: &(dyn Error + 'static)) -> Option<Failure> {
    if error.is::<ConnectError>() {
        return Some(Failure::new(Verdict::Unprocessed).cause(Cause::Connect));
    }
    if error.is::<TimeoutExpired>() {
        return Some(Failure::timed_out());
    }
    error.downcast_ref::<Status>().map(of_status)
}

/// One that has a cause was made here, of that cause; another is the server's.
fn of_status(status: &Status) -> Failure {
    let elsewhere =
        |error: &(dyn Error + 'static)| if error.is::<Status>() { None } else { known_elsewhere(error) };
    if let Some(failure) = status.source().and_then(|source| first_in_chain(source, elsewhere)) {
        return failure;
    }
    let number = u64::try_from(i32::from(status.code())).unwrap_or(u64::MAX);
    let code = GrpcCode::numbered(number).unwrap_or(GrpcCode::Unknown);
    grpc::failure_of_code(code, status.metadata().as_ref()).unwrap_or(Failure::new(Verdict::Permanent))
}
