//! The targets of the proxy, as one worker sees them: which endpoint next, and the connections to each.

mod attempt;
mod connect;
mod counted;
mod h1;
mod h2;
mod pick;
mod pool;

use std::sync::Arc;

use http::HeaderValue;
use relent::http::wire::Reporter;
use relent_config::{Endpoint, Protocol};
use relent_core::{Holds, Instant, TargetHold};

pub(crate) use attempt::{Broken, Parcel, Progress, Sent, send};
pub use connect::{Connector, TcpConnector};
use h2::Shared;
use pick::Rotation;
pub(crate) use pick::{Ended, Tried};
pub(crate) use pool::Lease;
use pool::Pool;

/// What all workers know of an upstream.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) facts: relent_config::Upstream,
    /// How each endpoint is named in logs, and as the authority of HTTP/2 requests.
    pub(crate) authorities: Vec<HeaderValue>,
    /// Whether it has ever answered with its attempt credit.
    pub(crate) reporter: Reporter,
    /// The pauses that its endpoints have asked for.
    pub(crate) holds: Vec<TargetHold>,
}

impl Upstream {
    pub(crate) fn new(name: String, facts: relent_config::Upstream) -> Upstream {
        let authority = |endpoint: &Endpoint| {
            HeaderValue::try_from(endpoint.authority()).expect("a host and a port make a header value")
        };
        let authorities = facts.endpoints.iter().map(authority).collect();
        let holds = facts.endpoints.iter().map(|_| TargetHold::new()).collect();
        Upstream { name, facts, authorities, reporter: Reporter::default(), holds }
    }
}

/// The pauses that the endpoints of an upstream have asked for, as a call sees them that has just been to one of these.
#[derive(Debug)]
pub(crate) struct EndpointHolds<'a> {
    pub(crate) upstream: &'a Upstream,
    /// The endpoint of the attempt in flight.
    pub(crate) endpoint: Option<usize>,
}

impl Holds for EndpointHolds<'_> {
    /// Until the first of the endpoints may be asked again: a retry goes there.
    fn held_until(&self) -> Instant {
        self.upstream.holds.iter().map(Holds::held_until).min().unwrap_or(Instant::ZERO)
    }

    fn hold(&self, until: Instant) {
        if let Some(hold) = self.endpoint.and_then(|endpoint| self.upstream.holds.get(endpoint)) {
            hold.hold(until);
        }
    }
}

/// An upstream's connections and turns in one worker.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) upstream: Arc<Upstream>,
    rotation: Rotation,
    endpoints: Vec<Connections>,
}

/// The connections to one endpoint.
#[derive(Debug)]
enum Connections {
    Http1(Arc<Pool>),
    Http2(Shared),
}

impl Local {
    pub(crate) fn new(upstream: &Arc<Upstream>) -> Local {
        let connections = |_| match upstream.facts.protocol {
            Protocol::Http2 => Connections::Http2(Shared::default()),
            _ => Connections::Http1(Arc::new(Pool::new(upstream.facts.idle_timeout))),
        };
        let endpoints: Vec<_> = upstream.facts.endpoints.iter().map(connections).collect();
        Local { upstream: Arc::clone(upstream), rotation: Rotation::default(), endpoints }
    }

    /// The endpoint for a call's next attempt.
    pub(crate) fn pick(&self, tried: &Tried, now: Instant) -> usize {
        let held = |endpoint: usize| self.upstream.holds[endpoint].held_until() > now;
        self.rotation.pick(self.endpoints.len(), tried, held)
    }

    /// Closes the connections that have been idle for too long.
    pub(crate) fn expire(&self, now: Instant) {
        for connections in &self.endpoints {
            match connections {
                Connections::Http1(pool) => pool.expire(now),
                Connections::Http2(shared) => shared.expire(now, self.upstream.facts.idle_timeout),
            }
        }
    }
}
