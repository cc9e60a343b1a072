//! What the caller knows of responses: judged by status and headers, or by the beginning of a body.
//!
//! A body that is looked into is read within the attempt's own time, and handed on as if it had not been: what was read is
//! put in front of what is still to come.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, response};
use http_body::{Body, Frame, SizeHint};
use relent_core::Failure;

use super::kept::{RetryBody, into_bytes};
use super::memory::{ReplayMemory, Share};

type JudgeParts = Box<dyn Fn(&response::Parts) -> Option<Failure> + Send + Sync>;
type JudgeBody = Box<dyn Fn(&response::Parts, &Bytes) -> Option<Failure> + Send + Sync>;

/// More frames than any body that is looked into should have: one may be empty, but not for ever.
const MOST_FRAMES: u32 = 16 * 1024;

/// The caller's own knowledge of responses.
#[derive(Clone, Default)]
pub(super) struct Rules {
    parts: Option<Arc<JudgeParts>>,
    body: Option<Arc<BodyRule>>,
}

struct BodyRule {
    limit: u64,
    statuses: Vec<StatusCode>,
    judge: JudgeBody,
}

impl Rules {
    pub(super) fn judge_parts(&mut self, judge: JudgeParts) {
        self.parts = Some(Arc::new(judge));
    }

    pub(super) fn judge_body(&mut self, limit: u64, statuses: Vec<StatusCode>, judge: JudgeBody) {
        self.body = Some(Arc::new(BodyRule { limit, statuses, judge }));
    }

    /// How much of this response's body is looked into.
    pub(super) fn peeks(&self, parts: &response::Parts) -> Option<u64> {
        let rule = self.body.as_ref()?;
        rule.statuses.contains(&parts.status).then_some(rule.limit)
    }

    /// What the caller says of it; who saw more is asked first.
    pub(super) fn judge(&self, parts: &response::Parts, body: Option<&Bytes>) -> Option<Failure> {
        let by_body = || (self.body.as_ref()?.judge)(parts, body?);
        by_body().or_else(|| (self.parts.as_ref()?)(parts))
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("parts", &self.parts.is_some())
            .field("body", &self.body.is_some())
            .finish()
    }
}

/// A response whose body is being looked into.
pub(super) struct Peeking<B: Body> {
    parts: response::Parts,
    room: u64,
    frames: u32,
    peeked: Peeked<B>,
    whole: bool,
}

impl<B: Body> Peeking<B> {
    pub(super) fn new(parts: response::Parts, body: B, limit: u64, memory: &Arc<ReplayMemory>) -> Peeking<B> {
        let rest = if body.is_end_stream() { Rest::End } else { Rest::Body(Box::pin(body)) };
        let whole = matches!(rest, Rest::End);
        let peeked = Peeked { front: Vec::new().into_iter(), rest, share: memory.share() };
        Peeking { parts, room: limit, frames: 0, peeked, whole }
    }

    /// Reads what there is; ready at the body's end, and where it turns out to be too long or broken.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Rest::Body(body) = &mut self.peeked.rest else { return Poll::Ready(()) };
            if body.size_hint().lower() > self.room {
                return Poll::Ready(());
            }
            let Poll::Ready(frame) = body.as_mut().poll_frame(cx) else { return Poll::Pending };
            match frame {
                Some(Ok(frame)) => {
                    if !self.take(into_bytes(frame)) {
                        return Poll::Ready(());
                    }
                }
                None => {
                    self.peeked.rest = Rest::End;
                    self.whole = true;
                }
                Some(Err(error)) => self.peeked.rest = Rest::Error(Some(error)),
            }
        }
    }

    /// Keeps a frame; whether another may be read.
    fn take(&mut self, frame: Frame<Bytes>) -> bool {
        match frame.into_data() {
            Ok(data) => {
                let length = data.len() as u64;
                self.frames += 1;
                let fits = length <= self.room && self.frames < MOST_FRAMES && self.peeked.share.grow(length);
                self.room = self.room.saturating_sub(length);
                self.peeked.push(data);
                fits
            }
            Err(frame) => {
                self.peeked.rest = frame.into_trailers().map_or(Rest::End, Rest::Trailers);
                self.whole = true;
                false
            }
        }
    }

    /// The response as it came, and its whole body where that was short enough.
    pub(super) fn finish(mut self) -> (response::Parts, RetryBody<B>, Option<Bytes>) {
        let whole = self.whole.then(|| self.peeked.in_one());
        (self.parts, RetryBody::peeked(self.peeked), whole)
    }
}

/// A body that was looked into: what was read of it, and the rest.
pub(super) struct Peeked<B: Body> {
    front: std::vec::IntoIter<Bytes>,
    rest: Rest<B>,
    share: Share,
}

enum Rest<B: Body> {
    Body(Pin<Box<B>>),
    Trailers(HeaderMap),
    Error(Option<B::Error>),
    End,
}

impl<B: Body> Peeked<B> {
    fn push(&mut self, data: Bytes) {
        let mut front: Vec<Bytes> = std::mem::take(&mut self.front).collect();
        front.push(data);
        self.front = front.into_iter();
    }

    /// What was read, in one piece.
    fn in_one(&mut self) -> Bytes {
        let read = self.front.as_slice();
        let one = match read {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => {
                let mut all = BytesMut::with_capacity(many.iter().map(Bytes::len).sum());
                many.iter().for_each(|chunk| all.extend_from_slice(chunk));
                all.freeze()
            }
        };
        self.front = if one.is_empty() { Vec::new() } else { vec![one.clone()] }.into_iter();
        one
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if let Some(data) = self.front.next() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        self.share.release();
        match &mut self.rest {
            Rest::Body(body) => body.as_mut().poll_frame(cx).map_ok(into_bytes),
            Rest::Error(error) => Poll::Ready(error.take().map(Err)),
            Rest::End => Poll::Ready(None),
            Rest::Trailers(trailers) => {
                let trailers = std::mem::take(trailers);
                self.rest = Rest::End;
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let rest_is_over = match &self.rest {
            Rest::Body(body) => body.is_end_stream(),
            Rest::End => true,
            Rest::Trailers(_) | Rest::Error(_) => false,
        };
        rest_is_over && self.front.as_slice().is_empty()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let read: u64 = self.front.as_slice().iter().map(|chunk| chunk.len() as u64).sum();
        let rest = match &self.rest {
            Rest::Body(body) => body.size_hint(),
            Rest::Error(Some(_)) => SizeHint::new(),
            _ => SizeHint::with_exact(0),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}
