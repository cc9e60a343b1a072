//! The header fields that a proxy must know, found in one pass over the names; and those that end at each hop.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use relent::http::wire;

/// Which of the known fields a message has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen(u32);

const CONNECTION: u32 = 1;
const TE: u32 = 1 << 1;
const UPGRADE: u32 = 1 << 2;
/// Any other that ends at this hop.
const HOP: u32 = 1 << 3;
const EXPECT: u32 = 1 << 4;
const CREDIT: u32 = 1 << 5;
const NUMBER: u32 = 1 << 6;
const TIME: u32 = 1 << 7;
/// An order to a retrying proxy.
const CONTROL: u32 = 1 << 8;
const GRPC_TIMEOUT: u32 = 1 << 9;
const COOKIE: u32 = 1 << 10;
const STOP: u32 = 1 << 11;
const CONTENT_TYPE: u32 = 1 << 12;

const KEEP_ALIVE: &str = "keep-alive";
const PROXY_CONNECTION: &str = "proxy-connection";

/// What clients tell Envoy's router to do. From others than trusted peers they are ignored, and never passed on.
const CONTROLS: [&str; 9] = [
    "x-envoy-max-retries",
    "x-envoy-retry-on",
    "x-envoy-retry-grpc-on",
    "x-envoy-upstream-rq-timeout-ms",
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-hedge-on-per-try-timeout",
    "x-envoy-retriable-status-codes",
    "x-envoy-retriable-header-names",
    "x-envoy-upstream-rq-timeout-alt-response",
];

/// What no `Connection` field may take from a message, though it names it: framing, routing, and what retries hang on.
const NEVER_NOMINATED: [&str; 7] = [
    "host",
    "content-length",
    "content-type",
    "idempotency-key",
    "retry-after",
    "grpc-timeout",
    "authorization",
];

impl Seen {
    pub(crate) fn of(headers: &HeaderMap) -> Seen {
        Seen(headers.keys().fold(0, |seen, name| seen | kind(name)))
    }

    fn has(self, bits: u32) -> bool {
        self.0 & bits != 0
    }

    pub(crate) fn has_upgrade(self) -> bool {
        self.has(UPGRADE)
    }

    pub(crate) fn has_credit(self) -> bool {
        self.has(CREDIT)
    }

    pub(crate) fn has_number(self) -> bool {
        self.has(NUMBER)
    }

    pub(crate) fn has_time(self) -> bool {
        self.has(TIME)
    }

    pub(crate) fn has_control(self) -> bool {
        self.has(CONTROL)
    }

    pub(crate) fn has_grpc_timeout(self) -> bool {
        self.has(GRPC_TIMEOUT)
    }

    pub(crate) fn has_te(self) -> bool {
        self.has(TE)
    }

    pub(crate) fn has_cookie(self) -> bool {
        self.has(COOKIE)
    }

    pub(crate) fn has_content_type(self) -> bool {
        self.has(CONTENT_TYPE)
    }

    /// Whether a response says something to this hop.
    pub(crate) fn has_words(self) -> bool {
        self.has(CREDIT | STOP)
    }
}

fn kind(name: &HeaderName) -> u32 {
    let text = name.as_str();
    match text.as_bytes()[0] {
        b'c' if *name == header::CONNECTION => CONNECTION,
        b'c' if *name == header::COOKIE => COOKIE,
        b'c' if *name == header::CONTENT_TYPE => CONTENT_TYPE,
        b't' if *name == header::TE => TE,
        b't' if *name == header::TRANSFER_ENCODING => HOP,
        b'u' if *name == header::UPGRADE => UPGRADE,
        b'e' if *name == header::EXPECT => EXPECT,
        b'k' if text == KEEP_ALIVE => HOP,
        b'p' if text == PROXY_CONNECTION => HOP,
        b'g' if *name == relent::http::GRPC_TIMEOUT => GRPC_TIMEOUT,
        b'r' if *name == wire::ATTEMPTS => CREDIT,
        b'r' if *name == wire::STOP => STOP,
        b'x' if *name == wire::ATTEMPT_COUNT => NUMBER,
        b'x' if *name == wire::EXPECTED_TIMEOUT => TIME,
        b'x' if *name == wire::RATE_LIMITED => STOP,
        b'x' if CONTROLS.contains(&text) => CONTROL,
        _ => 0,
    }
}

/// Takes out what was meant for this hop alone (RFC 9110 §7.6.1), and what `Connection` names.
pub(crate) fn strip(headers: &mut HeaderMap, seen: Seen) {
    if !seen.has(CONNECTION | TE | UPGRADE | HOP | EXPECT) {
        return;
    }
    if seen.has(CONNECTION) {
        strip_nominated(headers);
        headers.remove(header::CONNECTION);
    }
    headers.remove(header::TE);
    headers.remove(header::UPGRADE);
    headers.remove(header::EXPECT);
    if seen.has(HOP) {
        headers.remove(header::TRANSFER_ENCODING);
        headers.remove(KEEP_ALIVE);
        headers.remove(PROXY_CONNECTION);
    }
}

fn strip_nominated(headers: &mut HeaderMap) {
    let mut nominated = Vec::new();
    for value in headers.get_all(header::CONNECTION) {
        for token in tokens(value) {
            match HeaderName::from_bytes(token) {
                Ok(name) if !NEVER_NOMINATED.contains(&name.as_str()) => nominated.push(name),
                _ => {}
            }
        }
    }
    for name in nominated {
        headers.remove(name);
    }
}

/// Takes out the orders to a retrying proxy.
pub(crate) fn strip_controls(headers: &mut HeaderMap) {
    for name in CONTROLS {
        headers.remove(name);
    }
}

/// Whether one of the comma-separated values of `name` is `token`.
pub(crate) fn lists(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers.get_all(name).iter().flat_map(tokens).any(|own| own.eq_ignore_ascii_case(token.as_bytes()))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        headers
    }

    fn stripped(fields: &[(&str, &str)]) -> Vec<String> {
        let mut headers = headers(fields);
        let seen = Seen::of(&headers);
        strip(&mut headers, seen);
        let mut left: Vec<_> = headers.keys().map(ToString::to_string).collect();
        left.sort();
        left
    }

    #[test]
    fn what_ends_at_a_hop_goes_no_further() {
        let fields = [
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("expect", "100-continue"),
            ("trailer", "x-sum"),
            ("accept", "*/*"),
        ];
        assert_eq!(stripped(&fields), ["accept", "trailer"]);
        assert_eq!(stripped(&[("keep-alive", "1"), ("a", "b")]), ["a"]);
        assert_eq!(stripped(&[("a", "b")]), ["a"]);
    }

    #[test]
    fn a_connection_field_can_not_take_what_others_rely_on() {
        let fields = [("connection", "host, Idempotency-Key,, ä"), ("host", "a"), ("idempotency-key", "k")];
        assert_eq!(stripped(&fields), ["host", "idempotency-key"]);
    }

    #[test]
    fn tokens_are_found_in_lists() {
        let headers = headers(&[("connection", "keep-alive"), ("connection", "foo , Upgrade")]);
        assert!(lists(&headers, &header::CONNECTION, "upgrade"));
        assert!(!lists(&headers, &header::CONNECTION, "up"));
    }
}
