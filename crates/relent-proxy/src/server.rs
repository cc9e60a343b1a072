//! Starting and stopping: the sockets, a thread for each worker, and the way out.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use relent::timer::{Clock, SystemTimer, Timer};
use relent_config::{AccessLog as LogTo, Config};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::runtime::Builder;

use crate::access::AccessLog;
use crate::admin::{self, Admin, Pages};
use crate::engine::Switches;
use crate::metrics::Metrics;
use crate::plan::Plan;
use crate::record::Listeners;
use crate::upstream::TcpConnector;
use crate::worker::Worker;

/// Connections that the system holds for us while all workers are busy.
const BACKLOG: i32 = 4096;
/// After an `accept` that failed for want of descriptors, say.
const BREATH: Duration = Duration::from_millis(10);

/// Why the proxy can't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The configuration is for the library alone.
    #[error("there is no [proxy] table: say where to listen")]
    NoProxy,
    /// A listening address can't be had.
    #[error("can't listen on {addr}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The admin address can't be had.
    #[error("can't listen on {addr} for the admin pages")]
    Admin {
        /// The address.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The access log can't be opened.
    #[error("can't open the access log {}", path.display())]
    AccessLog {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A worker thread or its runtime can't be had.
    #[error("can't start a worker")]
    Worker {
        /// Why not.
        source: io::Error,
    },
}

impl StartError {
    pub(crate) fn log(to: &LogTo, source: io::Error) -> StartError {
        let path = match to {
            LogTo::File(path) => path.clone(),
            _ => PathBuf::from("(standard output)"),
        };
        StartError::AccessLog { path, source }
    }
}

/// A proxy that has its sockets, and does not run yet.
#[derive(Debug)]
pub struct Bound {
    listening: SocketAddr,
    admin: Option<SocketAddr>,
    switches: Switches,
    listener: TcpListener,
    workers: Vec<Worker<TcpConnector>>,
    /// Ends after the workers.
    pages: Option<Admin>,
}

/// A proxy that runs on threads of its own.
#[derive(Debug)]
pub struct Proxy {
    listening: SocketAddr,
    admin: Option<SocketAddr>,
    switches: Switches,
    workers: Vec<JoinHandle<usize>>,
    pages: Option<Admin>,
}

/// How a proxy has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Connections that were cut off at the end of the grace period.
    pub cut: usize,
}

/// Binds the addresses.
///
/// # Errors
/// [`StartError`]; nothing is left then.
pub fn bind(config: Config) -> Result<Bound, StartError> {
    let proxy = config.proxy.clone().ok_or(StartError::NoProxy)?;
    let log =
        AccessLog::open(&proxy.access_log).map_err(|error| StartError::log(&proxy.access_log, error))?;
    let shown = admin::config_page(&config);
    let count = proxy.workers.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let plan = Arc::new(Plan::new(config, proxy, log));
    let addr = plan.proxy.listen;
    let listener = listen(addr).map_err(|source| StartError::Bind { addr, source })?;
    let listening = listener.local_addr().map_err(|source| StartError::Bind { addr, source })?;
    let (switches, drain, cut) = Switches::new(plan.proxy.grace);
    let metrics = Arc::new(Metrics::new(plan.target_names(), count));
    let pages =
        Pages { metrics: Arc::clone(&metrics), plan: Arc::clone(&plan), drain: drain.clone(), config: shown };
    let (admin, pages) = start_admin(&plan, pages)?;
    let worker = |number| {
        let listeners = Arc::new(Listeners { plan: Arc::clone(&plan), metrics: metrics.shard(number) });
        Worker::new(listeners, TcpConnector, drain.clone(), cut.clone())
    };
    let workers = (0..count).map(worker).collect();
    Ok(Bound { listening, admin, switches, listener, workers, pages })
}

/// Binds the addresses and starts the workers, each on a thread of its own.
///
/// # Errors
/// [`StartError`]; nothing runs then.
pub fn start(config: Config) -> Result<Proxy, StartError> {
    let Bound { listening, admin, switches, listener, workers, pages } = bind(config)?;
    let workers = spawn_all(workers, &listener, &switches)?;
    Ok(Proxy { listening, admin, switches, workers, pages })
}

impl Bound {
    /// Where requests come in.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// Where the admin pages are served.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Runs the proxy, one of its workers on this thread: with one worker the process may stay at one thread. Ends some
    /// time after `drain` does, when what was in flight is done or the grace period over; or with `abort`, at once, and
    /// `None`.
    ///
    /// # Errors
    /// [`StartError::Worker`] if a thread or a runtime can't be had.
    pub fn run(
        self,
        drain: impl Future<Output = ()>,
        abort: impl Future<Output = ()>,
    ) -> Result<Option<Ended>, StartError> {
        // Whoever calls this should not have to compile the whole of it.
        self.run_until(pin!(drain), pin!(abort))
    }

