//! An HTTP server in memory that answers in order.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use relent_core::Instant;

use super::recorder::Recorder;
use super::seen::Log;
use crate::timer::{Clock, Timer, poll_until};

/// Answers in the order in which requests come, and what was asked: a tower service that stands in for an HTTP client, and
/// the server behind it.
///
/// Put it below an [`HttpRetryLayer`](crate::http::HttpRetryLayer), or below your own stack. A request is read to its end,
/// then the answer comes, at once unless [`takes`](HttpScript::takes) says otherwise. Its errors are [`io::Error`]s, which
/// [`Standard`](crate::Standard) knows. Clones play one script. A request beyond its end panics, unless
/// [`then_always`](HttpScript::then_always) says what follows.
///
/// ```
/// use std::time::Duration;
/// use bytes::Bytes;
/// use http::{Request, StatusCode};
/// use http_body_util::Full;
/// use relent::http::HttpRetryLayer;
/// use relent::testing::{self, HttpScript};
/// use relent::{Policy, Retry};
/// use tower::{Layer, Service};
///
/// let ((status, seen), took) = testing::block_on(async |time| {
///     let server = HttpScript::on(&time)
///         .answers(503).header("retry-after", "2")
///         .breaks().takes(Duration::from_millis(10))
///         .answers(200).body("done");
///     let retry = Retry::with_timer(Policy::default(), time).seed(7);
///     let mut client = HttpRetryLayer::new(retry).layer(server.clone());
///
///     let order = Request::put("http://orders.test/7").body(Full::new(Bytes::from("amount=5"))).unwrap();
///     (client.call(order).await.unwrap().status(), server.seen())
/// });
/// assert_eq!(status, StatusCode::OK);
/// assert_eq!(seen.len(), 3);
/// assert!(seen.iter().all(|request| request.body == "amount=5"));
/// assert!(seen[1].at >= Duration::from_secs(2) && took >= seen[2].at);
/// ```
pub struct HttpScript<T> {
    state: Arc<Mutex<State>>,
    timer: T,
    start: Instant,
    recorder: Option<Recorder<T>>,
}

struct State {
    lines: VecDeque<Line>,
    written: usize,
    always: Option<StatusCode>,
    calls: u32,
    seen: Log<SeenRequest>,
}

#[derive(Debug)]
struct Line {
    takes: Duration,
    act: Act,
}

#[derive(Debug)]
enum Act {
    Answer { status: StatusCode, headers: HeaderMap, body: Bytes, breaks: bool },
    Fail(io::ErrorKind),
    Hang,
}

/// A request as an [`HttpScript`] saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeenRequest {
    /// The count of requests, from 1.
    pub number: u32,
    /// When it was sent, from the script's making.
    pub at: Duration,
    /// Its method.
    pub method: Method,
    /// Its target.
    pub uri: Uri,
    /// Its header fields, trailers left out.
    pub headers: HeaderMap,
    /// What was read of its body: the first 64 KiB.
    pub body: Bytes,
    /// How long the body was, as far as it was read.
    pub body_length: u64,
    /// FNV-1a over the whole body, to tell bodies apart that are longer than what is kept.
    pub body_hash: u64,
    /// Whether the body was read to its end.
    pub whole: bool,
}

/// What is kept of a body.
const KEPT: usize = 64 << 10;

impl<T: Clock> HttpScript<T> {
    /// A script without a line; what takes time takes it on `timer`.
    #[must_use]
    pub fn on(timer: &T) -> HttpScript<T> {
        let state = State { lines: VecDeque::new(), written: 0, always: None, calls: 0, seen: Log::new() };
        HttpScript {
            state: Arc::new(Mutex::new(state)),
            start: timer.now(),
            timer: timer.clone(),
            recorder: None,
        }
    }

    /// The next request is answered with this status, and an empty body unless [`body`](HttpScript::body) follows.
    ///
    /// # Panics
    /// If it is no status.
    #[must_use]
    pub fn answers(self, status: u16) -> Self {
        let status = StatusCode::from_u16(status).expect("a status has three digits");
        self.line(Act::Answer { status, headers: HeaderMap::new(), body: Bytes::new(), breaks: false })
    }

