//! What the attempts of one call share of its body.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::super::memory::Share;
use super::{BoxError, ReplayError};

/// What becomes of a frame that can't be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// It is sent, and the body can't be sent again.
    Flowing,
    /// Whether another attempt follows is being decided: it is set aside, and its reader waits.
    Asked,
    /// Another attempt follows: it is set aside for that, and its reader fails.
    Promised,
    /// No other attempt follows: nothing needs to be kept.
    Alone,
}

pub(super) struct State<B> {
    /// Whose turn it is.
    pub(super) attempt: u32,
    pub(super) mode: Mode,
    /// Everything read so far, unless some of it was lost.
    pub(super) kept: Vec<Bytes>,
    /// They end the body.
    pub(super) trailers: Option<HeaderMap>,
    /// Read, not sent, and not to be kept.
    pub(super) aside: Option<Frame<Bytes>>,
    /// The attempt that read something that wasn't kept.
    pub(super) lost_by: Option<u32>,
    /// Of the reader that waits.
    pub(super) waker: Option<Waker>,
    rest: Option<B>,
    room: u64,
    share: Share,
}

impl<B: Body> State<B> {
    pub(super) fn new(body: B, limit: u64, share: Share) -> State<B> {
        // What is announced to be too long isn't worth keeping in part.
        let room = if body.size_hint().lower() > limit { 0 } else { limit };
        State {
            attempt: 0,
            mode: Mode::Flowing,
            kept: Vec::new(),
            trailers: None,
            aside: None,
            lost_by: None,
            waker: None,
            rest: Some(body),
            room,
            share,
        }
    }
}

impl<B: Body> State<B> {
    /// Whether everything was read, and is kept.
    pub(super) fn is_complete(&self) -> bool {
        self.lost_by.is_none() && self.aside.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    pub(super) fn rest_is_over(&self) -> bool {
        self.aside.is_none() && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }
}

impl<B> State<B> {
    /// Why this attempt may not read.
    pub(super) fn refusal(&self, attempt: u32) -> Option<ReplayError> {
        if self.attempt != attempt {
            return Some(ReplayError::Superseded);
        }
        self.lost_by.filter(|by| *by != attempt).map(|_| ReplayError::NotKept)
    }

    fn lose(&mut self) {
        self.lost_by.get_or_insert(self.attempt);
        self.kept = Vec::new();
        self.share.release();
    }

    /// Keeps a copy of `frame`, if there is room.
    fn keep(&mut self, frame: &Frame<Bytes>) -> bool {
        let length = length(frame);
        if self.lost_by.is_some() || length > self.room || !self.share.grow(length) {
            return false;
        }
        self.room -= length;
        match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) if !data.is_empty() => self.kept.push(data.clone()),
            (_, Some(trailers)) => self.trailers = Some(trailers.clone()),
            _ => {}
        }
        true
    }

    fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.waker = Some(cx.waker().clone()),
        }
    }
}

impl<B> State<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    /// What comes after everything kept.
    pub(super) fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(frame) = self.aside.take() {
            return self.pass(frame, cx);
        }
        let Some(rest) = &mut self.rest else { return Poll::Ready(None) };
        match Pin::new(rest).poll_frame(cx) {
            Poll::Pending => {
                self.wait(cx);
                Poll::Pending
            }
            Poll::Ready(None) => {
                self.rest = None;
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                self.rest = None;
                self.lose();
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(Some(Ok(frame))) => {
                if frame.is_trailers() {
                    self.rest = None;
                }
                self.pass(frame.map_data(|mut data| data.copy_to_bytes(data.remaining())), cx)
            }
        }
    }

    /// Hands a frame on, and keeps it where it may be needed again.
    fn pass(
        &mut self,
        frame: Frame<Bytes>,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.mode != Mode::Alone && self.keep(&frame) {
            return Poll::Ready(Some(Ok(frame)));
        }
        match self.mode {
            Mode::Asked if self.lost_by.is_none() => {
                self.aside = Some(frame);
                self.wait(cx);
                Poll::Pending
            }
            Mode::Promised => {
                self.aside = Some(frame);
                Poll::Ready(Some(Err(ReplayError::Superseded.into())))
            }
            _ => {
                self.lose();
                Poll::Ready(Some(Ok(frame)))
            }
        }
    }

    /// The length of the rest, `before` bytes added.
    pub(super) fn rest_hint(&self, before: u64) -> SizeHint {
        let aside = self.aside.as_ref().and_then(Frame::data_ref).map_or(0, |data| data.len() as u64);
        let before = before.saturating_add(aside);
        let rest = self.rest.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        // Upper first: a lower bound must never pass it.
        if let Some(upper) = rest.upper().and_then(|upper| upper.checked_add(before)) {
            hint.set_upper(upper);
        }
        hint.set_lower(rest.lower().saturating_add(before));
        hint
    }
}

/// What keeping a frame costs.
fn length(frame: &Frame<Bytes>) -> u64 {
    match (frame.data_ref(), frame.trailers_ref()) {
        (Some(data), _) => data.len() as u64,
        (_, Some(trailers)) => {
            trailers.iter().map(|(name, value)| (name.as_str().len() + value.len()) as u64).sum()
        }
        _ => 0,
    }
}
