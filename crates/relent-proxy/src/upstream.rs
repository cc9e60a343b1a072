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
use relent_core::Instant;

pub(crate) use attempt::{Broken, Parcel, Progress, Sent, send};
pub use connect::{Connector, TcpConnector};
use h2::Shared;
use pick::Rotation;
pub(crate) use pick::Tried;
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
}

impl Upstream {
    pub(crate) fn new(name: String, facts: relent_config::Upstream) -> Upstream {
        let authority = |endpoint: &Endpoint| {
            HeaderValue::try_from(endpoint.authority()).expect("a host and a port make a header value")
        };
        let authorities = facts.endpoints.iter().map(authority).collect();
        Upstream { name, facts, authorities, reporter: Reporter::default() }
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
    pub(crate) fn pick(&self, tried: &Tried) -> usize {
        self.rotation.pick(self.endpoints.len(), tried)
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
