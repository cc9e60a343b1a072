//! A request as the proxy understands it: what the hop before said to this one is read and taken out.

use std::time::Duration;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Uri, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use relent::http::{grpc_timeout, wire};

use super::overrides::Overrides;
use crate::fields::{self, Seen};
use crate::respond::Refusal;

/// A request, without what ended at this hop.
pub(crate) struct Inbound {
    /// `None` once it is on its way.
    pub(crate) head: Option<Head>,
    /// `None` once it is on its way.
    pub(crate) body: Option<Incoming>,
    /// Whether several `cookie` fields may be there.
    pub(crate) has_cookie: bool,
    /// The client reads trailers.
    pub(crate) trailers: bool,
    pub(crate) grpc: bool,
    pub(crate) upgrade: Option<Upgrade>,
    /// Attempt credit.
    pub(crate) granted: Option<u32>,
    /// The attempt's number at the hop before.
    pub(crate) number: Option<u32>,
    /// The time that the hop before gives.
    pub(crate) time: Option<Duration>,
    /// What a trusted peer orders.
    pub(crate) overrides: Overrides,
}

/// What a request asks for.
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
}

/// A wish to speak something else on the connection.
pub(crate) struct Upgrade {
    pub(crate) protocol: HeaderValue,
    pub(crate) client: OnUpgrade,
}

impl Inbound {
    /// `trusted`: the peer may override what the policy says.
    pub(crate) fn read(mut request: Request<Incoming>, trusted: bool) -> Result<Inbound, Refusal> {
        if request.method() == Method::CONNECT {
            return Err(Refusal::NoTunnels);
        }
        let seen = Seen::of(request.headers());
        let upgrade = if seen.has_upgrade() { upgrade(&mut request) } else { None };
        let (parts, body) = request.into_parts();
        let mut headers = parts.headers;
        if parts.version == Version::HTTP_2 {
            one_host(&parts.uri, &headers)?;
        }
        let trailers = seen.has_te() && fields::lists(&headers, &header::TE, "trailers");
        fields::strip(&mut headers, seen);
        let mut inbound = Inbound {
            has_cookie: seen.has_cookie(),
            trailers,
            grpc: seen.has_content_type() && grpc_timeout::is_grpc(&headers),
            upgrade,
            granted: None,
            number: None,
            time: None,
            overrides: Overrides::default(),
            head: None,
            body: Some(body),
        };
        if trusted && seen.has_control() {
            inbound.overrides = Overrides::read(&headers);
        }
        inbound.listen(&mut headers, seen);
        inbound.head = Some(Head { method: parts.method, uri: parts.uri, headers });
        Ok(inbound)
    }

    /// Hears what the hop before says to this one, and takes it out.
    fn listen(&mut self, headers: &mut HeaderMap, seen: Seen) {
        if seen.has_credit() {
            self.granted = wire::granted(headers);
            wire::forget(headers);
        }
        if seen.has_number() {
            self.number = wire::attempt_number(headers);
            headers.remove(wire::ATTEMPT_COUNT);
        }
        if seen.has_time() {
            self.time = wire::time_given(headers);
            headers.remove(wire::EXPECTED_TIMEOUT);
        }
        if self.grpc && seen.has_grpc_timeout() {
            let told = grpc_timeout::time_given(headers);
            self.time = match (self.time, told) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        if seen.has_control() {
            fields::strip_controls(headers);
        }
    }
}

impl Head {
    /// The host that is meant, its port aside.
    pub(crate) fn host(&self) -> Option<&str> {
        if let Some(host) = self.uri.host() {
            return Some(host);
        }
        let text = self.headers.get(header::HOST)?.to_str().ok()?;
        match text.rfind(':') {
            // Not the colons inside of `[::1]`.
            Some(colon) if !text[colon..].contains(']') => Some(&text[..colon]),
            _ => Some(text),
        }
    }
}

/// An upgrade that the client asks for on this connection: HTTP/1.1 alone has that.
fn upgrade(request: &mut Request<Incoming>) -> Option<Upgrade> {
    if request.version() != Version::HTTP_11
        || !fields::lists(request.headers(), &header::CONNECTION, "upgrade")
    {
        return None;
    }
    let protocol = request.headers().get(header::UPGRADE)?.clone();
    // HTTP/2 is spoken by prior knowledge (RFC 9113 §3.3); the upgrade to it is gone from the standard.
    if protocol.as_bytes().eq_ignore_ascii_case(b"h2c") {
        return None;
    }
    Some(Upgrade { protocol, client: hyper::upgrade::on(request) })
}

/// RFC 9113 §8.3.1: a `host` beside `:authority` must say the same.
fn one_host(uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(Refusal::BadRequest("there are two host fields"));
    }
    match (uri.authority(), host) {
        (Some(authority), Some(host))
            if !host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) =>
        {
            Err(Refusal::BadRequest("host and :authority differ"))
        }
        (None, None) => Err(Refusal::BadRequest("there is no :authority")),
        _ => Ok(()),
    }
}
