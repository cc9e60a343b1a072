//! What may be sent again: by repeat rule, method and key.

use http::header::HeaderName;
use http::{HeaderMap, Method, request};
use relent_core::{Policy, Repeat, RepeatRule};

/// The header that lets a receiver recognise a request that it has seen.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Whether a request of this method and with these headers may be sent again under `rule`.
///
/// A key counts only where there is exactly one and it isn't blank: of two keys nobody knows which one the receiver
/// goes by.
///
/// ```
/// use http::{HeaderMap, Method};
/// use relent::http::repeat;
/// use relent::{Repeat, RepeatRule};
///
/// let keyed: HeaderMap = [(relent::http::IDEMPOTENCY_KEY, "order-7".parse()?)].into_iter().collect();
/// assert_eq!(repeat(RepeatRule::IdempotentMethods, &Method::PUT, &HeaderMap::new()), Repeat::Yes);
/// assert_eq!(repeat(RepeatRule::IdempotentMethods, &Method::POST, &keyed), Repeat::UnprocessedOnly);
/// assert_eq!(repeat(RepeatRule::KeyHonoured, &Method::POST, &keyed), Repeat::Yes);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn repeat(rule: RepeatRule, method: &Method, headers: &HeaderMap) -> Repeat {
    let harmless = match rule {
        RepeatRule::Never => return Repeat::No,
        RepeatRule::Always => true,
        RepeatRule::KeyHonoured => is_idempotent(method) || has_key(headers),
        _ => is_idempotent(method),
    };
    if harmless { Repeat::Yes } else { Repeat::UnprocessedOnly }
}

/// The same for a request, whose own word among its extensions goes first.
pub(crate) fn repeat_of(request: &request::Parts, policy: &Policy) -> Repeat {
    let own = request.extensions.get::<Repeat>();
    own.copied().unwrap_or_else(|| repeat(policy.repeat(), &request.method, &request.headers))
}

/// RFC 9110 §9.2.2. A method that isn't known is not.
pub(crate) fn is_idempotent(method: &Method) -> bool {
    matches!(
        *method,
        Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE
    )
}

fn has_key(headers: &HeaderMap) -> bool {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (keys.next(), keys.next()) {
        (Some(key), None) => !key.as_bytes().trim_ascii().is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IDEMPOTENCY_KEY, http::HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn every_rule_and_method() {
        let none = keys(&[]);
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
            let method: Method = method.parse().unwrap();
            assert_eq!(repeat(RepeatRule::Never, &method, &none), Repeat::No);
            for rule in [RepeatRule::IdempotentMethods, RepeatRule::KeyHonoured, RepeatRule::Always] {
                assert_eq!(repeat(rule, &method, &none), Repeat::Yes, "{method}");
            }
        }
        for method in ["POST", "PATCH", "CONNECT", "LOCK", "get"] {
            let method: Method = method.parse().unwrap();
            assert_eq!(repeat(RepeatRule::Never, &method, &none), Repeat::No);
            assert_eq!(repeat(RepeatRule::Always, &method, &none), Repeat::Yes);
            for rule in [RepeatRule::IdempotentMethods, RepeatRule::KeyHonoured] {
                assert_eq!(repeat(rule, &method, &none), Repeat::UnprocessedOnly, "{method}");
            }
        }
    }

    #[test]
    fn a_key_counts_alone_and_not_blank() {
        let rule = RepeatRule::KeyHonoured;
        assert_eq!(repeat(rule, &Method::POST, &keys(&["k"])), Repeat::Yes);
        assert_eq!(repeat(rule, &Method::POST, &keys(&["k", "k"])), Repeat::UnprocessedOnly);
        assert_eq!(repeat(rule, &Method::POST, &keys(&[" "])), Repeat::UnprocessedOnly);
    }
}
