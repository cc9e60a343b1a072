//! The head of one request, line by line.

use memchr::memchr;

use super::fault::FaultKind;

/// What of a head has been read.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Bytes so far.
    length: usize,
    empty_lines: u8,
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
    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn has_begun(&self) -> bool {
        self.length > 0
    }

    /// A line, which with its end is so long. Answers how the body is framed, if it was the head's last.
    pub(super) fn line(&mut self, line: &[u8], length: usize) -> Result<Option<Body>, FaultKind> {
        self.length += length;
        if self.version.is_none() {
            return self.first_line(line).map(|()| None);
        }
        if line.is_empty() {
            return self.end().map(Some);
        }
        self.field(line).map(|()| None)
    }

    fn first_line(&mut self, line: &[u8]) -> Result<(), FaultKind> {
        if line.is_empty() {
            self.empty_lines += 1;
            return if self.empty_lines > 1 { Err(FaultKind::EmptyLines) } else { Ok(()) };
        }
        // HTTP/1.0 or HTTP/1.1, and before it two words with a space between and behind.
        let (words, minor) = match line {
            [words @ .., b' ', b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ (b'0' | b'1')] => {
                (words, *minor)
            }
            _ => return Err(FaultKind::RequestLine),
        };
        self.version = Some(if minor == b'1' { Version::Http11 } else { Version::Http10 });
        match memchr(b' ', words) {
            Some(space)
                if space > 0 && space + 1 < words.len() && memchr(b' ', &words[space + 1..]).is_none() =>
            {
                Ok(())
            }
            _ => Err(FaultKind::RequestLine),
        }
    }

    /// Only lines that begin like one of the three fields are looked at further.
    fn field(&mut self, line: &[u8]) -> Result<(), FaultKind> {
        match line[0] | 0x20 {
            b'c' => match value_of(line, b"content-length") {
                Some(value) => self.content_length(value),
                None => Ok(()),
            },
            b't' => match value_of(line, b"transfer-encoding") {
                Some(value) => self.coding(value),
                None => Ok(()),
            },
            b'h' if value_of(line, b"host").is_some() => {
                self.hosts += 1;
                if self.hosts > 1 { Err(FaultKind::TwoHosts) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), FaultKind> {
        if self.content_length.is_some() {
            return Err(FaultKind::TwoLengths);
        }
        if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
            return Err(FaultKind::BadLength);
        }
        let text = std::str::from_utf8(value).map_err(|_| FaultKind::BadLength)?;
        self.content_length = Some(text.parse().map_err(|_| FaultKind::BadLength)?);
        Ok(())
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), FaultKind> {
        if self.chunked || self.version != Some(Version::Http11) || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(FaultKind::BadCoding);
        }
        self.chunked = true;
        Ok(())
    }

    fn end(&self) -> Result<Body, FaultKind> {
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

/// The value of a field line with this name in lower case, the white space around it aside.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (own, rest) = line.split_at_checked(name.len())?;
    let (colon, value) = rest.split_first()?;
    (*colon == b':' && own.eq_ignore_ascii_case(name)).then(|| trim(value))
}

/// Space and tab alone: what else Rust takes for white space is none here.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// A line of the trailers: what frames or routes a message has no place there.
pub(super) fn trailer(line: &[u8]) -> Result<(), FaultKind> {
    let frames = |name: &[u8]| value_of(line, name).is_some();
    if frames(b"content-length") || frames(b"transfer-encoding") || frames(b"host") {
        return Err(FaultKind::BadTrailer);
    }
    Ok(())
}
