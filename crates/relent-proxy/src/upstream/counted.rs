//! Counts the bytes written to an endpoint, so that "nothing was sent" is known, not guessed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that one connection has written so far. Only its own task writes, so no locked instruction is needed.
#[derive(Clone, Debug, Default)]
pub(super) struct Written(Arc<AtomicU64>);

impl Written {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.0.store(self.get().wrapping_add(bytes as u64), Ordering::Relaxed);
    }
}

/// A connection to an endpoint.
///
/// A write that fails is not the end: the endpoint may have answered before it closed (413, say), and the answer may still
/// be there to read. So the error is kept, what follows is swallowed, and reading tells how it ended.
#[derive(Debug)]
pub(super) struct Counted<T> {
    io: T,
    written: Written,
    /// Why nothing can be written any more.
    broken: Option<io::ErrorKind>,
}

impl<T> Counted<T> {
    pub(super) fn new(io: T) -> (Counted<T>, Written) {
        let written = Written::default();
        (Counted { io, written: written.clone(), broken: None }, written)
    }

    fn wrote(&mut self, asked: usize, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match polled {
            Poll::Ready(Ok(bytes)) => {
                self.written.add(bytes);
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) if closed_by_peer(&error) => {
                self.broken = Some(error.kind());
                Poll::Ready(Ok(asked))
            }
            other => other,
        }
    }
}

fn closed_by_peer(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.broken.is_some() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        self.wrote(bytes.len(), polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked = slices.iter().map(|slice| slice.len()).sum();
        if self.broken.is_some() {
            return Poll::Ready(Ok(asked));
        }
        let polled = Pin::new(&mut self.io).poll_write_vectored(cx, slices);
        self.wrote(asked, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.broken.is_some() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
