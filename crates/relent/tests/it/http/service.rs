//! A service without a network: answers as it is told, and writes down the requests and when they came.

use std::collections::VecDeque;
use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Full;
use relent::timer::Manual;
use tower::Service;

pub(crate) type Answer = Result<Response<Full<Bytes>>, std::io::Error>;

/// What is asked of [`Told`] now and then instead: never to answer.
pub(crate) fn never() -> Answer {
    Err(std::io::Error::other("never"))
}

pub(crate) struct Told {
    time: Manual,
    /// Whether this instance has been polled ready since it was called last.
    ready: bool,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    answers: VecDeque<Answer>,
    requests: Vec<(Duration, HeaderMap)>,
    /// Calls after which the service is busy.
    busy_after: Option<usize>,
    waits: Option<Waker>,
}

/// Readiness is not cloned.
impl Clone for Told {
    fn clone(&self) -> Told {
        Told { time: self.time.clone(), ready: false, shared: Arc::clone(&self.shared) }
    }
}

impl Told {
    pub(crate) fn new(time: &Manual, answers: impl IntoIterator<Item = Answer>) -> Told {
        let shared = Shared { answers: answers.into_iter().collect(), ..Shared::default() };
        Told { time: time.clone(), ready: false, shared: Arc::new(Mutex::new(shared)) }
    }

    /// Not ready any more after so many calls.
    pub(crate) fn busy_after(self, calls: usize) -> Told {
        self.shared.lock().unwrap().busy_after = Some(calls);
        self
    }

    /// Ready again, and for ever.
    pub(crate) fn free(&self) {
        let mut shared = self.shared.lock().unwrap();
        shared.busy_after = None;
        shared.waits.take().unwrap().wake();
    }

    /// When the requests came.
    pub(crate) fn times(&self) -> Vec<Duration> {
        self.shared.lock().unwrap().requests.iter().map(|(time, _)| *time).collect()
    }

    /// What they said in a header, all values joined.
    pub(crate) fn said(&self, name: &str) -> Vec<String> {
        let shared = self.shared.lock().unwrap();
        let values = |headers: &HeaderMap| {
            let values: Vec<_> = headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
            values.join("; ")
        };
        shared.requests.iter().map(|(_, headers)| values(headers)).collect()
    }
}

/// An answer with headers, and "because" for a body.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)]) -> Answer {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Ok(response.body(Full::new(Bytes::from("because"))).unwrap())
}

impl<B> Service<Request<B>> for Told {
    type Response = Response<Full<Bytes>>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        let mut shared = self.shared.lock().unwrap();
        if shared.busy_after.is_some_and(|calls| shared.requests.len() >= calls) {
            shared.waits = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "A70: an attempt was made on a service that was not polled ready"
        );
        let mut shared = self.shared.lock().unwrap();
        shared.requests.push((self.time.elapsed(), request.headers().clone()));
        match shared.answers.pop_front().unwrap_or_else(|| answer(200, &[])) {
            Err(error) if error.to_string() == "never" => Box::pin(pending()),
            answer => Box::pin(ready(answer)),
        }
    }
}
