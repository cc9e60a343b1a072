//! A request as it is sent on: the same for all attempts but for what is stamped upon each.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Scheme};
use http::{Method, Request, Uri, Version, uri};
use relent::http::grpc_timeout::{self, GRPC_TIMEOUT};
use relent::http::wire::Stamp;
use relent_config::Protocol;
use relent_core::Launch;

use super::inbound::{Head, Inbound};
use crate::respond::Refusal;
use crate::upstream::Upstream;

/// Retries so far, in a gRPC request (gRFC A6).
const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");
/// Fields that an attempt may be stamped with.
const MOST_STAMPS: usize = 5;

/// What every attempt is made from: no attempt sees what was stamped upon another.
pub(crate) struct Pristine {
    method: Method,
    uri: Uri,
    version: Version,
    /// `None` once the first attempt has them.
    headers: Option<HeaderMap>,
    /// The fields again, once the map is on its way with the first attempt: for most calls the last that is seen of them,
    /// and cheaper than a second map.
    kept: Vec<(HeaderName, HeaderValue)>,
    /// Whether attempts are told their number, time and credit.
    stamp: bool,
    grpc: bool,
}

impl Pristine {
    /// Takes the head of `inbound`, and puts it in the form of the upstream's protocol.
    pub(crate) fn new(inbound: &mut Inbound, upstream: &Upstream) -> Result<Pristine, Refusal> {
        let Head { method, mut uri, mut headers } = inbound.head.take().expect("a head is taken once");
        let version = match upstream.facts.protocol {
            Protocol::Http2 => {
                in_http2(&mut uri, &mut headers, inbound, upstream)?;
                Version::HTTP_2
            }
            _ => {
                in_http1(&mut uri, &mut headers, inbound);
                Version::HTTP_11
            }
        };
        let (stamp, grpc) = (upstream.facts.stamp, inbound.grpc);
        Ok(Pristine { method, uri, version, headers: Some(headers), kept: Vec::new(), stamp, grpc })
    }

    /// One attempt's request.
    pub(crate) fn attempt<B>(&mut self, launch: &Launch, stamp: &Stamp, body: B) -> Request<B> {
        let mut headers = match self.headers.take() {
            Some(headers) => {
                self.kept = Vec::with_capacity(headers.len());
                self.kept.extend(headers.iter().map(|(name, value)| (name.clone(), value.clone())));
                headers
            }
            None => self.again(),
        };
        if self.stamp {
            stamp.stamp(&mut headers, launch);
        }
        if self.grpc {
            self.stamp_grpc(&mut headers, launch);
        }
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = self.version;
        *request.headers_mut() = headers;
        request
    }

    /// The fields of another attempt.
    fn again(&self) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.kept.len() + MOST_STAMPS);
        for (name, value) in &self.kept {
            headers.append(name.clone(), value.clone());
        }
        headers
    }

    fn stamp_grpc(&self, headers: &mut HeaderMap, launch: &Launch) {
        match launch.time_below().map(grpc_timeout::format) {
            Some(Some(timeout)) => headers.insert(GRPC_TIMEOUT, timeout),
            Some(None) => headers.remove(GRPC_TIMEOUT),
            None => None,
        };
        if self.stamp && launch.number > 1 {
            headers.insert(PREVIOUS_ATTEMPTS, HeaderValue::from(launch.number - 1));
        }
    }
}

fn in_http1(uri: &mut Uri, headers: &mut HeaderMap, inbound: &Inbound) {
    if let Some(authority) = uri.authority() {
        // RFC 9112 §3.2.2, RFC 9113 §8.3.1: what stood in the target goes into Host.
        if let Ok(host) = HeaderValue::from_str(authority.as_str()) {
            headers.insert(header::HOST, host);
        }
        *uri = Uri::from(path_of(uri));
    }
    if inbound.has_cookie {
        join_cookies(headers);
    }
    if let Some(upgrade) = &inbound.upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade.protocol.clone());
    } else if inbound.trailers {
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}

fn in_http2(
    uri: &mut Uri,
    headers: &mut HeaderMap,
    inbound: &Inbound,
    upstream: &Upstream,
) -> Result<(), Refusal> {
    let mut parts = uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.path_and_query = Some(path_of(uri));
    parts.authority = match (uri.authority(), headers.get(header::HOST)) {
        (Some(authority), _) => Some(authority.clone()),
        (None, Some(host)) => {
            let host = host.as_bytes().try_into();
            Some(host.map_err(|_| Refusal::BadRequest("the Host field names no host"))?)
        }
        (None, None) => upstream.authorities.first().and_then(|host| host.as_bytes().try_into().ok()),
    };
    headers.remove(header::HOST);
    *uri =
        Uri::from_parts(parts).map_err(|_| Refusal::BadRequest("the target is none that can be sent on"))?;
    if inbound.trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    }
    Ok(())
}

fn path_of(uri: &Uri) -> PathAndQuery {
    uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// RFC 9113 §8.2.3: HTTP/2 may split cookies over several fields, HTTP/1.1 may not.
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(header::COOKIE).iter().nth(1).is_none() {
        return;
    }
    let parts: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&parts.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}
