//! What is told of a call: plain facts, from which metrics count and the access log writes.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::{Method, Version};
use relent_core::{Cause, StopReason};

/// A call that has ended, its response's body included.
#[derive(Debug)]
pub(crate) struct Call {
    /// Index of the route's target (upstream and policy) in the plan; `None`: refused before a route was found.
    pub(crate) target: Option<usize>,
    /// The status that the client was answered with; 499 if it left before.
    pub(crate) status: u16,
    /// From the request's head to the end of the response.
    pub(crate) took: Duration,
    /// Attempts launched, free repeats included.
    pub(crate) attempts: u32,
    /// Why no further attempt was made; `None`: the request was refused before any.
    pub(crate) stop: Option<StopReason>,
    /// Whether any attempt may have been executed without an answer.
    pub(crate) ambiguous: bool,
    /// Whether the response broke off after its head.
    pub(crate) broken: bool,
}

/// An attempt that has ended, at its response's head or by its failure.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// From 1, as stamped.
    pub(crate) number: u32,
    /// Index of the endpoint in the upstream; `None`: none was picked.
    pub(crate) endpoint: Option<usize>,
    pub(crate) outcome: Outcome,
    /// Whether any byte of it was written to the endpoint.
    pub(crate) wrote: bool,
    /// Whether its connection had served others before.
    pub(crate) reused: bool,
    /// The wait before it.
    pub(crate) waited: Duration,
    pub(crate) took: Duration,
}

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The head of a response.
    Status(u16),
    /// No response.
    Failed(Cause),
    /// The client left, or the call's time was up.
    GivenUp,
}

/// What the access log wants beside a [`Call`]; only made where there is a log.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) time: SystemTime,
    pub(crate) client: Option<SocketAddr>,
    pub(crate) method: Method,
    pub(crate) host: Option<String>,
    /// Path and query, cut to a bound.
    pub(crate) path: String,
    pub(crate) version: Version,
    /// Bytes of the request's body that were read.
    pub(crate) bytes_in: u64,
    /// Bytes of the response's body that were handed on.
    pub(crate) bytes_out: u64,
    pub(crate) attempts: Vec<Attempt>,
    /// What was wrong, where the proxy itself answered.
    pub(crate) error: Option<String>,
}

/// What the access log says of bytes that were refused before they were a request.
#[derive(Debug)]
pub(crate) struct Unread {
    pub(crate) time: SystemTime,
    pub(crate) client: Option<SocketAddr>,
    /// What was wrong.
    pub(crate) error: String,
}
