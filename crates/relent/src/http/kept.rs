//! Failed responses over a wait: read to memory as far as they are short, so that their connection is free meanwhile.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::vec;

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http::header::{self, HeaderName};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use relent_core::defaults::KEPT_RESPONSE;

use super::memory::{ReplayMemory, Share};
use super::peek::Peeked;

pin_project! {
    /// The body of a response: as it comes from the server, or what was kept of it over a wait.
    pub struct RetryBody<B: Body> {
        #[pin]
        inner: Inner<B>,
    }
}

pin_project! {
    #[project = InnerProjection]
    enum Inner<B: Body> {
        Live { #[pin] body: B },
        Kept { kept: Box<Kept> },
        // Looked into before it was handed on.
        Peeked { peeked: Box<Peeked<B>> },
    }
}

/// All of a short body, in memory: what [`Keeping`] comes to.
#[derive(Debug)]
pub struct Kept {
    chunks: vec::IntoIter<Bytes>,
    trailers: Option<HeaderMap>,
    _share: Option<Share>,
}

impl Kept {
    /// Nothing: what stands for a body that was too long to be kept.
    #[must_use]
    pub fn nothing() -> Kept {
        Kept { chunks: Vec::new().into_iter(), trailers: None, _share: None }
    }
}

impl<B: Body> RetryBody<B> {
    /// The server's own body.
    pub fn live(body: B) -> RetryBody<B> {
        RetryBody { inner: Inner::Live { body } }
    }

    /// What was kept over a wait.
    #[must_use]
    pub fn kept(kept: Kept) -> RetryBody<B> {
        RetryBody { inner: Inner::Kept { kept: Box::new(kept) } }
    }

    pub(super) fn peeked(peeked: Peeked<B>) -> RetryBody<B> {
        RetryBody { inner: Inner::Peeked { peeked: Box::new(peeked) } }
    }

    /// The server's own body, if this still is it.
    ///
    /// # Errors
    /// The whole of it back, if it was read to memory over a wait, or looked into.
    pub fn into_live(self) -> Result<B, RetryBody<B>> {
        match self.inner {
            Inner::Live { body } => Ok(body),
            inner => Err(RetryBody { inner }),
        }
    }
}

impl<B: Body> fmt::Debug for RetryBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.inner {
            Inner::Live { .. } => "RetryBody::Live",
            Inner::Kept { .. } => "RetryBody::Kept",
            Inner::Peeked { .. } => "RetryBody::Peeked",
        })
    }
}

impl<B: Body> Body for RetryBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().inner.project() {
            InnerProjection::Live { body } => body.poll_frame(cx).map_ok(into_bytes),
            InnerProjection::Kept { kept } => {
                let data = kept.chunks.next().map(Frame::data);
                let frame = data.or_else(|| kept.trailers.take().map(Frame::trailers));
                Poll::Ready(frame.map(Ok))
            }
            InnerProjection::Peeked { peeked } => peeked.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Live { body } => body.is_end_stream(),
            Inner::Kept { kept } => kept.chunks.as_slice().is_empty() && kept.trailers.is_none(),
            Inner::Peeked { peeked } => peeked.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Live { body } => body.size_hint(),
            Inner::Kept { kept } => {
                SizeHint::with_exact(kept.chunks.as_slice().iter().map(|chunk| chunk.len() as u64).sum())
            }
            Inner::Peeked { peeked } => peeked.size_hint(),
        }
    }
}

pub(super) fn into_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}

pin_project! {
    /// Reads a failed response during a wait, for authors of drivers. The body is dropped as soon as it has ended or turned out to be too long,
    /// which gives its connection back, or ends it.
    #[project = KeepingProjection]
    pub struct Keeping<B> {
        #[pin]
        body: Option<B>,
        chunks: Vec<Bytes>,
        trailers: Option<HeaderMap>,
        frames: u64,
        room: u64,
        share: Share,
        whole: bool,
    }
}

impl<B: Body> Keeping<B> {
    /// Keeps up to 16 KiB of `body`, as long as `memory` has room.
    pub fn new(body: B, memory: &Arc<ReplayMemory>) -> Keeping<B> {
        let whole = body.is_end_stream();
        let too_long = body.size_hint().lower() > KEPT_RESPONSE;
        Keeping {
            body: (!whole && !too_long).then_some(body),
            chunks: Vec::new(),
            trailers: None,
            frames: 0,
            room: KEPT_RESPONSE,
            share: memory.share(),
            whole,
        }
    }

    /// Reads what there is.
    pub fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>) {
        loop {
            let mut this = self.as_mut().project();
            let Some(body) = this.body.as_mut().as_pin_mut() else { return };
            match body.poll_frame(cx) {
                Poll::Pending => return,
                Poll::Ready(Some(Ok(frame))) => {
                    if self.as_mut().keep(into_bytes(frame)) {
                        continue;
                    }
                    self.as_mut().project().forget();
                }
                Poll::Ready(None) => *this.whole = true,
                // Half an answer would pass for a whole one.
                Poll::Ready(Some(Err(_))) => this.forget(),
            }
            self.as_mut().project().body.set(None);
        }
    }

    fn keep(self: Pin<&mut Self>, frame: Frame<Bytes>) -> bool {
        let this = self.project();
        *this.frames += 1;
        let length = frame.data_ref().map_or(0, |data| data.len() as u64);
        // A frame may be empty, but not for ever.
        if length > *this.room || *this.frames > KEPT_RESPONSE || !this.share.grow(length) {
            return false;
        }
        *this.room -= length;
        match frame.into_data() {
            Ok(data) => this.chunks.push(data),
            Err(frame) => *this.trailers = frame.into_trailers().ok(),
        }
        true
    }

    /// What was kept; `None` if that is not the whole of it. The body, if it is still being read, is dropped.
    pub fn finish(self: Pin<&mut Self>, memory: &Arc<ReplayMemory>) -> Option<Kept> {
        let mut this = self.project();
        this.body.set(None);
        let share = std::mem::replace(this.share, memory.share());
        let chunks = std::mem::take(this.chunks);
        this.whole.then(|| Kept {
            chunks: chunks.into_iter(),
            trailers: this.trailers.take(),
            _share: Some(share),
        })
    }
}

impl<B> fmt::Debug for Keeping<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping").field("frames", &self.frames).finish_non_exhaustive()
    }
}

impl<B> KeepingProjection<'_, B> {
    fn forget(&mut self) {
        self.chunks.clear();
        *self.trailers = None;
        self.share.release();
    }
}

/// What describes a body that is no longer there.
const OF_THE_BODY: [HeaderName; 8] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::TRANSFER_ENCODING,
    header::ETAG,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// Takes from the headers what only holds with the body.
pub fn without_body(headers: &mut HeaderMap) {
    for name in OF_THE_BODY {
        headers.remove(name);
    }
}
