//! Where one request ends and the next begins, by the letter of RFC 9112: a check of a client's bytes before hyper reads
//! them. Two servers that disagree about that can be made to see different requests in the same bytes (smuggling).
//!
//! Of a head only what hyper would let pass is looked for. It refuses by itself, with 400 or 431: control characters
//! in names and values, a bare CR, line folding, white space before a colon, an empty name, a method or target that is
//! none, more than a hundred fields. It tolerates, and this refuses: bare line feeds, a length beside a transfer coding,
//! a length that is said twice, codings other than `chunked`, a Host that is missing or said twice, several empty lines
//! before a request.
//!
//! What is left to hyper can not move a boundary: it parses a head as a whole, and nothing of a head that it refuses
//! becomes a request. `tests/beside_hyper.rs` holds it to that. Chunks and trailers are checked in full: hyper looks at
//! them only if somebody reads the body to its end.

mod fault;
mod head;
mod lines;
#[cfg(test)]
mod tests;

pub(crate) use fault::{Fault, FaultKind};

use head::{Body, Head};
use lines::LineFeeds;
use memchr::memchr;

/// The longest line that tells a chunk's size, its extensions included.
const LONGEST_CHUNK_LINE: usize = 4 * 1024;
/// Hex digits of a chunk's size.
const MOST_DIGITS: usize = 16;

/// Follows the requests of one connection.
#[derive(Debug)]
pub(crate) struct Framing {
    state: State,
    /// The beginning of a line whose end has not come.
    carry: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// Between requests, or inside a head.
    Head(Head),
    /// So many bytes of a body are to come.
    Body(u64),
    /// The line with the size of a chunk.
    ChunkSize,
    /// So many bytes of a chunk are to come, and the line end behind it.
    Chunk(u64),
    /// What is left of that line end.
    ChunkEnd(&'static [u8]),
    /// So many bytes of trailers have been read.
    Trailers(usize),
    /// Not HTTP/1.
    Off,
}

impl Framing {
    /// Before the first byte of a connection.
    pub(crate) fn new() -> Framing {
        Framing { state: State::Head(Head::default()), carry: Vec::new() }
    }

    /// Whether this is not HTTP/1.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.state, State::Off)
    }

    /// The connection is something else, or from now on.
    pub(crate) fn switch_off(&mut self) {
        self.state = State::Off;
        self.carry = Vec::new();
    }

    /// Whether some bytes of a head have come, and its end has not.
    pub(crate) fn is_inside_head(&self) -> bool {
        matches!(&self.state, State::Head(head) if head.has_request_line() || !self.carry.is_empty())
    }

    /// Whether the next byte is the first of a request, an empty line before it included.
    fn is_between(&self) -> bool {
        matches!(&self.state, State::Head(head) if !head.has_begun() && self.carry.is_empty())
    }

