//! What a call speaks over HTTP: what it writes upon each attempt, and what an answer means. The driver is one for all.

use std::time::Duration;

use http::{HeaderMap, request, response};
use relent_core::{Failure, Launch};

use super::status::failure_of_response;
use crate::timer::Timer;

/// One call's language.
#[derive(Debug)]
pub(crate) enum Protocol {
    /// Statuses from 400 on are failures.
    Http,
    /// Failures have a `grpc-status`, and time is told as `grpc-timeout`.
    #[cfg(feature = "grpc")]
    Grpc(crate::grpc::Speech),
}

impl Protocol {
    /// The time that the caller gives in the request itself.
    pub(super) fn time_given(&self, headers: &HeaderMap) -> Option<Duration> {
        match self {
            #[cfg(feature = "grpc")]
            Protocol::Grpc(_) => super::grpc_timeout::time_given(headers),
            Protocol::Http => {
                let _ = headers;
                None
            }
        }
    }

    /// Writes upon an attempt what everybody who speaks the protocol understands.
    pub(super) fn stamp(&mut self, request: &mut request::Parts, launch: &Launch) {
        match self {
            #[cfg(feature = "grpc")]
            Protocol::Grpc(speech) => speech.stamp(request, launch),
            Protocol::Http => {
                let _ = (request, launch);
            }
        }
    }

    /// What an answer says of another attempt; `None`: it is no failure.
    pub(super) fn failure<T: Timer>(&self, answer: &response::Parts, timer: &T) -> Option<Failure> {
        match self {
            #[cfg(feature = "grpc")]
            Protocol::Grpc(speech) => speech.failure(answer, timer),
            Protocol::Http if answer.status.as_u16() < 400 => None,
            Protocol::Http => failure_of_response(answer.status, &answer.headers, timer.wall()),
        }
    }
}
