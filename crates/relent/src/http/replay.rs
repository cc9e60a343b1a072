//! A request body that can be sent again.
//!
//! The first try always streams; what passes through is kept up to one limit. Whether the body can be sent again is one
//! question with one answer: is every byte that was read still here? An attempt that read nothing leaves the body whole,
//! whatever its length; a body that passed the limit is never sent again in part.
//!
//! The body belongs to one attempt at a time. An attempt that was given up may still hold its part (in a connection's
//! task, say): the next attempt takes over under a lock, and the old one reads an error from then on, so that no byte is
//! sent twice or left out.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use relent_core::Failure;

use super::memory::ReplayMemory;
#[cfg(feature = "reqwest")]
use super::memory::Share;
use state::{Mode, State};

mod state;

type BoxError = Box<dyn Error + Send + Sync>;

/// A call's body: lends each attempt a [`ReplayBody`], and knows whether there can be another.
///
/// A body known to be empty costs nothing; any other one allocation.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use std::sync::Arc;
/// use relent::http::{Replay, ReplayMemory};
///
/// let memory = Arc::new(ReplayMemory::new(1024 * 1024));
/// let replay = Replay::new(Full::new(Bytes::from("order 7")), 64 * 1024, &memory);
/// let first = replay.next_attempt();
/// drop(first);
/// let second = replay.next_attempt();
/// # let _ = second;
/// ```
pub struct Replay<B>(Source<B>);

enum Source<B> {
    Empty,
    /// All of it in memory from the start. Beyond the limit (`kept` is false) it isn't kept for a repeat.
    #[cfg(feature = "reqwest")]
    Memory {
        bytes: Bytes,
        kept: bool,
        _share: Share,
    },
    Stream(Arc<Shared<B>>),
}

impl<B: Body> Replay<B> {
    /// Keeps up to `limit` bytes of `body`, as long as `memory` has room.
    #[must_use]
    pub fn new(body: B, limit: u64, memory: &Arc<ReplayMemory>) -> Replay<B> {
        if body.is_end_stream() {
            return Replay(Source::Empty);
        }
        let state = State::new(body, limit, memory.share());
        Replay(Source::Stream(Arc::new(Shared(Mutex::new(state)))))
    }

    /// The body for the next attempt. An earlier attempt's, if anybody still holds it, reads an error from now on.
    #[must_use]
    pub fn next_attempt(&self) -> ReplayBody<B> {
        ReplayBody(match &self.0 {
            Source::Empty => Attempt::Empty,
            #[cfg(feature = "reqwest")]
            Source::Memory { bytes, .. } => Attempt::Memory(bytes.clone()),
            Source::Stream(shared) => {
                let mut state = shared.state();
                state.attempt += 1;
                state.mode = Mode::Flowing;
                let (number, waker) = (state.attempt, state.waker.take());
                drop(state);
                waker.into_iter().for_each(Waker::wake);
                Attempt::Stream(Reader { shared: Arc::clone(shared), number, next: 0, trailers: false })
            }
        })
    }

    /// Whether the body is whole after an attempt that failed like this; and sees to it that it stays so until
    /// [`next_attempt`](Self::next_attempt), though the attempt's connection may read on.
    #[must_use]
    pub fn is_whole(&self, failure: &Failure) -> bool {
        match &self.0 {
            Source::Empty => true,
            #[cfg(feature = "reqwest")]
            Source::Memory { kept, .. } => *kept || failure.kind() == relent_core::Cause::Connect,
            Source::Stream(shared) => {
                let _ = failure;
                let mut state = shared.state();
                state.mode = Mode::Asked;
                state.lost_by.is_none()
            }
        }
    }

    /// Whether all of the body is here, read to its end and kept, so that another attempt can send it at the same time.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match &self.0 {
            Source::Empty => true,
            #[cfg(feature = "reqwest")]
            Source::Memory { kept, .. } => *kept,
            Source::Stream(shared) => shared.state().is_complete(),
        }
    }

    /// A body for an attempt beside those in flight, which keep theirs; `None` unless it is
    /// [complete](Self::is_complete).
    #[must_use]
    pub fn beside(&self) -> Option<ReplayBody<B>> {
        if !self.is_complete() {
            return None;
        }
        Some(ReplayBody(match &self.0 {
            Source::Empty => Attempt::Empty,
            #[cfg(feature = "reqwest")]
            Source::Memory { bytes, .. } => Attempt::Memory(bytes.clone()),
            Source::Stream(shared) => {
                let state = shared.state();
                let chunks = state.kept.iter().cloned().collect();
                Attempt::Copy(Box::new(Copied { chunks, trailers: state.trailers.clone() }))
            }
        }))
    }

    /// Another attempt follows, after a wait: the old one may send what can be kept, and nothing more.
    pub fn another_follows(&self) {
        if let Source::Stream(shared) = &self.0 {
            shared.change(Mode::Promised);
        }
    }
}

#[cfg(feature = "reqwest")]
impl<B> Replay<B> {
    /// A body that is in memory already.
    pub(crate) fn in_memory(bytes: Bytes, limit: u64, memory: &Arc<ReplayMemory>) -> Replay<B> {
        if bytes.is_empty() {
            return Replay(Source::Empty);
        }
        let mut share = memory.share();
        let length = bytes.len() as u64;
        let kept = length <= limit && share.grow(length);
        Replay(Source::Memory { bytes, kept, _share: share })
    }
}

impl<B> Drop for Replay<B> {
    /// No attempt follows: the last one streams on, and nothing more is kept.
    fn drop(&mut self) {
        if let Source::Stream(shared) = &self.0 {
            shared.change(Mode::Alone);
        }
    }
}

impl<B> fmt::Debug for Replay<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}