    /// Looks at the bytes that come next. A fault names how many of them come before the head that it is in.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let mut rest = bytes;
        let mut keep = 0;
        // Whether the request that `rest` belongs to can be taken back: the end of its head is among these bytes.
        let mut in_head = matches!(self.state, State::Head(_));
        while !rest.is_empty() {
            if self.is_between() {
                keep = bytes.len() - rest.len();
                in_head = true;
            }
            rest = match self.state {
                State::Head(_) => self.head(rest),
                _ => self.step(rest),
            }
            .map_err(|kind| Fault { keep, kind, in_head })?;
        }
        Ok(())
    }

    /// Takes the lines of a head, as far as they are there, and answers the rest.
    fn head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FaultKind> {
        let mut begin = 0;
        if let (State::Head(head), true) = (&mut self.state, self.carry.is_empty()) {
            for end in LineFeeds::new(bytes) {
                if let Some(body) = head.line(&bytes[begin..=end])? {
                    self.body(body);
                    return Ok(&bytes[end + 1..]);
                }
                begin = end + 1;
            }
        }
        // The beginning of a line, or its end.
        let rest = &bytes[begin..];
        if rest.is_empty() { Ok(rest) } else { self.line(rest) }
    }

    /// Takes what belongs together from the front, and answers the rest.
    fn step<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FaultKind> {
        match &mut self.state {
            State::Off => Ok(&[]),
            State::Body(left) => {
                let rest = skip(bytes, left);
                if *left == 0 {
                    self.next_request();
                }
                Ok(rest)
            }
            State::Chunk(left) => {
                let rest = skip(bytes, left);
                if *left == 0 {
                    self.state = State::ChunkEnd(b"\r\n");
                }
                Ok(rest)
            }
            State::ChunkEnd(left) => {
                let most = left.len().min(bytes.len());
                let (read, rest) = bytes.split_at(most);
                if read != &left[..most] {
                    return Err(FaultKind::BadChunk);
                }
                *left = &left[most..];
                if left.is_empty() {
                    self.state = State::ChunkSize;
                }
                Ok(rest)
            }
            _ => self.line(bytes),
        }
    }

    /// Takes a line, or the beginning of one.
    fn line<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], FaultKind> {
        let Some(end) = memchr(b'\n', bytes) else {
            self.bear(self.carry.len() + bytes.len())?;
            self.carry.extend_from_slice(bytes);
            return Ok(&[]);
        };
        let (line, rest) = bytes.split_at(end + 1);
        self.bear(self.carry.len() + line.len())?;
        if self.carry.is_empty() {
            self.whole_line(line)?;
        } else {
            let mut whole = std::mem::take(&mut self.carry);
            whole.extend_from_slice(line);
            self.whole_line(&whole)?;
        }
        Ok(rest)
    }

    /// Whether a line of this length is still borne.
    fn bear(&self, length: usize) -> Result<(), FaultKind> {
        match &self.state {
            State::Head(head) if !head.bears(length) => Err(FaultKind::HeadTooLarge),
            State::Trailers(read) if read + length > head::LONGEST => Err(FaultKind::HeadTooLarge),
            State::ChunkSize if length > LONGEST_CHUNK_LINE => Err(FaultKind::BadChunk),
            _ => Ok(()),
        }
    }

    /// A line with its end.
    fn whole_line(&mut self, line: &[u8]) -> Result<(), FaultKind> {
        match &mut self.state {
            State::Head(head) => {
                if let Some(body) = head.line(line)? {
                    self.body(body);
                }
            }
            State::ChunkSize => self.state = chunk(line.strip_suffix(b"\r\n").ok_or(FaultKind::BadChunk)?)?,
            State::Trailers(read) => {
                *read += line.len();
                match line.strip_suffix(b"\r\n").ok_or(FaultKind::BareLf)? {
                    [] => self.next_request(),
                    field => head::trailer(field)?,
                }
            }
            State::Body(_) | State::Chunk(_) | State::ChunkEnd(_) | State::Off => {}
        }
        Ok(())
    }

    /// A head has ended.
    fn body(&mut self, body: Body) {
        match body {
            Body::Length(0) => self.next_request(),
            Body::Length(length) => self.state = State::Body(length),
            Body::Chunked => self.state = State::ChunkSize,
        }
    }

    fn next_request(&mut self) {
        self.state = State::Head(Head::default());
    }
}

/// Passes over as many bytes as are left, or as there are.
fn skip<'a>(bytes: &'a [u8], left: &mut u64) -> &'a [u8] {
    let most = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    *left -= most as u64;
    &bytes[most..]
}

/// What follows a line with a chunk's size (RFC 9112 §7.1). Extensions are passed over; hyper does so, too.
fn chunk(line: &[u8]) -> Result<State, FaultKind> {
    let end = memchr(b';', line).unwrap_or(line.len());
    let (size, extensions) = line.split_at(end);
    let digits = head::trim_end(size);
    if digits.is_empty() || digits.len() > MOST_DIGITS || !head::is_text(extensions) {
        return Err(FaultKind::BadChunk);
    }
    let mut size = 0;
    for byte in digits {
        // Sixteen digits of four bits each fit.
        let digit = char::from(*byte).to_digit(16).ok_or(FaultKind::BadChunk)?;
        size = (size << 4) | u64::from(digit);
    }
    Ok(if size == 0 { State::Trailers(0) } else { State::Chunk(size) })
}
