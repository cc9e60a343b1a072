//! A target of the proxy.

use std::time::Duration;

use crate::Endpoint;

/// An `[upstream.NAME]` table: a target of the proxy, and how its connections are kept.
///
/// *Defaults*: HTTP/1.1; [`IDLE_TIMEOUT`](Upstream::IDLE_TIMEOUT); [`CONNECT_TIMEOUT`](Upstream::CONNECT_TIMEOUT); its
/// responses are trusted; its requests are stamped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upstream {
    /// Where it is reached; at least one, none twice.
    pub endpoints: Vec<Endpoint>,
    /// What is spoken to it.
    pub protocol: Protocol,
    /// How long a connection is kept unused; keep it below the upstream's own, or it closes first.
    pub idle_timeout: Duration,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// Whether stop marks and credit reports of its responses are believed.
    pub trust: bool,
    /// Whether requests to it carry attempt number, attempt credit and time left.
    pub stamp: bool,
}

impl Upstream {
    /// How long a connection is kept unused, unless the file says otherwise.
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
    /// How long a connection may take to come about, unless the file says otherwise.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
    /// The most endpoints of one upstream.
    pub const MOST_ENDPOINTS: usize = 1000;

    /// An upstream at these endpoints, with every other field at its default.
    pub fn new(endpoints: Vec<Endpoint>) -> Upstream {
        Upstream {
            endpoints,
            protocol: Protocol::default(),
            idle_timeout: Upstream::IDLE_TIMEOUT,
            connect_timeout: Upstream::CONNECT_TIMEOUT,
            trust: true,
            stamp: true,
        }
    }
}

/// What is spoken to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/1.1. The default.
    #[default]
    Http1,
    /// HTTP/2 without TLS, by prior knowledge (RFC 9113 §3.3).
    Http2,
}
