//! One worker: a thread with a runtime of its own, its connections to clients and to endpoints.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use relent::timer::{Clock, SystemTimer, Timer};
use relent_core::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::alarm::Alarms;
use crate::client::{Connections, Patience};
use crate::engine::Switches;
use crate::listen;
use crate::record::Listeners;
use crate::tunnel::Tunnels;
use crate::upstream::{Connector, Local};

/// How often idle connections are looked for.
const SWEEP: Duration = Duration::from_secs(1);

/// How often, at the end, it is looked whether all connections have ended.
const LOOK: Duration = Duration::from_millis(10);
const LAST_LOOKS: usize = 10;

/// What one thread needs to serve requests.
#[derive(Debug)]
pub(crate) struct Worker<C> {
    pub(crate) listeners: Arc<Listeners>,
    pub(crate) connector: C,
    /// In the order of the plan's upstreams.
    pub(crate) locals: Vec<Local>,
    pub(crate) connections: Connections,
    pub(crate) tunnels: Tunnels,
    pub(crate) alarms: Alarms,
    /// By when everything has to be over; `None` as long as nobody wants that.
    pub(crate) drain: watch::Receiver<Option<Instant>>,
}

impl<C: Connector> Worker<C> {
    pub(crate) fn new(
        listeners: Arc<Listeners>,
        connector: C,
        drain: watch::Receiver<Option<Instant>>,
        cut: watch::Receiver<bool>,
    ) -> Worker<C> {
        let locals = listeners.plan.upstreams.iter().map(Local::new).collect();
        Worker {
            listeners,
            connector,
            locals,
            connections: Connections::default(),
            tunnels: Tunnels::new(cut),
            alarms: Alarms::default(),
            drain,
        }
    }

    /// Serves one connection to its end.
    pub(crate) async fn serve<T>(self: &Arc<Self>, io: T, peer: Option<SocketAddr>)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        listen::serve(self, io, peer).await;
    }

    /// Ends what has been idle for too long, again and again.
    pub(crate) async fn sweep(&self) {
        let proxy = &self.listeners.plan.proxy;
        let patience =
            Patience { header: proxy.header_timeout, idle: proxy.idle_timeout, body: proxy.body_timeout };
        loop {
            SystemTimer.sleep_until(SystemTimer.now() + SWEEP).await;
            let now = SystemTimer.now();
            self.connections.sweep(now, patience);
            self.locals.iter().for_each(|local| local.expire(now));
        }
    }

    /// Lets connections finish what runs on them, and cuts those that have not by `end`; says how many those were.
    pub(crate) async fn finish(&self, end: Instant, switches: &Switches) -> usize {
        self.connections.finish();
        while self.open() > 0 && SystemTimer.now() < end {
            SystemTimer.sleep_until((SystemTimer.now() + LOOK).min(end)).await;
        }
        let cut = self.connections.cut() + self.tunnels.count();
        switches.cut();
        // Those that were told to end do so when they are next polled.
        for _ in 0..LAST_LOOKS {
            if self.open() == 0 {
                break;
            }
            SystemTimer.sleep_until(SystemTimer.now() + LOOK).await;
        }
        cut
    }

    /// Connections and tunnels that are still open.
    fn open(&self) -> usize {
        self.connections.count() + self.tunnels.count()
    }
}
