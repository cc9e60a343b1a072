//! The body of a client's request: streamed, counted, and not waited for without end.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::Connection;
use crate::idle::IdleGuard;

/// What became of a request's body, for those who don't read it themselves.
#[derive(Debug, Default)]
pub(crate) struct BodyWatch {
    read: AtomicU64,
    /// Its reader waits for the client.
    waiting: AtomicBool,
    fault: AtomicU8,
}

/// Why a request's body can't be read on: the client's doing, not an endpoint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    #[error("the client did not send its request's body in time")]
    Stalled = 1,
    #[error("the client broke off in its request's body")]
    BrokenOff = 2,
}

impl BodyWatch {
    /// Bytes read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Whether the client has not sent what somebody waits for.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn fault(&self) -> Option<BodyFault> {
        match self.fault.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(BodyFault::Stalled),
            _ => Some(BodyFault::BrokenOff),
        }
    }
}

/// A request's body as it comes.
#[derive(Debug)]
pub(crate) struct RequestBody {
    incoming: Incoming,
    /// `None`: there is no body.
    watch: Option<Arc<BodyWatch>>,
    /// Whose body it is, if there is one.
    connection: Option<Arc<Connection>>,
    idle: IdleGuard,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming, connection: &Arc<Connection>, timeout: Duration) -> RequestBody {
        let idle = IdleGuard::new(timeout);
        if incoming.is_end_stream() {
            return RequestBody { incoming, watch: None, connection: None, idle };
        }
        connection.set_unread(true);
        let (watch, connection) = (Some(Arc::default()), Some(Arc::clone(connection)));
        RequestBody { incoming, watch, connection, idle }
    }

    /// For those who want to know of it; `None` if there is nothing to read.
    pub(crate) fn watch(&self) -> Option<Arc<BodyWatch>> {
        self.watch.clone()
    }

    fn read_to_the_end(&self) {
        if let Some(connection) = &self.connection {
            connection.set_unread(false);
        }
    }

    fn fail(&self, fault: BodyFault) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        if let Some(watch) = &self.watch {
            watch.fault.store(fault as u8, Ordering::Relaxed);
        }
        Poll::Ready(Some(Err(fault)))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        if let Some(watch) = &self.watch {
            watch.waiting.store(polled.is_pending(), Ordering::Relaxed);
        }
        match polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.idle.moved();
                if let (Some(data), Some(watch)) = (frame.data_ref(), &self.watch) {
                    watch.read.fetch_add(data.len() as u64, Ordering::Relaxed);
                }
                if self.incoming.is_end_stream() {
                    self.read_to_the_end();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(_))) => self.fail(BodyFault::BrokenOff),
            Poll::Ready(None) => {
                self.read_to_the_end();
                Poll::Ready(None)
            }
            Poll::Pending => {
                ready!(self.idle.poll_stalled(cx));
                self.fail(BodyFault::Stalled)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
