//! HTTP/1.1 messages, read byte by byte by hand: what the proxy writes is not to be judged by the library that wrote it.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A request as an endpoint saw it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Fields,
    /// The connection it came on, from 0.
    pub(crate) connection: usize,
    /// When it was here, in paused time.
    pub(crate) at: relent::Instant,
}

/// A response as a client saw it.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) fields: Fields,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Fields,
    /// Whether the body came to the end that its framing promised.
    pub(crate) whole: bool,
}

impl Response {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.one(name)
    }

    /// Why no further attempt was made, and how many there were.
    pub(crate) fn outcome(&self) -> &str {
        self.field("relent-outcome").unwrap_or_default()
    }
}

impl Request {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.one(name)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// Header fields in their order, names in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.0.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The only value of a field; a doubled one fails the test.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} comes {} times", all.len());
        all.first().copied()
    }
}

/// The first line and the fields of a head; `None` if the stream ends before one begins.
pub(crate) async fn read_head<T: AsyncRead + Unpin>(io: &mut T) -> io::Result<Option<(String, Fields)>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match io.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) if bytes.is_empty() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let text = String::from_utf8(bytes).map_err(io::Error::other)?;
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    let line = lines.next().unwrap_or_default().to_owned();
    Ok(Some((line, Fields(lines.filter_map(field).collect()))))
}

fn field(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim().to_owned()))
}

/// How a body is framed.
pub(crate) enum Framing {
    Length(usize),
    Chunked,
    Close,
    Nothing,
}

/// A body, its trailers, and whether it came to its end.
pub(crate) async fn read_body<T: AsyncRead + Unpin>(io: &mut T, framing: Framing) -> (Vec<u8>, Fields, bool) {
    let mut body = Vec::new();
    match framing {
        Framing::Nothing => (body, Fields::default(), true),
        Framing::Close => {
            let whole = io.read_to_end(&mut body).await.is_ok();
            (body, Fields::default(), whole)
        }
        Framing::Length(length) => {
            let whole = read_exactly(io, length, &mut body).await;
            (body, Fields::default(), whole)
        }
        Framing::Chunked => read_chunked(io).await,
    }
}

async fn read_exactly<T: AsyncRead + Unpin>(io: &mut T, length: usize, into: &mut Vec<u8>) -> bool {
    let mut left = length;
    let mut buffer = vec![0; 8 * 1024];
    while left > 0 {
        let most = left.min(buffer.len());
        match io.read(&mut buffer[..most]).await {
            Ok(bytes) if bytes > 0 => {
                into.extend_from_slice(&buffer[..bytes]);
                left -= bytes;
            }
            _ => return false,
        }
    }
    true
}

async fn read_line<T: AsyncRead + Unpin>(io: &mut T) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n") {
        bytes.push(io.read_u8().await.ok()?);
    }
    String::from_utf8(bytes[..bytes.len() - 2].to_vec()).ok()
}

async fn read_chunked<T: AsyncRead + Unpin>(io: &mut T) -> (Vec<u8>, Fields, bool) {
    let mut body = Vec::new();
    let mut trailers = Fields::default();
    loop {
        let Some(line) = read_line(io).await else { return (body, trailers, false) };
        let Ok(length) = usize::from_str_radix(&line, 16) else { return (body, trailers, false) };
        if length == 0 {
            break;
        }
        if !read_exactly(io, length, &mut body).await || read_line(io).await.is_none() {
            return (body, trailers, false);
        }
    }
    loop {
        match read_line(io).await.as_deref() {
            Some("") => return (body, trailers, true),
            Some(line) => trailers.0.extend(field(line)),
            None => return (body, trailers, false),
        }
    }
}
