//! A client that writes and reads bytes.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

use super::message::{Framing, Response, read_body, read_head};

/// Bytes both ways.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

type Duplex = Box<dyn Stream>;

/// A connection to the proxy.
pub(crate) struct Client {
    pub(crate) io: Duplex,
    /// What the last request was, since the answer to HEAD has no body.
    head: bool,
}

impl Client {
    pub(crate) fn new(io: DuplexStream) -> Client {
        Client { io: Box::new(io), head: false }
    }

    /// What is left when somebody else writes.
    pub(crate) fn read_only(read: impl AsyncRead + Send + Unpin + 'static) -> Client {
        Client { io: Box::new(tokio::io::join(read, tokio::io::sink())), head: false }
    }

    /// Writes these bytes.
    pub(crate) async fn send(&mut self, bytes: &str) {
        self.head = bytes.starts_with("HEAD ");
        self.io.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// The next response but for interim ones.
    pub(crate) async fn response(&mut self) -> Response {
        self.try_response().await.expect("the connection ended without a response")
    }

    /// The same; `None` if the connection ends before.
    pub(crate) async fn try_response(&mut self) -> Option<Response> {
        let (status, fields) = loop {
            let (line, fields) = read_head(&mut self.io).await.ok()??;
            let status: u16 = line.split(' ').nth(1)?.parse().ok()?;
            if status == 101 || status >= 200 {
                break (status, fields);
            }
        };
        let framing = match (fields.one("transfer-encoding"), fields.one("content-length")) {
            _ if self.head || status == 101 || status == 204 || status == 304 => Framing::Nothing,
            (Some(coding), None) => {
                assert_eq!(coding, "chunked");
                Framing::Chunked
            }
            (None, Some(length)) => Framing::Length(length.parse().unwrap()),
            (None, None) => Framing::Close,
            both => panic!("two framings: {both:?}"),
        };
        let (body, trailers, whole) = read_body(&mut self.io, framing).await;
        Some(Response { status, fields, body, trailers, whole })
    }

    /// Everything until the proxy closes.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // An error is an end, too.
        drop(self.io.read_to_end(&mut bytes).await);
        bytes
    }
}
