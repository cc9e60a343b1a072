//! Starting and stopping.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use relent_config::Config;

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

/// A running proxy.
#[derive(Debug)]
pub struct Proxy(());

/// How a proxy has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// Connections that were cut off at the end of the grace period.
    pub cut: usize,
}

/// Binds the addresses and starts the workers.
///
/// # Errors
/// [`StartError`]; nothing runs then.
pub fn start(config: Config) -> Result<Proxy, StartError> {
    let _ = config.proxy.ok_or(StartError::NoProxy)?;
    Ok(Proxy(()))
}

impl Proxy {
    /// Where requests come in.
    pub fn listening(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    /// Where the admin pages are served.
    pub fn admin(&self) -> Option<SocketAddr> {
        None
    }

    /// Stops accepting, and lets what is in flight finish within the grace period.
    pub fn drain(&self) {}

    /// Waits until everything has ended.
    pub fn join(self) -> Ended {
        Ended { cut: 0 }
    }
}