    fn run_until(self, drain: Told<'_>, abort: Told<'_>) -> Result<Option<Ended>, StartError> {
        let Bound { switches, listener, mut workers, pages, .. } = self;
        let worker = |source| StartError::Worker { source };
        let own = Arc::new(workers.remove(0));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(worker)?;
        let others = spawn_all(workers, &listener, &switches)?;
        let ended = runtime.block_on(async {
            let told = async {
                drain.await;
                switches.drain();
                abort.await;
            };
            let served = async {
                let cut = serve(own, listener, &switches).await;
                if others.is_empty() { cut } else { cut + join_all(others).await }
            };
            tokio::select! {
                biased;
                () = told => None,
                cut = served => Some(Ended { cut }),
            }
        });
        // After an abort, the other workers end with the process.
        runtime.shutdown_background();
        drop(pages);
        Ok(ended)
    }
}

/// Ready when something is wanted.
type Told<'a> = Pin<&'a mut dyn Future<Output = ()>>;

/// How many connections the workers cut in all, once they have ended.
async fn join_all(workers: Vec<JoinHandle<usize>>) -> usize {
    let join = || workers.into_iter().map(|worker| worker.join().unwrap_or(0)).sum();
    tokio::task::spawn_blocking(join).await.unwrap_or(0)
}

fn spawn_all(
    workers: Vec<Worker<TcpConnector>>,
    listener: &TcpListener,
    switches: &Switches,
) -> Result<Vec<JoinHandle<usize>>, StartError> {
    let mut threads = Vec::with_capacity(workers.len());
    for worker in workers {
        let listener = listener.try_clone();
        match listener.and_then(|listener| spawn(threads.len(), worker, listener, switches.clone())) {
            Ok(thread) => threads.push(thread),
            Err(source) => {
                // Those that run already have nothing to finish.
                switches.drain();
                return Err(StartError::Worker { source });
            }
        }
    }
    Ok(threads)
}

/// A worker's thread, once its runtime is there.
fn spawn(
    number: usize,
    worker: Worker<TcpConnector>,
    listener: TcpListener,
    switches: Switches,
) -> io::Result<JoinHandle<usize>> {
    let (tell, told) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name(format!("relent-{number}")).spawn(move || {
        // Made here, since a runtime may not end where an async function calls.
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                drop(tell.send(Err(error)));
                return 0;
            }
        };
        drop(tell.send(Ok(())));
        runtime.block_on(serve(Arc::new(worker), listener, &switches))
    })?;
    told.recv().unwrap_or_else(|_| Err(io::Error::other("the thread ended")))?;
    Ok(thread)
}

/// The admin pages, where they are wanted; and where they are.
fn start_admin(plan: &Plan, pages: Pages) -> Result<(Option<SocketAddr>, Option<Admin>), StartError> {
    let Some(addr) = plan.proxy.admin else { return Ok((None, None)) };
    let failed = |source| StartError::Admin { addr, source };
    let listener = listen(addr).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let admin = Admin::start(listener, Arc::new(pages)).map_err(failed)?;
    Ok((Some(bound), Some(admin)))
}

/// Bound once, and duplicated for each worker: `SO_REUSEPORT` would hide a port that another program has, and lose the
/// connections in a worker's queue when it ends.
fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    // A port whose last connections are still being closed may be taken again.
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

impl Proxy {
    /// Where requests come in.
    pub fn listening(&self) -> SocketAddr {
        self.listening
    }

    /// Where the admin pages are served.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin
    }

    /// Stops accepting, and lets what is in flight finish within the grace period. No wait that would take longer is begun,
    /// and none is kept up.
    pub fn drain(&self) {
        self.switches.drain();
    }

    /// Waits until everything has ended.
    pub fn join(self) -> Ended {
        let cut = self.workers.into_iter().map(|worker| worker.join().unwrap_or(0)).sum();
        drop(self.pages);
        Ended { cut }
    }
}

/// A worker, to its end; how many connections were cut.
async fn serve(worker: Arc<Worker<TcpConnector>>, listener: TcpListener, switches: &Switches) -> usize {
    let sweeping = Arc::clone(&worker);
    tokio::spawn(async move { sweeping.sweep().await });
    let mut drain = worker.drain.clone();
    tokio::select! {
        () = accept(&worker, listener) => {}
        // It only ends with the program.
        _ = drain.wait_for(Option::is_some) => {}
    }
    let end = drain.borrow().unwrap_or_else(|| SystemTimer.now());
    worker.finish(end, switches).await
}

async fn accept(worker: &Arc<Worker<TcpConnector>>, listener: TcpListener) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    while let Some(room) = worker.listeners.plan.limits.connection().await {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Without it small answers wait; a socket that is gone already is noticed soon enough.
                drop(stream.set_nodelay(true));
                let worker = Arc::clone(worker);
                tokio::spawn(async move {
                    worker.serve(stream, Some(peer)).await;
                    drop(room);
                });
            }
            Err(_) => SystemTimer.sleep_until(SystemTimer.now() + BREATH).await,
        }
    }
}
