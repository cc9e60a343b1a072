//! What one call says with each of its attempts, and how it takes the answers.

use std::time::Duration;

use http::{request, response};
use relent_core::{Cause, Failure, GrpcCode, Health, Instant, Launch, Policy};

use super::{previous, status};
use crate::http::grpc_timeout::{self, GRPC_TIMEOUT};
use crate::timer::Timer;

/// When the attempt that carries this has to end: for what stands between the driver and the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptEnds(pub(super) Instant);

/// One call's side of the protocol.
#[derive(Debug)]
pub(crate) struct Speech {
    /// What an attempt has by the policy, if that bounds it.
    usual: Option<Duration>,
    /// The time of the attempt that was sent last.
    told: Option<Told>,
}

/// What a server was told.
#[derive(Clone, Copy, Debug)]
struct Told {
    since: Instant,
    until: Instant,
}

impl Speech {
    pub(crate) fn new(policy: &Policy) -> Speech {
        Speech { usual: policy.attempt_timeout().or(policy.deadline()), told: None }
    }

    /// Writes the attempt's time and number upon a copy of the pristine request.
    ///
    /// The time is that of this attempt, never more than the caller gave, and less what the driver needs to hear the
    /// server's own word that it is up.
    pub(crate) fn stamp(&mut self, request: &mut request::Parts, launch: &Launch) {
        previous::stamp(&mut request.headers, launch.previous);
        self.told = None;
        let Some(time) = launch.time else { return };
        request.extensions.insert(AttemptEnds(launch.ends));
        let below = Launch::time_below_of(time);
        let below = if below.is_zero() { time } else { below };
        let Some(value) = grpc_timeout::format(below) else {
            request.headers.remove(GRPC_TIMEOUT);
            return;
        };
        let since = launch.ends.as_nanos().saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        let since = Instant::from_nanos(since);
        self.told = grpc_timeout::parse(&value).map(|told| Told { since, until: since + told });
        request.headers.insert(GRPC_TIMEOUT, value);
    }

    /// What an answer says of another attempt.
    ///
    /// A server that says DEADLINE_EXCEEDED (or CANCELLED, as tonic's does) when the time that it was told is up speaks of
    /// this attempt's time: that is the attempt's timeout, and the policy decides about it as such. It blames the server
    /// only where that had a fair part of the usual time.
    pub(crate) fn failure<T: Timer>(&self, answer: &response::Parts, timer: &T) -> Option<Failure> {
        let failure = status::failure_of_parts(answer, || timer.wall())?;
        let of_time = matches!(
            failure.kind(),
            Cause::Grpc(GrpcCode::DeadlineExceeded) | Cause::Grpc(GrpcCode::Cancelled)
        );
        let Some(told) = self.told.filter(|_| of_time) else { return Some(failure) };
        let now = timer.now();
        if now < told.until {
            return Some(failure);
        }
        let fair = self.usual.is_none_or(|usual| now.since(told.since) >= usual / 2);
        let health = if fair { Health::Bad } else { Health::Unknown };
        Some(failure.cause(Cause::Timeout).health(health))
    }
}
