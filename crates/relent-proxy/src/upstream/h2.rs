//! HTTP/2 connections to one endpoint, of one worker: many requests share one, and another is opened when it is full.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// The open connections.
#[derive(Debug, Default)]
pub(super) struct Shared {
    open: Mutex<Vec<Connection>>,
    /// Held while one is opened, so that a burst of requests opens one and not many.
    opening: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Connection {
    sender: SendRequest<Outgoing>,
    streams: Arc<AtomicUsize>,
    /// How many it bears.
    most: Arc<AtomicUsize>,
    /// Since when it has had no stream, as far as the last look at it knows.
    idle_since: Option<Instant>,
}

/// A request's place on a connection.
#[derive(Debug)]
pub(super) struct Stream(Arc<AtomicUsize>);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
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
        let free = |connection: &&mut Connection| {
            connection.streams.load(Ordering::Relaxed) < connection.most.load(Ordering::Relaxed)
        };
        open.iter_mut().find(free).map(Connection::enter)
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
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(io))
            .await?;
        let most = Arc::new(AtomicUsize::new(MOST_STREAMS));
        let told = Arc::clone(&most);
        let mut connection = connection;
        tokio::spawn(poll_fn(move |cx| {
            let polled = Pin::new(&mut connection).poll(cx);
            // The peer may say, and change, how many it bears.
            told.store(connection.current_max_send_streams().clamp(1, MOST_STREAMS), Ordering::Relaxed);
            polled.map(drop)
        }));
        let mut added = Connection { sender, streams: Arc::default(), most, idle_since: None };
        let place = added.enter();
        self.open().push(added);
        Ok(place)
    }

    pub(super) fn expire(&self, now: Instant, timeout: Duration) {
        self.open().retain_mut(|connection| {
            if connection.streams.load(Ordering::Relaxed) > 0 {
                connection.idle_since = None;
                return !connection.sender.is_closed();
            }
            let since = *connection.idle_since.get_or_insert(now);
            !connection.sender.is_closed() && now.since(since) < timeout
        });
    }
}

impl Connection {
    fn enter(&mut self) -> (SendRequest<Outgoing>, Stream) {
        self.streams.fetch_add(1, Ordering::Relaxed);
        self.idle_since = None;
        (self.sender.clone(), Stream(Arc::clone(&self.streams)))
    }
}
