//! The authorities that understand attempt credit, and whether each has answered in kind.

use std::fmt;
use std::sync::Arc;

use http::header::HOST;
use http::uri::{Authority, Scheme, Uri};
use http::{HeaderMap, Response};
use relent_core::{Failure, Used};

use super::wire::Reporter;

/// More than any client names by hand.
const MOST_PEERS: usize = 1024;

/// Why a list of peers is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PeersError {
    /// Not a host with an optional port.
    #[error(
        "peer {0:?} is no authority: write a host, with a port where it isn't the scheme's own, as in \"api.example:8080\""
    )]
    NotAnAuthority(String),
    /// Over 1024 of them.
    #[error("more than {MOST_PEERS} peers: name only those that run relent or read its headers")]
    TooMany,
}

/// A list of authorities; clones share what is known of each.
#[derive(Clone, Default)]
pub(crate) struct Peers(Arc<[Peer]>);

/// One of them.
#[derive(Debug)]
pub(super) struct Peer {
    host: String,
    port: Option<u16>,
    reporter: Reporter,
}

impl Peers {
    pub(crate) fn new<P: AsRef<str>>(names: impl IntoIterator<Item = P>) -> Result<Peers, PeersError> {
        let mut peers = Vec::new();
        for name in names {
            if peers.len() == MOST_PEERS {
                return Err(PeersError::TooMany);
            }
            peers.push(Peer::new(name.as_ref())?);
        }
        Ok(Peers(peers.into()))
    }

    /// Whatever a request names, for a client that has one target alone.
    #[cfg(feature = "tonic")]
    pub(crate) fn the_only_target() -> Peers {
        // No authority has an empty host.
        Peers([Peer { host: String::new(), port: None, reporter: Reporter::default() }].into())
    }

    /// Where in the list the target of a request stands: by its URI, or by its `Host` where the URI names none.
    pub(super) fn find(&self, uri: &Uri, headers: &HeaderMap) -> Option<usize> {
        if self.0.first()?.host.is_empty() {
            return Some(0);
        }
        let port = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
        match uri.authority() {
            Some(authority) => self.position(authority, port),
            None => self.position(&headers.get(HOST)?.to_str().ok()?.parse().ok()?, port),
        }
    }

    fn position(&self, authority: &Authority, default_port: u16) -> Option<usize> {
        let port = authority.port_u16().unwrap_or(default_port);
        let same = |peer: &Peer| {
            peer.port.unwrap_or(default_port) == port && peer.host.eq_ignore_ascii_case(authority.host())
        };
        self.0.iter().position(same)
    }

    /// How many extra attempts the peer has made, by the report that came with its answer.
    pub(super) fn used<B>(&self, peer: Option<usize>, response: &Response<B>) -> u32 {
        self.reporter(peer).map_or(0, |reporter| spent(reporter.heard(response.headers())))
    }

    /// What is to be assumed of an attempt that ended without an answer.
    pub(super) fn unheard(&self, peer: Option<usize>, failure: &Failure) -> u32 {
        self.reporter(peer).map_or(0, |reporter| spent(reporter.unheard(failure)))
    }

    fn reporter(&self, peer: Option<usize>) -> Option<&Reporter> {
        self.0.get(peer?).map(|peer| &peer.reporter)
    }
}

/// Of what it was told, which is the bound of the rest.
fn spent(used: Used) -> u32 {
    match used {
        Used::Reported(extra) => extra,
        Used::Missing => u32::MAX,
        Used::Unsaid => 0,
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter()).finish()
    }
}

impl Peer {
    fn new(name: &str) -> Result<Peer, PeersError> {
        let refused = || PeersError::NotAnAuthority(name.to_owned());
        let authority: Authority = name.parse().map_err(|_| refused())?;
        // Nothing but host and port: no user, no dangling colon, no port out of range.
        let port = match name.strip_prefix(authority.host()) {
            Some("") if !name.is_empty() => None,
            Some(rest) => {
                Some(rest.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or_else(refused)?)
            }
            None => return Err(refused()),
        };
        Ok(Peer { host: authority.host().to_owned(), port, reporter: Reporter::default() })
    }
}

#[cfg(test)]
mod tests {
    use relent_core::{Cause, Verdict};

    use super::*;
    use crate::http::wire;

    fn find(peers: &Peers, uri: &str, host: Option<&str>) -> Option<usize> {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(HOST, host.parse().unwrap());
        }
        peers.find(&uri.parse().unwrap(), &headers)
    }

    #[test]
    fn targets_are_found_by_host_and_port() {
        let peers = Peers::new(["a.example:8080", "b.example", "[::1]:443"]).unwrap();
        assert_eq!(find(&peers, "http://A.example:8080/x", None), Some(0));
        assert_eq!(find(&peers, "http://a.example/x", None), None);
        assert_eq!(find(&peers, "http://b.example/x", None), Some(1));
        assert_eq!(find(&peers, "https://b.example:443/", None), Some(1));
        assert_eq!(find(&peers, "http://b.example:443/", None), None);
        assert_eq!(find(&peers, "https://[::1]/", None), Some(2));
        assert_eq!(find(&peers, "/x", Some("b.example")), Some(1));
        assert_eq!(find(&peers, "/x", Some("@")), None);
        assert_eq!(find(&peers, "/x", None), None);
    }

    #[test]
    fn what_is_no_authority_is_refused() {
        for name in
            ["", "http://a.example", "a.example/x", "user@a.example", "a.example:99999", "a b", "a.example:"]
        {
            assert_eq!(Peers::new([name]).unwrap_err(), PeersError::NotAnAuthority(name.into()), "{name}");
        }
        assert_eq!(Peers::new((0..1025).map(|n| format!("h{n}"))).unwrap_err(), PeersError::TooMany);
    }

    #[test]
    fn a_reporter_that_falls_silent_has_used_everything() {
        let peers = Peers::new(["a.example"]).unwrap();
        let silent = Response::new(());
        let mut reporting = Response::new(());
        reporting.headers_mut().insert(wire::ATTEMPTS, "used=1".parse().unwrap());
        let reset = Failure::new(Verdict::Transient).cause(Cause::Reset);
        let refused = Failure::new(Verdict::Unprocessed).cause(Cause::Connect);

        assert_eq!((peers.used(Some(0), &silent), peers.unheard(Some(0), &reset)), (0, 0));
        assert_eq!(peers.used(Some(0), &reporting), 1);
        assert_eq!((peers.used(Some(0), &silent), peers.unheard(Some(0), &reset)), (u32::MAX, u32::MAX));
        assert_eq!(peers.unheard(Some(0), &refused), 0);
        assert_eq!(peers.used(None, &reporting), 0);
    }
}
