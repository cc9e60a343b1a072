//! One lane's own server: real HTTP on loopback, with a capacity that is worked out, not burnt.
//!
//! Requests queue first in, first out for a few workers. A request costs its work whether its caller still waits or
//! not: that is what most servers do, and what keeps an overloaded one down. Executions are counted by call, since a
//! payment that was executed twice looks like a success to everyone else.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use super::arrivals::call_of;
use super::clock::Clock;
use super::dice::{Dice, Stream};
use super::scenario::Scenario;

/// Requests that may queue: more than a run can bring (three a call, 4000 calls), yet a bound.
const QUEUE: usize = 20_000;

/// What a server did for whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Account {
    /// Calls whose work was done more than once.
    pub(crate) executed_twice: usize,
    /// Requests worked on.
    pub(crate) executed: usize,
    /// Requests worked on after their callers had gone.
    pub(crate) wasted: usize,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Backend {
    address: SocketAddr,
    desk: Arc<Desk>,
}

impl Backend {
    /// Listens on a free port of 127.0.0.1 and serves until the runtime ends.
    pub(crate) async fn start(scenario: Arc<Scenario>, calls: usize, clock: Clock) -> io::Result<Backend> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (queue, jobs) = mpsc::channel(QUEUE);
        let books = Mutex::new(Books { arrived: vec![0; calls], executed: vec![0; calls], wasted: 0 });
        let desk = Arc::new(Desk { scenario, clock, queue, books });
        let jobs = Arc::new(tokio::sync::Mutex::new(jobs));
        for _ in 0..desk.scenario.workers {
            tokio::spawn(work(Arc::clone(&desk), Arc::clone(&jobs)));
        }
        tokio::spawn(accept(listener, Arc::clone(&desk)));
        Ok(Backend { address, desk })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its books so far. Only payments count as executed twice: a look at an order does no harm.
    pub(crate) fn account(&self, is_payment: impl Fn(usize) -> bool) -> Account {
        let books = self.desk.books.lock().unwrap_or_else(PoisonError::into_inner);
        let twice = |(call, times): (usize, &u32)| *times > 1 && is_payment(call);
        Account {
            executed_twice: books.executed.iter().enumerate().filter(|entry| twice(*entry)).count(),
            executed: books.executed.iter().map(|times| *times as usize).sum(),
            wasted: books.wasted,
        }
    }
}

/// Where requests are taken in.
#[derive(Debug)]
struct Desk {
    scenario: Arc<Scenario>,
    clock: Clock,
    queue: mpsc::Sender<Job>,
    books: Mutex<Books>,
}

/// By call: requests that came, and how often its work was done.
#[derive(Debug)]
struct Books {
    arrived: Vec<u32>,
    executed: Vec<u32>,
    wasted: usize,
}

/// A request in the queue.
#[derive(Debug)]
struct Job {
    call: usize,
    arrived: Duration,
    work: Duration,
    done: oneshot::Sender<()>,
}

/// What becomes of a request's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Answered,
    Lost,
    RefusedAtTheDoor,
}

/// The connection is closed in place of an answer.
#[derive(Debug)]
struct AnswerLost;

impl fmt::Display for AnswerLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("answer lost on purpose")
    }
}

impl Error for AnswerLost {}

impl Desk {
    async fn serve(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, AnswerLost> {
        let call = call_of(request.uri().path()).map(|id| id as usize);
        // A request that doesn't come in whole is not begun.
        let body = request.into_body().collect().await;
        let (Some(call), Ok(_)) = (call, body) else { return Ok(answer(StatusCode::BAD_REQUEST)) };
        let Some(number) = self.take_in(call) else { return Ok(answer(StatusCode::NOT_FOUND)) };
        let fate = self.fate(call as u32, number);
        if fate == Fate::RefusedAtTheDoor {
            return Ok(answer(StatusCode::SERVICE_UNAVAILABLE));
        }
        let work = self.dice().exponential(self.scenario.service, Stream::Work, call as u32, number);
        let (done, finished) = oneshot::channel();
        let job = Job { call, arrived: self.clock.now(), work, done };
        if self.queue.try_send(job).is_err() || finished.await.is_err() {
            return Ok(answer(StatusCode::SERVICE_UNAVAILABLE));
        }
        if fate == Fate::Lost { Err(AnswerLost) } else { Ok(answer(StatusCode::OK)) }
    }

    /// Which of the call's requests this is, from 1.
    fn take_in(&self, call: usize) -> Option<u32> {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let arrived = books.arrived.get_mut(call)?;
        *arrived += 1;
        Some(*arrived)
    }

    fn fate(&self, call: u32, number: u32) -> Fate {
        let scenario = &self.scenario;
        let lost = if scenario.in_outage(self.clock.now()) { scenario.lost_in_outage } else { scenario.lost };
        match self.dice().roll(Stream::Fault, call, number) {
            roll if roll < scenario.refused => Fate::RefusedAtTheDoor,
            roll if roll < scenario.refused + lost => Fate::Lost,
            _ => Fate::Answered,
        }
    }

    fn dice(&self) -> Dice {
        Dice::seeded(self.scenario.seed)
    }
}

/// One worker. It keeps account of its own time: a timer that fires late delays an answer, not the next one's work,
/// so that the capacity is what it is said to be on a busy machine too.
async fn work(desk: Arc<Desk>, jobs: Arc<tokio::sync::Mutex<mpsc::Receiver<Job>>>) {
    let mut free_at = Duration::ZERO;
    loop {
        let next = jobs.lock().await.recv().await;
        let Some(job) = next else { return };
        free_at = desk.scenario.done_at(free_at.max(job.arrived), job.work);
        desk.clock.sleep_until(free_at).await;
        // In the books before the answer: who has the answer can count on it.
        let mut books = desk.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.executed[job.call] += 1;
        if job.done.send(()).is_err() {
            books.wasted += 1;
        }
    }
}

async fn accept(listener: TcpListener, desk: Arc<Desk>) {
    loop {
        // An accept error (out of descriptors, a caller gone again) concerns one caller, who sees it.
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(stream, Arc::clone(&desk)));
        } else {
            desk.clock.sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn converse(stream: TcpStream, desk: Arc<Desk>) {
    // Small answers should leave at once; without it they only leave later.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let desk = Arc::clone(&desk);
        async move { desk.serve(request).await }
    });
    // It ends with an error where callers gave up and where answers are lost: both are the demo's subject.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn answer(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"{}\n")));
    *response.status_mut() = status;
    response
}
