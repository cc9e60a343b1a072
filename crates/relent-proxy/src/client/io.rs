//! A client's bytes: checked before hyper sees them, and not cut short by a close.
//!
//! hyper reads some requests more kindly than is good before other servers (bare line feeds, a length beside a transfer
//! coding). Here they are refused, so that nobody behind can read them in another way.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use relent::timer::{Clock, SystemTimer, Timer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Connection;
use crate::framing::{Fault, FaultKind, Framing};
use crate::respond;

/// How long, and how much, a client may go on sending after its answer: closed at once, the answer could be lost on the
/// way (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 16 * 1024 * 1024;

/// A client's connection.
pub(crate) struct ClientIo<T> {
    io: T,
    connection: Arc<Connection>,
    framing: Framing,
    phase: Phase,
    refused: Box<dyn Fn(FaultKind) + Send>,
    ended: bool,
    /// Read to tell the protocol, and not handed on yet.
    first: Vec<u8>,
}

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    Http2,
}

/// RFC 9113 §3.4.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum Phase {
    Open,
    /// A head is refused; the answer waits for the one before it.
    Faulty(FaultKind),
    /// The body of a request that is under way is none: that request fails, and the connection with it.
    BadBody(FaultKind),
    /// What is left of the answer.
    Refusing(Vec<u8>, usize),
    Refused,
    /// Our side is closed; what still comes is thrown away.
    Lingering(Pin<Box<<SystemTimer as Timer>::Sleep>>, usize),
    Closed,
}

impl<T> ClientIo<T> {
    /// `refused` is told of a head that is refused here.
    pub(crate) fn new(
        io: T,
        connection: Arc<Connection>,
        refused: impl Fn(FaultKind) + Send + 'static,
    ) -> ClientIo<T> {
        let framing = Framing::new();
        ClientIo {
            io,
            connection,
            framing,
            phase: Phase::Open,
            refused: Box::new(refused),
            ended: false,
            first: Vec::new(),
        }
    }

    /// Checks what was read; what is faulty is taken out of the buffer again.
    fn check(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        if self.connection.is_tunnel() {
            self.framing.switch_off();
        }
        if self.framing.is_off() {
            return;
        }
        let checked = self.framing.read(&buffer.filled()[before..]);
        self.connection.set_inside_head(self.framing.is_inside_head());
        if let Err(Fault { keep, kind, in_head }) = checked {
            buffer.set_filled(before + keep);
            self.connection.set_refusing();
            self.phase = if in_head { Phase::Faulty(kind) } else { Phase::BadBody(kind) };
        }
    }
}

impl<T: AsyncRead + Unpin> ClientIo<T> {
    /// Tells by the first bytes what the client speaks; `None`: it left before.
    pub(crate) fn poll_speaks(&mut self, cx: &mut Context<'_>) -> Poll<Option<Speaks>> {
        let mut scratch = [0; PREFACE.len()];
        loop {
            let known = self.first.len();
            if self.first[..] != PREFACE[..known] {
                return Poll::Ready(Some(Speaks::Http1));
            }
            if known == PREFACE.len() {
                self.framing.switch_off();
                self.connection.set_http2();
                return Poll::Ready(Some(Speaks::Http2));
            }
            let mut buffer = ReadBuf::new(&mut scratch[known..]);
            let read = ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(None);
            }
            self.connection.set_inside_head(true);
            self.first.extend_from_slice(buffer.filled());
        }
    }

    /// What was read ahead, or what comes next.
    fn poll_bytes(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.io).poll_read(cx, buffer);
        }
        let most = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..most]);
        self.first.drain(..most);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> ClientIo<T> {
    /// Answers a faulty head, as soon as the request before it is answered; then nothing more is read.
    fn poll_refuse(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.phase {
                Phase::Faulty(kind) => {
                    // The end of that answer wakes this task.
                    if self.connection.is_running() {
                        return Poll::Pending;
                    }
                    let kind = *kind;
                    (self.refused)(kind);
                    self.connection.set_unread(true);
                    self.phase = Phase::Refusing(respond::refused_head(kind), 0);
                }
                Phase::Refusing(answer, sent) => {
                    match ready!(Pin::new(&mut self.io).poll_write(cx, &answer[*sent..])) {
                        Ok(bytes) if bytes > 0 && *sent + bytes < answer.len() => *sent += bytes,
                        _ => self.phase = Phase::Refused,
                    }
                }
                _ => return Poll::Ready(()),
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for ClientIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Phase::Open = this.phase {
            let before = buffer.filled().len();
            ready!(this.poll_bytes(cx, buffer))?;
            if buffer.filled().len() == before {
                this.ended = true;
                return Poll::Ready(Ok(()));
            }
            this.check(buffer, before);
            if buffer.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
        if let Phase::BadBody(kind) = this.phase {
            this.phase = Phase::Refused;
            (this.refused)(kind);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, kind.to_string())));
        }
        ready!(this.poll_refuse(cx));
        // No bytes: the end, as hyper understands it.
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.wrote(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.wrote(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            match &mut this.phase {
                Phase::Closed => return Poll::Ready(Ok(())),
                Phase::Lingering(until, left) => {
                    let gone = poll_discard(&mut this.io, left, cx).is_ready();
                    if !gone {
                        ready!(until.as_mut().poll(cx));
                    }
                    this.phase = Phase::Closed;
                }
                _ => {
                    ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
                    this.phase = if this.connection.is_unread() && !this.ended {
                        let until = SystemTimer.now() + LINGER;
                        Phase::Lingering(Box::pin(SystemTimer.sleep_until(until)), LINGER_BYTES)
                    } else {
                        Phase::Closed
                    };
                }
            }
        }
    }
}

impl<T> ClientIo<T> {
    fn wrote(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &polled {
            Poll::Ready(_) => self.connection.wrote(),
            Poll::Pending => self.connection.blocked(),
        }
        polled
    }
}

/// Reads and forgets; ready when the client has closed, or sent more than is borne.
fn poll_discard<T: AsyncRead + Unpin>(io: &mut T, left: &mut usize, cx: &mut Context<'_>) -> Poll<()> {
    let mut scratch = [0; 4096];
    loop {
        let mut buffer = ReadBuf::new(&mut scratch);
        let read = ready!(Pin::new(&mut *io).poll_read(cx, &mut buffer));
        let bytes = buffer.filled().len();
        *left = left.saturating_sub(bytes);
        if read.is_err() || bytes == 0 || *left == 0 {
            return Poll::Ready(());
        }
    }
}
