//! Where the proxy listens, and whom it trusts.

use std::net::SocketAddr;

use crate::AddressRange;

/// The `[proxy]` table: where the proxy listens, and whom it trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyConfig {
    /// Where requests come in.
    pub listen: SocketAddr,
    /// Where metrics and health are served; `None`: nowhere. Never the same place as `listen`.
    pub admin: Option<SocketAddr>,
    /// Peers whose overrides are obeyed; none by default.
    pub trusted_peers: Vec<AddressRange>,
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
