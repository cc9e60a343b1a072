//! Idempotency keys: one for each logical request, made before its first attempt.

use std::fmt;
use std::sync::Arc;

use http::{HeaderValue, Method, request};
use relent_core::{Policy, Repeat, RepeatRule};

use super::method::{IDEMPOTENCY_KEY, is_idempotent};

/// Where keys come from.
#[derive(Clone)]
pub(super) struct Keys(Arc<dyn Fn() -> Option<HeaderValue> + Send + Sync>);

impl Keys {
    pub(super) fn made_by(make: impl Fn() -> Option<HeaderValue> + Send + Sync + 'static) -> Keys {
        Keys(Arc::new(make))
    }

    /// Gives a request that needs a key to be repeated one, unless its caller has spoken: by a key of his own (an unreadable
    /// one, too), or by saying how it may be repeated.
    pub(super) fn give(&self, request: &mut request::Parts, policy: &Policy) {
        let needs_one = policy.repeat() == RepeatRule::KeyHonoured
            && !is_idempotent(&request.method)
            && request.method != Method::CONNECT
            && !request.headers.contains_key(IDEMPOTENCY_KEY)
            && request.extensions.get::<Repeat>().is_none();
        if needs_one && let Some(key) = (self.0)() {
            request.headers.insert(IDEMPOTENCY_KEY, key);
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// A random UUID (RFC 9562 §5.4) as a structured-field string, which is what the draft of the header asks for. `None` where
/// the operating system has no entropy: a request without a key is repeated less, never twice.
#[cfg(feature = "keys")]
pub(super) fn random() -> Option<HeaderValue> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    HeaderValue::from_str(&uuid(bytes)).ok()
}

#[cfg(feature = "keys")]
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let number = u128::from_be_bytes(bytes);
    format!(
        "\"{:08x}-{:04x}-{:04x}-{:04x}-{:012x}\"",
        number >> 96,
        number >> 80 & 0xffff,
        number >> 64 & 0xffff,
        number >> 48 & 0xffff,
        number & 0xffff_ffff_ffff,
    )
}

#[cfg(all(test, feature = "keys"))]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_a_quoted_uuid_of_version_4() {
        assert_eq!(uuid([0xff; 16]), "\"ffffffff-ffff-4fff-bfff-ffffffffffff\"");
        assert_eq!(uuid([0; 16]), "\"00000000-0000-4000-8000-000000000000\"");
        let (one, other) = (random(), random());
        assert!(one.is_some() && one != other);
    }
}
