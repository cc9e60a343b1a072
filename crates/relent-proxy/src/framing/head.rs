//! The head of one request, line by line.

use memchr::memchr;

use super::fault::FaultKind;

/// Bytes of the longest head, and of the longest trailers.
pub(super) const LONGEST: usize = 64 * 1024;

/// What of a head has been read.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Bytes so far.
    length: usize,
    empty_line: bool,
    version: Option<Version>,
    hosts: u8,
    content_length: Option<u64>,
    chunked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http10,
    Http11,
}

/// How the body behind a head is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Length(u64),
    Chunked,
}

impl Head {
    pub(super) fn has_begun(&self) -> bool {
        self.length > 0
    }

    pub(super) fn has_request_line(&self) -> bool {
        self.version.is_some()
    }

    /// Whether there may be so many bytes more.
    pub(super) fn bears(&self, more: usize) -> bool {
        self.length + more <= LONGEST
    }

    /// A line with its end. Answers how the body is framed, if it was the head's last.
    #[inline(always)]
    pub(super) fn line(&mut self, line: &[u8]) -> Result<Option<Body>, FaultKind> {
        if !self.bears(line.len()) {
            return Err(FaultKind::HeadTooLarge);
        }
        self.length += line.len();
        let [text @ .., b'\r', b'\n'] = line else { return Err(FaultKind::BareLf) };
        if !self.has_request_line() {
            return self.request_line(text).map(|()| None);
        }
        match text.first() {
            None => self.end().map(Some),
            Some(b'c' | b'C' | b't' | b'T' | b'h' | b'H') => self.field(text).map(|()| None),
            Some(_) => Ok(None),
        }
    }

    /// The version is all that framing hangs on. That it stands behind a method and a target, is hyper's to see.
    fn request_line(&mut self, line: &[u8]) -> Result<(), FaultKind> {
        self.version = match line {
            [_, .., b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'1'] => Some(Version::Http11),
            [_, .., b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'] => Some(Version::Http10),
            [] => return self.empty_line(),
            _ => return Err(FaultKind::RequestLine),
        };
        Ok(())
    }

    /// One before the request line.
    fn empty_line(&mut self) -> Result<(), FaultKind> {
        let is_first = !std::mem::replace(&mut self.empty_line, true);
        if is_first { Ok(()) } else { Err(FaultKind::EmptyLines) }
    }

    /// A field that begins like one of the three that matter.
    fn field(&mut self, line: &[u8]) -> Result<(), FaultKind> {
        if is_named(line, b"host") {
            self.hosts = self.hosts.saturating_add(1);
            return if self.hosts > 1 { Err(FaultKind::TwoHosts) } else { Ok(()) };
        }
        if let Some(value) = value_of(line, b"content-length") {
            return self.content_length(value);
        }
        value_of(line, b"transfer-encoding").map_or(Ok(()), |value| self.coding(value))
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), FaultKind> {
        if self.content_length.is_some() {
            return Err(FaultKind::TwoLengths);
        }
        self.content_length = Some(number(value).ok_or(FaultKind::BadLength)?);
        Ok(())
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), FaultKind> {
        if self.chunked || self.version != Some(Version::Http11) || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(FaultKind::BadCoding);
        }
        self.chunked = true;
        Ok(())
    }

    /// The last line has come. Answers how the body is framed.
    pub(super) fn end(&self) -> Result<Body, FaultKind> {
        if self.hosts == 0 && self.version == Some(Version::Http11) {
            return Err(FaultKind::NoHost);
        }
        match (self.content_length, self.chunked) {
            (Some(_), true) => Err(FaultKind::LengthAndCoding),
            (None, true) => Ok(Body::Chunked),
            (length, false) => Ok(Body::Length(length.unwrap_or(0))),
        }
    }
}

/// Whether this is a field with this name, which is in lower case.
fn is_named<const N: usize>(line: &[u8], name: &[u8; N]) -> bool {
    // Without an early end the compiler takes the whole name at once.
    let differs = |all: u8, (own, name): (&u8, &u8)| all | (own.to_ascii_lowercase() ^ name);
    line.get(N) == Some(&b':') && line.iter().zip(name).fold(0, differs) == 0
}

/// The value of a field with this name, the white space around it aside.
fn value_of<'a, const N: usize>(line: &'a [u8], name: &[u8; N]) -> Option<&'a [u8]> {
    is_named(line, name).then(|| trim(&line[N + 1..]))
}

/// Digits alone: no sign, no list.
fn number(digits: &[u8]) -> Option<u64> {
    let first = if digits.is_empty() { None } else { Some(0_u64) };
    digits.iter().try_fold(first?, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| byte - b'0')?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Space and tab alone: what else Rust takes for white space is none here.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    trim_end(value)
}

pub(super) fn trim_end(mut value: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Whether there is no control character but tabs (RFC 9110 §5.5).
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t')
}

/// A line of the trailers: a field, but none that frames or routes a message.
pub(super) fn trailer(line: &[u8]) -> Result<(), FaultKind> {
    let colon = memchr(b':', line).ok_or(FaultKind::BadTrailer)?;
    let (name, value) = line.split_at(colon);
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let frames = [&b"content-length"[..], b"transfer-encoding", b"host"];
    let is_field = !name.is_empty() && name.iter().all(is_token) && is_text(value);
    if !is_field || frames.iter().any(|frame| name.eq_ignore_ascii_case(frame)) {
        return Err(FaultKind::BadTrailer);
    }
    Ok(())
}
