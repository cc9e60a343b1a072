//! HTTP/2 connections to one endpoint, of one worker: many requests share one, and another is opened when it is full.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use relent_core::Instant;
use tokio::io::{AsyncRead, AsyncWrite};

use super::attempt::Outgoing;

/// More streams than this on one connection get in each other's way, whatever the peer allows.
const MOST_STREAMS: usize = 100;
/// A connection that doesn't answer a ping is dead, though the system may not know for minutes.
const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// With more silent connections than this it is the endpoint that is slow: no others are opened for it.
const MOST_SILENT: usize = 2;

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Shared {
    open: Mutex<Vec<Connection>>,
    /// Held while one is opened, so that a burst of requests opens one and not many.
    opening: tokio::sync::Mutex<()>,
    /// How many streams the connection that was asked last bears, which the next will, too: until its own word is here,
    /// a burst of requests would wait for places on it. 0: none has said.
    usual: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Outgoing>,
    load: Arc<Load>,
    /// Since when it has had no stream, as far as the last look at it knows.
    idle_since: Option<Instant>,
}

/// What is known of a connection, for those whose requests are on it, too.
#[derive(Debug)]
struct Load {
    streams: AtomicUsize,
    /// How many it bears.
    most: AtomicUsize,
    /// The time of a request was up, and nothing has been answered since. It may be dead, which the pings find out later
    /// than the request can wait: the next attempt goes elsewhere.
    silent: AtomicBool,
}

/// A request's place on a connection.
#[derive(Debug)]
pub(super) struct Stream(Silence);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Stream {
    /// A response is there: the connection lives.
    pub(super) fn answered(&self) {
        let silent = &self.0.0.silent;
        if silent.load(Ordering::Relaxed) {
            silent.store(false, Ordering::Relaxed);
        }
    }

    /// To be told where none comes.
    pub(super) fn silence(&self) -> Silence {
        self.0.clone()
    }
}

/// Tells a connection that it did not answer in time.
#[derive(Clone, Debug)]
pub(super) struct Silence(Arc<Load>);

impl Silence {
    pub(super) fn tell(&self) {
        self.0.silent.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place on a connection that is there.
    pub(super) fn take(&self) -> Option<(SendRequest<Outgoing>, Stream)> {
        let mut open = self.open();
        open.retain(|connection| !connection.sender.is_closed());
        if let Some(connection) = open.iter_mut().find(|own| own.has_room() && !own.is_silent()) {
            return Some(connection.enter());
        }
        if open.iter().filter(|own| own.is_silent()).count() <= MOST_SILENT {
            return None;
        }
        open.iter_mut().rev().find(|own| own.has_room()).map(Connection::enter)
    }

    /// The right to open one; whoever had to wait for it looks again first.
    pub(super) async fn opening(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.opening.lock().await
    }

    /// Speaks HTTP/2 on `io`, in a task that ends with the connection.
    pub(super) async fn add<T>(&self, io: T) -> hyper::Result<(SendRequest<Outgoing>, Stream)>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let usual = match self.usual.load(Ordering::Relaxed) {
            0 => MOST_STREAMS,
            told => told,
        };
        let (sender, mut connection) = Builder::new(TokioExecutor::new())
            .initial_max_send_streams(usual)
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(io))
            .await?;
        let load = Arc::new(Load {
            streams: AtomicUsize::new(0),
            most: AtomicUsize::new(usual),
            silent: AtomicBool::new(false),
        });
        let (told, usual) = (Arc::clone(&load), Arc::clone(&self.usual));
        tokio::spawn(poll_fn(move |cx| {
            let polled = Pin::new(&mut connection).poll(cx);
            // The peer may say, and change, how many it bears.
            let most = connection.current_max_send_streams().clamp(1, MOST_STREAMS);
            told.most.store(most, Ordering::Relaxed);
            usual.store(most, Ordering::Relaxed);
            polled.map(drop)
        }));
        let mut added = Connection { sender, load, idle_since: None };
        let place = added.enter();
        self.open().push(added);
        Ok(place)
    }

    pub(super) fn expire(&self, now: Instant, timeout: Duration) {
        self.open().retain_mut(|connection| {
            if connection.load.streams.load(Ordering::Relaxed) > 0 {
                connection.idle_since = None;
                return !connection.sender.is_closed();
            }
            let since = *connection.idle_since.get_or_insert(now);
            !connection.sender.is_closed() && now.since(since) < timeout
        });
    }
}

impl Connection {
    fn has_room(&self) -> bool {
        self.load.streams.load(Ordering::Relaxed) < self.load.most.load(Ordering::Relaxed)
    }

    fn is_silent(&self) -> bool {
        self.load.silent.load(Ordering::Relaxed)
    }

    fn enter(&mut self) -> (SendRequest<Outgoing>, Stream) {
        self.load.streams.fetch_add(1, Ordering::Relaxed);
        self.idle_since = None;
        (self.sender.clone(), Stream(Silence(Arc::clone(&self.load))))
    }
}