    /// A header field of the answer written last; repeated ones stand beside one another.
    ///
    /// # Panics
    /// If no answer was written last, or if this is no header.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a header's name is a token");
        let value: HeaderValue = value.parse().expect("a header's value is visible ASCII");
        self.answer("header", |headers, _, _| {
            headers.append(name, value);
        })
    }

    /// The body of the answer written last.
    ///
    /// # Panics
    /// If no answer was written last.
    #[must_use]
    pub fn body(self, bytes: impl Into<Bytes>) -> Self {
        self.answer("body", |_, body, _| *body = bytes.into())
    }

    /// The connection breaks when the body written last has been sent, in place of its end.
    ///
    /// # Panics
    /// If no answer was written last.
    #[must_use]
    pub fn breaks_in_body(self) -> Self {
        self.answer("breaks_in_body", |_, _, breaks| *breaks = true)
    }

    /// The connection of the next request breaks after it was read, before an answer.
    #[must_use]
    pub fn breaks(self) -> Self {
        self.fails(io::ErrorKind::ConnectionReset)
    }

    /// The next request gets no connection, and is not read.
    #[must_use]
    pub fn refuses(self) -> Self {
        self.fails(io::ErrorKind::ConnectionRefused)
    }

    /// The next request ends with an error of this kind.
    #[must_use]
    pub fn fails(self, kind: io::ErrorKind) -> Self {
        self.line(Act::Fail(kind))
    }

    /// The next request is read, and never answered.
    #[must_use]
    pub fn times_out(self) -> Self {
        self.line(Act::Hang)
    }

    /// How long after its request the answer written last comes, or the connection breaks.
    ///
    /// # Panics
    /// If nothing is written before it.
    #[must_use]
    pub fn takes(self, time: Duration) -> Self {
        self.state().lines.back_mut().expect("`takes` follows an answer").takes = time;
        self
    }

    /// Every request beyond the lines above is answered with this status at once.
    ///
    /// # Panics
    /// If it is no status.
    #[must_use]
    pub fn then_always(self, status: u16) -> Self {
        self.state().always = Some(StatusCode::from_u16(status).expect("a status has three digits"));
        self
    }

    /// Writes to `recorder` when requests are sent, too.
    #[must_use]
    pub fn recorded_by(mut self, recorder: &Recorder<T>) -> Self {
        self.recorder = Some(recorder.clone());
        self
    }

    /// The requests that were sent, in the order in which their reading ended; the first hundred thousand.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.state().seen.all()
    }

    /// How many of the lines have not been played.
    #[must_use]
    pub fn left(&self) -> usize {
        self.state().lines.len()
    }

    fn line(self, act: Act) -> Self {
        let mut state = self.state();
        state.written += 1;
        state.lines.push_back(Line { takes: Duration::ZERO, act });
        drop(state);
        self
    }

    fn answer(self, what: &str, change: impl FnOnce(&mut HeaderMap, &mut Bytes, &mut bool)) -> Self {
        let mut state = self.state();
        match state.lines.back_mut().map(|line| &mut line.act) {
            Some(Act::Answer { headers, body, breaks, .. }) => change(headers, body, breaks),
            _ => panic!("`{what}` follows an answer"),
        }
        drop(state);
        self
    }

    /// What becomes of the request that is sent now, and its number.
    fn next(&self) -> (Line, u32) {
        let mut state = self.state();
        state.calls = state.calls.saturating_add(1);
        let written = state.written;
        let line = state.lines.pop_front().or_else(|| {
            let act = Act::Answer {
                status: state.always?,
                headers: HeaderMap::new(),
                body: Bytes::new(),
                breaks: false,
            };
            Some(Line { takes: Duration::ZERO, act })
        });
        match line {
            Some(line) => (line, state.calls),
            None => panic!(
                "the script has {written} answers, and one request more was sent: add a line, or then_always"
            ),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Clone for HttpScript<T> {
    fn clone(&self) -> Self {
        HttpScript {
            state: Arc::clone(&self.state),
            timer: self.timer.clone(),
            start: self.start,
            recorder: self.recorder.clone(),
        }
    }
}

impl<T> fmt::Debug for HttpScript<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpScript").finish_non_exhaustive()
    }
}

impl<B: Body, T: Timer> tower_service::Service<Request<B>> for HttpScript<T> {
    type Response = Response<ScriptedBody>;
    type Error = io::Error;
    type Future = HttpPlay<B, T>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> HttpPlay<B, T> {
        let (line, number) = self.next();
        if let Some(recorder) = &self.recorder {
            recorder.launched(number);
        }
        let now = self.timer.now();
        let (parts, body) = request.into_parts();
        let unread = matches!(line.act, Act::Fail(io::ErrorKind::ConnectionRefused));
        HttpPlay {
            reading: Some(Reading {
                number,
                at: now.since(self.start),
                head: parts,
                kept: BytesMut::new(),
                length: 0,
                hash: FNV_OFFSET,
            }),
            body: if unread { None } else { Some(body) },
            ends: now + line.takes,
            act: Some(line.act),
            script: self.clone(),
            sleep: None,
        }
    }
}

