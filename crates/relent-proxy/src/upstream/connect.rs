//! How a connection to an endpoint comes about: generic, so that tests have it in memory.

use std::future::Future;
use std::io;

use relent_config::{Endpoint, Host};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Connects to endpoints.
pub trait Connector: Send + Sync + 'static {
    /// A connection.
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// A new connection to `endpoint`. The caller bounds the time.
    fn connect(&self, endpoint: &Endpoint) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

/// Connects by TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnector;

impl Connector for TcpConnector {
    type Io = TcpStream;

    async fn connect(&self, endpoint: &Endpoint) -> io::Result<TcpStream> {
        let stream = match endpoint.host() {
            Host::Address(address) => TcpStream::connect((*address, endpoint.port())).await?,
            Host::Name(name) => TcpStream::connect((name.as_str(), endpoint.port())).await?,
        };
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}
