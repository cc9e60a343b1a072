//! Idle HTTP/1.1 connections to one endpoint, of one worker: the last one used is the first one taken, so that few stay
//! warm and the others can go.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relent_core::Instant;

use super::h1::Connection;
use super::h2::Stream;

/// More than this are closed rather than kept.
const MOST_IDLE: usize = 1024;
/// How many idle connections that are still busy with their last request are passed over.
const MOST_PASSED_OVER: usize = 4;

#[derive(Debug)]
pub(super) struct Pool {
    idle_timeout: Duration,
    /// Only this worker takes it: never contended.
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

impl Pool {
    pub(super) fn new(idle_timeout: Duration) -> Pool {
        Pool { idle_timeout, idle: Mutex::new(Vec::new()) }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that is ready for a request, if there is one.
    pub(super) fn take(&self, now: Instant) -> Option<Connection> {
        let mut idle = self.idle();
        // The usual case first.
        if idle
            .last()
            .is_some_and(|last| last.connection.is_ready() && now.since(last.since) < self.idle_timeout)
        {
            return idle.pop().map(|last| last.connection);
        }
        let mut passed_over = 0;
        while passed_over < idle.len().min(MOST_PASSED_OVER) {
            let place = idle.len() - 1 - passed_over;
            if idle[place].connection.is_closed() || now.since(idle[place].since) >= self.idle_timeout {
                idle.remove(place);
            } else if idle[place].connection.is_ready() {
                return Some(idle.remove(place).connection);
            } else {
                passed_over += 1;
            }
        }
        None
    }

    fn give(&self, connection: Connection, now: Instant) {
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE && !connection.is_closed() {
            idle.push(Idle { connection, since: now });
        }
    }

    pub(super) fn expire(&self, now: Instant) {
        let timeout = self.idle_timeout;
        self.idle().retain(|idle| !idle.connection.is_closed() && now.since(idle.since) < timeout);
    }
}

/// A connection on which a response is being read. Given back when that is whole; dropped before, the connection ends, or
/// the stream on it does.
#[derive(Debug)]
pub(crate) struct Lease(Held);

#[derive(Debug)]
enum Held {
    Nothing,
    Connection(Arc<Pool>, Connection),
    /// Other requests share the connection: only the place on it is given back, by its drop.
    Stream {
        _place: Stream,
    },
}

impl Lease {
    pub(super) fn new(pool: &Arc<Pool>, connection: Connection) -> Lease {
        Lease(Held::Connection(Arc::clone(pool), connection))
    }

    pub(super) fn shared(place: Stream) -> Lease {
        Lease(Held::Stream { _place: place })
    }

    /// The response was read to its end.
    pub(crate) fn give_back(&mut self, now: Instant) {
        if let Held::Connection(pool, connection) = std::mem::replace(&mut self.0, Held::Nothing) {
            pool.give(connection, now);
        }
    }

    /// The connection serves no other request: it became a tunnel, or it may be the wrong one for this host.
    pub(crate) fn forget(&mut self) {
        self.0 = Held::Nothing;
    }
}
