//! What a worker knows of its clients' connections, and the sweep that ends those that are of no use.
//!
//! One look at all of them every second costs a request nothing, where a timer for each would.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use relent_core::Instant;

use super::pulse::{Pulse, Pulses};

/// One connection, as its task, its requests and the sweep see it. One thread uses it: relaxed loads and stores do.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: Option<SocketAddr>,
    /// Requests that have begun.
    begun: AtomicU64,
    running: AtomicU32,
    /// Bytes of a head have come, and its end has not.
    inside_head: AtomicBool,
    /// A write waits for the client to read.
    blocked: AtomicBool,
    /// Writes that the client took.
    writes: AtomicU64,
    /// A request's body is not read to its end.
    unread: AtomicBool,
    /// It has changed its protocol (101).
    tunnel: AtomicBool,
    /// A head is refused as soon as nothing runs.
    refusing: AtomicBool,
    http2: AtomicBool,
    order: AtomicU8,
    waker: Mutex<Option<Waker>>,
    pulses: Pulses,
}

/// A request on a connection, until the end of its response.
#[derive(Debug)]
pub(crate) struct Running(pub(crate) Arc<Connection>);

impl Drop for Running {
    fn drop(&mut self) {
        let running = &self.0.running;
        running.store(running.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
        if self.0.refusing.load(Ordering::Relaxed) {
            self.0.wake();
        }
    }
}

/// What a connection is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Order {
    Go = 0,
    /// Finish what runs, and take no more.
    Finish = 1,
    /// End now.
    Cut = 2,
}

impl Connection {
    pub(crate) fn new(peer: Option<SocketAddr>) -> Connection {
        Connection {
            peer,
            begun: AtomicU64::new(0),
            running: AtomicU32::new(0),
            inside_head: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            writes: AtomicU64::new(0),
            unread: AtomicBool::new(false),
            tunnel: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            http2: AtomicBool::new(false),
            order: AtomicU8::new(0),
            waker: Mutex::new(None),
            pulses: Pulses::default(),
        }
    }

    /// A request has begun.
    pub(crate) fn begin(self: &Arc<Self>) -> Running {
        self.begun.store(self.begun.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.running.store(self.running.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn set_inside_head(&self, inside: bool) {
        self.inside_head.store(inside, Ordering::Relaxed);
    }

    pub(crate) fn set_http2(&self) {
        self.http2.store(true, Ordering::Relaxed);
    }

    /// The client took some bytes.
    pub(crate) fn wrote(&self) {
        self.blocked.store(false, Ordering::Relaxed);
        self.writes.store(self.writes.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// The client takes none.
    pub(crate) fn blocked(&self) {
        self.blocked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn set_unread(&self, unread: bool) {
        self.unread.store(unread, Ordering::Relaxed);
    }

    /// A head is to be refused; the end of the request before it wakes the connection's task.
    pub(crate) fn set_refusing(&self) {
        self.refusing.store(true, Ordering::Relaxed);
        self.inside_head.store(false, Ordering::Relaxed);
    }

    pub(crate) fn set_tunnel(&self) {
        self.tunnel.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_tunnel(&self) -> bool {
        self.tunnel.load(Ordering::Relaxed)
    }

    pub(crate) fn is_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }

    /// Watches a response from now on, where the connection itself does not tell whether it moves.
    pub(crate) fn pulse(&self) -> Option<Arc<Pulse>> {
        self.http2.load(Ordering::Relaxed).then(|| self.pulses.add())
    }

    pub(crate) fn order(&self) -> Order {
        match self.order.load(Ordering::Relaxed) {
            0 => Order::Go,
            1 => Order::Finish,
            _ => Order::Cut,
        }
    }

    /// Remembers whom to wake for an order.
    pub(crate) fn wait_for_orders(&self, waker: &Waker) {
        let mut own = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *own {
            Some(own) => own.clone_from(waker),
            None => *own = Some(waker.clone()),
        }
    }

    fn tell(&self, order: Order) {
        if self.order() < order {
            self.order.store(order as u8, Ordering::Relaxed);
            self.wake();
        }
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// How long connections may be of no use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) header: Duration,
    pub(crate) idle: Duration,
    pub(crate) body: Duration,
}

/// All connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<Register>);

#[derive(Debug, Default)]
struct Register {
    next: u64,
    finishing: bool,
    open: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    connection: Arc<Connection>,
    /// How it stood at an earlier look, and when that was.
    stood: Standing,
    since: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Busy,
    /// The client does not read.
    Blocked(u64),
    InsideHead(u64),
    Idle(u64),
}

/// A connection's place in the register; dropped, it is gone.
#[derive(Debug)]
pub(crate) struct Registered<'a> {
    all: &'a Connections,
    key: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.all.register().open.remove(&self.key);
    }
}

impl Connections {
    fn register(&self) -> MutexGuard<'_, Register> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, connection: &Arc<Connection>) -> Registered<'_> {
        let mut register = self.register();
        let key = register.next;
        register.next += 1;
        if register.finishing {
            connection.tell(Order::Finish);
        }
        let entry = Entry { connection: Arc::clone(connection), stood: Standing::Busy, since: None };
        register.open.insert(key, entry);
        Registered { all: self, key }
    }

    pub(crate) fn count(&self) -> usize {
        self.register().open.len()
    }

    /// Every connection finishes what runs on it, and those to come do, too.
    pub(crate) fn finish(&self) {
        let mut register = self.register();
        register.finishing = true;
        register.open.values().for_each(|entry| entry.connection.tell(Order::Finish));
    }

    /// Ends all that are left, and says how many those were.
    pub(crate) fn cut(&self) -> usize {
        let register = self.register();
        register.open.values().for_each(|entry| entry.connection.tell(Order::Cut));
        register.open.len()
    }

    /// Ends the connections that have been of no use for too long.
    pub(crate) fn sweep(&self, now: Instant, patience: Patience) {
        for entry in self.register().open.values_mut() {
            entry.look(now, patience);
        }
    }
}

impl Entry {
    fn look(&mut self, now: Instant, patience: Patience) {
        // A stall on the upstream's side has been found by then, and cost its stream alone.
        if self.connection.pulses.stand_still(now, patience.body * 3) {
            self.connection.tell(Order::Cut);
        }
        let stands = self.connection.standing();
        if stands != self.stood {
            (self.stood, self.since) = (stands, Some(now));
        }
        let stood = now.since(*self.since.get_or_insert(now));
        match stands {
            Standing::Blocked(_) if stood >= patience.body => self.connection.tell(Order::Cut),
            Standing::InsideHead(_) if stood >= patience.header => self.connection.tell(Order::Cut),
            Standing::Idle(_) if stood >= patience.idle => self.connection.tell(Order::Finish),
            _ => {}
        }
    }
}

impl Connection {
    fn standing(&self) -> Standing {
        let begun = self.begun.load(Ordering::Relaxed);
        if self.blocked.load(Ordering::Relaxed) {
            Standing::Blocked(self.writes.load(Ordering::Relaxed))
        } else if self.is_running() {
            Standing::Busy
        } else if self.inside_head.load(Ordering::Relaxed) && !self.http2.load(Ordering::Relaxed) {
            Standing::InsideHead(begun)
        } else {
            Standing::Idle(begun)
        }
    }
}