/// A request that is being read.
struct Reading {
    number: u32,
    at: Duration,
    head: http::request::Parts,
    kept: BytesMut,
    length: u64,
    hash: u64,
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl Reading {
    fn takes(&mut self, mut data: impl Buf) {
        while data.has_remaining() {
            let chunk = data.chunk();
            let room = KEPT.saturating_sub(self.kept.len()).min(chunk.len());
            self.kept.extend_from_slice(&chunk[..room]);
            self.hash =
                chunk.iter().fold(self.hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME));
            let length = chunk.len();
            self.length += length as u64;
            data.advance(length);
        }
    }

    fn seen(self, whole: bool) -> SeenRequest {
        SeenRequest {
            number: self.number,
            at: self.at,
            method: self.head.method,
            uri: self.head.uri,
            headers: self.head.headers,
            body: self.kept.freeze(),
            body_length: self.length,
            body_hash: self.hash,
            whole,
        }
    }
}

pin_project! {
    /// A request that an [`HttpScript`] reads, and answers.
    #[must_use = "futures do nothing unless polled"]
    pub struct HttpPlay<B, T>
    where
        T: Timer,
    {
        script: HttpScript<T>,
        reading: Option<Reading>,
        #[pin]
        body: Option<B>,
        ends: Instant,
        act: Option<Act>,
        #[pin]
        sleep: Option<T::Sleep>,
    }

    impl<B, T> PinnedDrop for HttpPlay<B, T>
    where
        T: Timer,
    {
        // Also one that was cut off was seen.
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(reading) = this.reading.take() {
                let mut state = this.script.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.seen.add(reading.seen(false));
            }
        }
    }
}

impl<B: Body, T: Timer> HttpPlay<B, T> {
    /// Reads the body to its end; an error is the client's own.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let Some(mut reading) = this.reading.take() else { return Poll::Ready(Ok(())) };
        let whole = loop {
            let Some(body) = this.body.as_mut().as_pin_mut() else { break false };
            match body.poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        reading.takes(data);
                    }
                }
                Poll::Ready(Some(Err(_))) => {
                    this.body.set(None);
                    this.script.state().seen.add(reading.seen(false));
                    return Poll::Ready(Err(io::Error::other("the request's body broke off")));
                }
                Poll::Ready(None) => break true,
                Poll::Pending => {
                    *this.reading = Some(reading);
                    return Poll::Pending;
                }
            }
        };
        this.body.set(None);
        this.script.state().seen.add(reading.seen(whole));
        Poll::Ready(Ok(()))
    }
}

impl<B: Body, T: Timer> Future for HttpPlay<B, T> {
    type Output = io::Result<Response<ScriptedBody>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.as_mut().poll_read(cx))?;
        let this = self.project();
        if let Some(Act::Hang) = this.act {
            return Poll::Pending;
        }
        if this.script.timer.now() < *this.ends {
            ready!(poll_until(&this.script.timer, *this.ends, this.sleep, cx));
        }
        match this.act.take().expect("a future is not polled after its end") {
            Act::Answer { status, headers, body, breaks } => {
                let mut response = Response::new(ScriptedBody { data: Some(body), breaks });
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                Poll::Ready(Ok(response))
            }
            Act::Fail(kind) => Poll::Ready(Err(kind.into())),
            Act::Hang => Poll::Pending,
        }
    }
}

impl<B, T: Timer> fmt::Debug for HttpPlay<B, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpPlay").field("act", &self.act).field("ends", &self.ends).finish_non_exhaustive()
    }
}

/// The body of an [`HttpScript`]'s answer.
#[derive(Debug)]
pub struct ScriptedBody {
    data: Option<Bytes>,
    breaks: bool,
}

impl Body for ScriptedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if std::mem::take(&mut self.breaks) {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into())));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        !self.breaks && self.data.as_ref().is_none_or(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.data {
            _ if self.breaks => SizeHint::new(),
            Some(data) => SizeHint::with_exact(data.len() as u64),
            None => SizeHint::with_exact(0),
        }
    }
}
