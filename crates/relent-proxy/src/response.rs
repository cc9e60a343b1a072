//! The body of a response on its way to the client, and what happens at its end.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use relent::http::RetryBody;
use relent_core::Instant;

use crate::client::Pulse;
use crate::idle::IdleGuard;
use crate::record::Record;
use crate::respond::OneText;
use crate::upstream::Lease;

/// A body as it comes from an endpoint. At its end the connection goes back to its pool; dropped before, it ends.
#[derive(Debug)]
pub(crate) struct LiveBody {
    incoming: Incoming,
    lease: Lease,
    idle: IdleGuard,
    /// When its head was here: the connection counts as idle from then on, so that no clock is read for that.
    began: Instant,
}

/// Why a response breaks off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broke {
    #[error("the upstream broke off in its response's body")]
    Upstream(#[source] hyper::Error),
    #[error("the upstream stopped sending its response's body")]
    Stalled,
}

impl LiveBody {
    pub(crate) fn new(incoming: Incoming, lease: Lease, timeout: Duration, now: Instant) -> LiveBody {
        let mut body = LiveBody { incoming, lease, idle: IdleGuard::new(timeout), began: now };
        body.look_for_the_end();
        body
    }

    fn look_for_the_end(&mut self) {
        if self.incoming.is_end_stream() {
            self.lease.give_back(self.began);
        }
    }
}

impl Body for LiveBody {
    type Data = Bytes;
    type Error = Broke;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broke>>> {
        let polled = match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.idle.moved();
                self.look_for_the_end();
                Some(Ok(frame))
            }
            Poll::Ready(Some(Err(error))) => Some(Err(Broke::Upstream(error))),
            Poll::Ready(None) => {
                let began = self.began;
                self.lease.give_back(began);
                None
            }
            Poll::Pending => {
                ready!(self.idle.poll_stalled(cx));
                Some(Err(Broke::Stalled))
            }
        };
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// What the client reads.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    source: Source,
    record: Record,
    pulse: Option<Arc<Pulse>>,
}

#[derive(Debug)]
enum Source {
    Upstream(RetryBody<LiveBody>),
    /// The proxy's own words.
    Own(OneText),
}

impl ResponseBody {
    pub(crate) fn upstream(body: RetryBody<LiveBody>, record: Record) -> ResponseBody {
        ResponseBody::of(Source::Upstream(body), record)
    }

    pub(crate) fn own(text: Bytes, record: Record) -> ResponseBody {
        ResponseBody::of(Source::Own(OneText::new(text)), record)
    }

    fn of(source: Source, record: Record) -> ResponseBody {
        let pulse = record.connection().pulse();
        ResponseBody { source, record, pulse }
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broke>>> {
        match &mut self.source {
            Source::Upstream(body) => Pin::new(body).poll_frame(cx),
            Source::Own(text) => Pin::new(text).poll_frame(cx).map_err(|never| match never {}),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Broke;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broke>>> {
        if let Some(pulse) = &self.pulse {
            pulse.beat();
        }
        let frame = ready!(self.next(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.record.sent(data.len());
                }
            }
            Some(Err(error)) => self.record.broke(|| error.to_string()),
            None => self.record.complete(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Upstream(body) => body.is_end_stream(),
            Source::Own(text) => text.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Upstream(body) => body.size_hint(),
            Source::Own(text) => text.size_hint(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if self.is_end_stream() {
            self.record.complete();
        }
    }
}
