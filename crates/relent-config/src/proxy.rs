//! Where the proxy listens, whom it trusts, and what it bears.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use crate::AddressRange;

/// The `[proxy]` table: where the proxy listens, whom it trusts, and what it bears.
///
/// *Defaults*: see [`ProxyConfig::new`] and the constants.
///
/// ```
/// use relent_config::{AccessLog, ProxyConfig};
///
/// let proxy = ProxyConfig::new("127.0.0.1:8080".parse()?);
/// assert_eq!((proxy.max_connections, proxy.admin), (10_000, None));
/// assert_eq!(proxy.access_log, AccessLog::Stdout);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyConfig {
    /// Where requests come in.
    pub listen: SocketAddr,
    /// Where metrics and health are served; `None`: nowhere. Never the same place as `listen`.
    pub admin: Option<SocketAddr>,
    /// Peers whose overrides are obeyed; none by default.
    pub trusted_peers: Vec<AddressRange>,
    /// Threads that serve requests; `None`: one for each core that the process may use.
    pub workers: Option<NonZeroUsize>,
    /// Client connections at once. Beyond it nothing is accepted until one ends.
    pub max_connections: u32,
    /// Requests in flight at once. Beyond it they are answered with 503.
    pub max_requests: u32,
    /// How long a client may take to send the head of a request.
    pub header_timeout: Duration,
    /// How long a client's connection is kept without a request.
    pub idle_timeout: Duration,
    /// How long the body of a request or a response may stand still.
    pub body_timeout: Duration,
    /// How long requests in flight may go on when the proxy is told to end.
    pub grace: Duration,
    /// Where a line for each request goes.
    pub access_log: AccessLog,
    /// Whether responses tell how the call went, in `relent-outcome`.
    pub outcome_header: bool,
    /// Whether `x-envoy-ratelimited` is sent where `relent-stop` is, for Envoys above.
    pub rate_limited_header: bool,
}

impl ProxyConfig {
    /// The most threads.
    pub const MOST_WORKERS: usize = 1024;
    /// Client connections at once, unless the file says otherwise.
    pub const MAX_CONNECTIONS: u32 = 10_000;
    /// Requests in flight at once, unless the file says otherwise.
    pub const MAX_REQUESTS: u32 = 10_000;
    /// The most of both that the file may say.
    pub const MOST_AT_ONCE: u32 = 1_000_000;
    /// Time for the head of a request, unless the file says otherwise.
    pub const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
    /// Time without a request, unless the file says otherwise: longer than most clients and balancers keep one.
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
    /// Time in which a body may stand still, unless the file says otherwise.
    pub const BODY_TIMEOUT: Duration = Duration::from_secs(60);
    /// Time for requests in flight at the end, unless the file says otherwise.
    pub const GRACE: Duration = Duration::from_secs(10);

    /// A proxy that listens there, with every other field at its default.
    pub fn new(listen: SocketAddr) -> ProxyConfig {
        ProxyConfig {
            listen,
            admin: None,
            trusted_peers: Vec::new(),
            workers: None,
            max_connections: ProxyConfig::MAX_CONNECTIONS,
            max_requests: ProxyConfig::MAX_REQUESTS,
            header_timeout: ProxyConfig::HEADER_TIMEOUT,
            idle_timeout: ProxyConfig::IDLE_TIMEOUT,
            body_timeout: ProxyConfig::BODY_TIMEOUT,
            grace: ProxyConfig::GRACE,
            access_log: AccessLog::default(),
            outcome_header: false,
            rate_limited_header: false,
        }
    }
}

/// Where the access log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessLog {
    /// Nowhere.
    None,
    /// To the standard output. The default.
    #[default]
    Stdout,
    /// To the standard error output.
    Stderr,
    /// To the end of a file.
    File(PathBuf),
}

impl AccessLog {
    /// Reads `none`, `stdout`, `stderr`, or a path; a file of one of these names is meant by `./none` and the like.
    pub fn parse(text: &str) -> AccessLog {
        match text {
            "none" => AccessLog::None,
            "stdout" => AccessLog::Stdout,
            "stderr" => AccessLog::Stderr,
            path => AccessLog::File(PathBuf::from(path)),
        }
    }
}

/// Whether two listeners can't both have their address: the same port on the same host, or on all hosts.
pub(crate) fn collide(a: SocketAddr, b: SocketAddr) -> bool {
    let everywhere = |x: SocketAddr, other: SocketAddr| {
        // `[::]` takes IPv4 too, where the system's sockets are dual-stack.
        x.ip().is_unspecified() && (x.is_ipv6() || other.is_ipv4())
    };
    // Port 0 asks for any free port.
    a.port() == b.port()
        && a.port() != 0
        && (a.ip().to_canonical() == b.ip().to_canonical() || everywhere(a, b) || everywhere(b, a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_collides() {
        let of = |a: &str, b: &str| {
            let (a, b) = (a.parse().unwrap(), b.parse().unwrap());
            assert_eq!(collide(a, b), collide(b, a));
            collide(a, b)
        };
        assert!(of("127.0.0.1:80", "127.0.0.1:80"));
        assert!(of("127.0.0.1:80", "0.0.0.0:80"));
        assert!(of("127.0.0.1:80", "[::]:80"));
        assert!(of("127.0.0.1:80", "[::ffff:127.0.0.1]:80"));
        assert!(!of("127.0.0.1:80", "127.0.0.2:80"));
        assert!(!of("127.0.0.1:80", "127.0.0.1:81"));
        assert!(!of("0.0.0.0:80", "[::1]:80"));
        assert!(!of("127.0.0.1:0", "127.0.0.1:0"));
    }
}
