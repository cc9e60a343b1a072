//! A server without a network: answers by a script, and writes down what it was sent and when.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use relent::grpc::{GrpcRetryLayer, Peeked};
use relent::http::{ReplayBody, RetryBody};
use relent::timer::{Clock, SystemTimer, Timer};
use relent::{Instant, Policy, PolicyBuilder, RepeatRule, Retry, RetryError};
use tower::{Layer, Service, ServiceExt};

/// How long it took.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(SystemTimer.now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        SystemTimer.now().since(self.0)
    }
}

fn sleep(milliseconds: u64) -> <SystemTimer as Timer>::Sleep {
    SystemTimer.sleep_until(SystemTimer.now() + Duration::from_millis(milliseconds))
}

/// One thing that an answer does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Wait(u64),
    /// Reads the request to its end first.
    Read,
    Head(u16, Vec<(&'static str, &'static str)>),
    Data(&'static str),
    Trailers(Vec<(&'static str, &'static str)>),
    /// As a client reports a stream that a GOAWAY left unprocessed.
    Unseen,
}

/// A head with a status: the whole answer.
pub(crate) fn status(code: &'static str) -> Vec<Act> {
    vec![Act::Read, Act::Head(200, vec![("grpc-status", code)])]
}

/// The same with another field.
pub(crate) fn status_with(code: &'static str, name: &'static str, value: &'static str) -> Vec<Act> {
    vec![Act::Read, Act::Head(200, vec![("grpc-status", code), (name, value)])]
}

/// A head, a message, and the status after it.
pub(crate) fn message(text: &'static str) -> Vec<Act> {
    vec![
        Act::Read,
        Act::Head(200, vec![("content-type", "application/grpc")]),
        Act::Data(text),
        Act::Trailers(vec![("grpc-status", "0")]),
    ]
}

/// What came with one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Duration,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

#[derive(Clone)]
pub(crate) struct Server(Arc<Mutex<State>>);

struct State {
    began: Stopwatch,
    script: VecDeque<Vec<Act>>,
    seen: Vec<Seen>,
}

/// Answers that come once the script is over.
const OVER: &str = "the script is over";

impl Server {
    pub(crate) fn new(script: impl IntoIterator<Item = Vec<Act>>) -> Server {
        let state =
            State { began: Stopwatch::start(), script: script.into_iter().collect(), seen: Vec::new() };
        Server(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.lock().unwrap().seen.clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen().len()
    }

    /// When attempts came, in milliseconds.
    pub(crate) fn times(&self) -> Vec<u128> {
        self.seen().iter().map(|seen| seen.at.as_millis()).collect()
    }

    /// What they said in a field; empty where they said nothing.
    pub(crate) fn said(&self, name: &str) -> Vec<String> {
        let value =
            |headers: &HeaderMap| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
        self.seen().iter().map(|seen| value(&seen.headers)).collect()
    }

    async fn answer<B>(self, request: Request<B>) -> io::Result<Response<Answer>>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Debug,
    {
        let (parts, body) = request.into_parts();
        let (at, acts) = {
            let mut state = self.0.lock().unwrap();
            let acts = state.script.pop_front().unwrap_or_else(|| panic!("{OVER}"));
            let (at, headers) = (state.began.elapsed(), parts.headers);
            state.seen.push(Seen { at, headers, body: Bytes::new() });
            (state.seen.len() - 1, acts)
        };
        let mut acts = VecDeque::from(acts);
        let mut body = Some(body);
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Wait(ms) => sleep(ms).await,
                Act::Read => {
                    let body = body.take().unwrap().collect().await.unwrap().to_bytes();
                    self.0.lock().unwrap().seen[at].body = body;
                }
                Act::Head(status, fields) => {
                    let mut response = Response::builder().status(status);
                    *response.headers_mut().unwrap() = headers(&fields);
                    return Ok(response.body(Answer { acts, sleep: None }).unwrap());
                }
                Act::Unseen => return Err(io::Error::other(Unseen)),
                Act::Data(_) | Act::Trailers(_) => {
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
            }
        }
        std::future::pending().await
    }
}

fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(HeaderName::from_static(name), value.parse().unwrap());
    }
    headers
}

/// What stands for a client's own error.
#[derive(Debug, thiserror::Error)]
#[error("the stream was never processed")]
pub(crate) struct Unseen;

impl<B> Service<Request<ReplayBody<B>>> for Server
where
    B: Body + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    ReplayBody<B>: Send,
{
    type Response = Response<Answer>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Response<Answer>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<B>>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// The body of a response, as the script goes on.
#[derive(Debug)]
pub(crate) struct Answer {
    acts: VecDeque<Act>,
    sleep: Option<Pin<Box<<SystemTimer as Timer>::Sleep>>>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            return Poll::Ready(match self.acts.pop_front() {
                None => None,
                Some(Act::Wait(ms)) => {
                    self.sleep = Some(Box::pin(sleep(ms)));
                    continue;
                }
                Some(Act::Data(text)) => Some(Ok(Frame::data(Bytes::from_static(text.as_bytes())))),
                Some(Act::Trailers(fields)) => Some(Ok(Frame::trailers(headers(&fields)))),
                Some(_) => Some(Err(io::ErrorKind::ConnectionReset.into())),
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.acts.is_empty()
    }
}

/// Repeats everything, without jitter: 10 ms, 20 ms, 40 ms.
pub(crate) fn always() -> PolicyBuilder {
    Policy::exponential(Duration::from_millis(10), Duration::from_secs(1))
        .jitter(relent::Jitter::None)
        .throttled_base(Duration::from_millis(1))
        .repeat(RepeatRule::Always)
        .attempts(4)
        .no_budget()
}

pub(crate) type Ended = Result<Response<RetryBody<Peeked<Answer>>>, RetryError<io::Error>>;

/// A call through a layer.
pub(crate) async fn call<B, C>(layer: &GrpcRetryLayer<C>, server: &Server, request: Request<B>) -> Ended
where
    B: Body + Unpin + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    ReplayBody<B>: Send,
    C: relent::Classify<io::Error> + Clone,
{
    layer.layer(server.clone()).oneshot(request).await
}

/// A request of one message.
pub(crate) fn request() -> Request<http_body_util::Full<Bytes>> {
    Request::post("/shop.Prices/Get").body("question".into()).unwrap()
}

/// A plain call by a policy.
pub(crate) async fn by(policy: PolicyBuilder, server: &Server) -> Ended {
    call(&GrpcRetryLayer::new(Retry::new(policy.build().unwrap())), server, request()).await
}

/// How a call that was answered ended: the status in its head, its reason and attempts, if it was stopped.
pub(crate) fn ending(ended: &Ended) -> (Option<&str>, Option<(relent::StopReason, u32)>) {
    let response = ended.as_ref().expect("there was an answer");
    let status = response.headers().get("grpc-status").map(|status| status.to_str().unwrap());
    let stopped = response.extensions().get::<relent::http::Stopped>();
    (status, stopped.map(|stopped| (stopped.reason, stopped.attempts)))
}