/// One attempt's reading of a body: what earlier attempts read, then the rest of the stream. Trailers are kept, and the
/// length is the original's.
pub struct ReplayBody<B>(Attempt<B>);

enum Attempt<B> {
    Empty,
    #[cfg(feature = "reqwest")]
    Memory(Bytes),
    Stream(Reader<B>),
    Copy(Box<Copied>),
}

/// A body of which everything is known.
struct Copied {
    chunks: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Copied {
    fn next(&mut self) -> Option<Frame<Bytes>> {
        match self.chunks.pop_front() {
            Some(chunk) => Some(Frame::data(chunk)),
            None => self.trailers.take().map(Frame::trailers),
        }
    }

    fn is_over(&self) -> bool {
        self.chunks.is_empty() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.chunks.iter().map(|chunk| chunk.len() as u64).sum();
        if self.trailers.is_none() {
            return SizeHint::with_exact(length);
        }
        let mut hint = SizeHint::new();
        hint.set_lower(length);
        hint
    }
}

#[cfg(feature = "reqwest")]
impl<B> ReplayBody<B> {
    /// The bytes of a body that has been in memory all along (or is empty), else the body as it was.
    pub(crate) fn into_bytes(self) -> Result<Bytes, ReplayBody<B>> {
        match self.0 {
            Attempt::Empty => Ok(Bytes::new()),
            Attempt::Memory(bytes) => Ok(bytes),
            Attempt::Stream(_) | Attempt::Copy(_) => Err(self),
        }
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody").finish_non_exhaustive()
    }
}

/// Watches how far a body was read.
#[cfg(feature = "grpc")]
pub(crate) struct Watch<B>(Option<Arc<Shared<B>>>);

#[cfg(feature = "grpc")]
impl<B: Body> Watch<B> {
    /// Whether the caller has said everything: what is left to be sent, if anything, is kept here.
    pub(crate) fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(|shared| shared.state().rest_is_over())
    }
}

#[cfg(feature = "grpc")]
impl<B> ReplayBody<B> {
    /// Watches the body on its way.
    pub(crate) fn watch(&self) -> Watch<B> {
        Watch(match &self.0 {
            Attempt::Stream(reader) => Some(Arc::clone(&reader.shared)),
            _ => None,
        })
    }
}

/// Fails where the caller's body fails, and with an error of its own where another attempt has taken over.
impl<B> Body for ReplayBody<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Attempt::Empty => Poll::Ready(None),
            #[cfg(feature = "reqwest")]
            Attempt::Memory(bytes) if bytes.is_empty() => Poll::Ready(None),
            #[cfg(feature = "reqwest")]
            Attempt::Memory(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Attempt::Stream(reader) => reader.poll_frame(cx),
            Attempt::Copy(copied) => Poll::Ready(copied.next().map(Ok)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Attempt::Empty => true,
            #[cfg(feature = "reqwest")]
            Attempt::Memory(bytes) => bytes.is_empty(),
            Attempt::Stream(reader) => reader.is_end_stream(),
            Attempt::Copy(copied) => copied.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Attempt::Empty => SizeHint::with_exact(0),
            #[cfg(feature = "reqwest")]
            Attempt::Memory(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Attempt::Stream(reader) => reader.size_hint(),
            Attempt::Copy(copied) => copied.size_hint(),
        }
    }
}

struct Shared<B>(Mutex<State<B>>);

impl<B> Shared<B> {
    /// A body that panicked while it was read has poisoned the lock; what it left is only dropped or reported.
    fn state(&self) -> MutexGuard<'_, State<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What becomes of bytes that can't be kept is decided: a reader that waited for that goes on.
    fn change(&self, mode: Mode) {
        let mut state = self.state();
        state.mode = mode;
        let waker = if state.aside.is_some() { state.waker.take() } else { None };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// An attempt's place in a shared body.
struct Reader<B> {
    shared: Arc<Shared<B>>,
    number: u32,
    /// The next kept chunk.
    next: usize,
    /// Whether the trailers were read.
    trailers: bool,
}

impl<B> Reader<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.shared.state();
        if let Some(error) = state.refusal(self.number) {
            return Poll::Ready(Some(Err(error.into())));
        }
        if let Some(chunk) = state.kept.get(self.next) {
            self.next += 1;
            return Poll::Ready(Some(Ok(Frame::data(chunk.clone()))));
        }
        if let Some(trailers) = &state.trailers {
            let again = (!std::mem::replace(&mut self.trailers, true)).then(|| trailers.clone());
            return Poll::Ready(again.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        let polled = state.poll_rest(cx);
        self.next = state.kept.len();
        self.trailers = state.trailers.is_some();
        polled
    }

    fn is_end_stream(&self) -> bool {
        let state = self.shared.state();
        let behind = self.next < state.kept.len() || state.trailers.is_some() && !self.trailers;
        state.refusal(self.number).is_none() && !behind && state.rest_is_over()
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.shared.state();
        if state.refusal(self.number).is_some() {
            return SizeHint::default();
        }
        let kept = state.kept.get(self.next..).unwrap_or_default();
        let length = kept.iter().map(|chunk| chunk.len() as u64).sum();
        if state.trailers.is_some() && !self.trailers {
            // With an exact length a client would frame the body by it, and HTTP/1.1 has trailers behind chunks alone.
            let mut hint = SizeHint::new();
            hint.set_lower(length);
            return hint;
        }
        state.rest_hint(length)
    }
}

/// Why an attempt can't read its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The attempt was given up, and another one reads the body.
    #[error("another attempt has taken this body over")]
    Superseded,
    /// An earlier attempt read more of it than was kept.
    #[error("the body can't be sent again: an earlier attempt read more of it than was kept")]
    NotKept,
}
