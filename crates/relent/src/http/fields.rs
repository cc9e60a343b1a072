//! Members of structured-field dictionaries (RFC 9651 §3.2), as far as relent's own fields need them.
//!
//! Only the member asked for is read; others are stepped over, so that a field may grow.

use http::HeaderMap;
use http::header::HeaderName;

/// The value of `key` in the one field `name`. A field or member that is missing, doubled or unreadable is `None`.
pub(super) fn member<'a>(headers: &'a HeaderMap, name: &HeaderName, key: &str) -> Option<&'a [u8]> {
    let mut fields = headers.get_all(name).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else { return None };
    let mut found = None;
    for member in split(field.as_bytes(), b',') {
        let item = split(member, b';').next()?.trim_ascii();
        let mut halves = item.splitn(2, |byte| *byte == b'=');
        if halves.next() == Some(key.as_bytes()) {
            let value = halves.next()?;
            if found.replace(value).is_some() {
                return None;
            }
        }
    }
    found
}

/// The same as a number: an sf-integer that isn't negative, cut to 32 bits.
pub(super) fn number(headers: &HeaderMap, name: &HeaderName, key: &str) -> Option<u32> {
    let digits = member(headers, name, key)?;
    // RFC 9651 §3.3.1: at most 15 digits.
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number: u64, digit| number * 10 + u64::from(digit - b'0'));
    Some(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Splits at `separator`, but not within a string.
fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |&byte| {
        let inside = quoted;
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ => {}
        }
        byte == separator && !inside
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn left(fields: &[&[u8]]) -> Option<u32> {
        let name = HeaderName::from_static("relent-attempts");
        let values = fields.iter().map(|field| (name.clone(), HeaderValue::from_bytes(field).unwrap()));
        let mut headers = HeaderMap::new();
        headers.extend(values.map(|(name, value)| (Some(name), value)));
        for field in &fields[fields.len().min(1)..] {
            headers.append(&name, HeaderValue::from_bytes(field).unwrap());
        }
        number(&headers, &name, "left")
    }

    #[test]
    fn a_member_is_found_among_others() {
        assert_eq!(left(&[b"left=2"]), Some(2));
        assert_eq!(left(&[b" other, left=0;why=x ,\tmore=\"a, left=9\""]), Some(0));
        assert_eq!(left(&[b"note=\"a \\\" b, left=9\", left=3"]), Some(3));
        assert_eq!(left(&[b"left=999999999999999"]), Some(u32::MAX));
    }

    #[test]
    fn what_cannot_be_read_counts_as_absent() {
        for field in [
            &b""[..],
            b"left",
            b"left=",
            b"left=-1",
            b"left=1.5",
            b"left=a",
            b"left= 1",
            b"left=1, left=2",
            b"Left=1",
            b"used=1",
            b"left=1000000000000000",
            b"left=\xff",
        ] {
            assert_eq!(left(&[field]), None, "{field:?}");
        }
        assert_eq!(left(&[]), None);
        assert_eq!(left(&[b"left=1", b"left=1"]), None);
    }
}
