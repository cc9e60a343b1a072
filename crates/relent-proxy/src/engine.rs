//! The proxy without its sockets: connections come from the caller, connections to endpoints from a [`Connector`].

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use relent::timer::{Clock, SystemTimer};
use relent_config::{Config, ProxyConfig};
use relent_core::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::access::AccessLog;
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::record::Listeners;
use crate::server::StartError;
use crate::upstream::Connector;
use crate::worker::Worker;

/// What stops a proxy.
#[derive(Clone, Debug)]
pub(crate) struct Switches {
    grace: Duration,
    drain: watch::Sender<Option<Instant>>,
    cut: watch::Sender<bool>,
}

impl Switches {
    pub(crate) fn new(
        grace: Duration,
    ) -> (Switches, watch::Receiver<Option<Instant>>, watch::Receiver<bool>) {
        let (drain, draining) = watch::channel(None);
        let (cut, cutting) = watch::channel(false);
        (Switches { grace, drain, cut }, draining, cutting)
    }

    pub(crate) fn drain(&self) {
        let end = SystemTimer.now() + self.grace;
        self.drain.send_if_modified(|drain| drain.replace(end).is_none());
    }

    pub(crate) fn cut(&self) {
        self.cut.send_replace(true);
    }
}

/// One worker of the proxy, for those who have connections of their own: other listeners, tests in memory.
///
/// It lives on the caller's tokio runtime.
#[derive(Debug)]
pub struct Engine<C> {
    worker: Arc<Worker<C>>,
    metrics: Arc<Metrics>,
    switches: Switches,
}

impl<C> Clone for Engine<C> {
    fn clone(&self) -> Self {
        Engine {
            worker: Arc::clone(&self.worker),
            metrics: Arc::clone(&self.metrics),
            switches: self.switches.clone(),
        }
    }
}

impl<C: Connector> Engine<C> {
    /// An engine for `config`, which connects by `connector`.
    ///
    /// # Errors
    /// [`StartError`] without a `[proxy]` table, or if the access log can't be opened.
    pub fn new(config: Config, connector: C) -> Result<Engine<C>, StartError> {
        let proxy = config.proxy.clone().ok_or(StartError::NoProxy)?;
        let log =
            AccessLog::open(&proxy.access_log).map_err(|error| StartError::log(&proxy.access_log, error))?;
        Ok(Engine::build(config, proxy, log, connector))
    }

    /// The same, with an access log that goes to `log`, whatever the configuration says.
    ///
    /// # Errors
    /// [`StartError`] without a `[proxy]` table, or if the thread that writes can't be had.
    pub fn with_log(
        config: Config,
        connector: C,
        log: impl io::Write + Send + 'static,
    ) -> Result<Engine<C>, StartError> {
        let proxy = config.proxy.clone().ok_or(StartError::NoProxy)?;
        let log = AccessLog::to(log).map_err(|source| StartError::Worker { source })?;
        Ok(Engine::build(config, proxy, log, connector))
    }

    fn build(config: Config, proxy: ProxyConfig, log: AccessLog, connector: C) -> Engine<C> {
        let (switches, drain, cut) = Switches::new(proxy.grace);
        let plan = Arc::new(Plan::new(config, proxy, log));
        let metrics = Arc::new(Metrics::new(plan.target_names(), 1));
        let listeners = Listeners { plan, metrics: metrics.shard(0) };
        let worker = Arc::new(Worker::new(Arc::new(listeners), connector, drain, cut));
        Engine { worker, metrics, switches }
    }

    /// Serves one connection to its end. Run [`sweep`](Engine::sweep) beside, or nothing ends idle ones.
    pub async fn serve<T>(&self, io: T, peer: Option<SocketAddr>)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        self.worker.serve(io, peer).await;
    }

    /// Looks for idle connections once a second; never ends.
    pub async fn sweep(&self) {
        self.worker.sweep().await;
    }

    /// Begins to end: connections finish what runs on them. Ready when they have, or at the end of the grace period; says
    /// how many were cut then.
    pub async fn drain(&self) -> usize {
        self.switches.drain();
        let end = self.worker.drain.borrow().unwrap_or_else(|| SystemTimer.now());
        self.worker.finish(end, &self.switches).await
    }

    /// The metrics page.
    pub fn metrics(&self) -> String {
        self.metrics.render(&*self.worker.listeners.plan)
    }
}
