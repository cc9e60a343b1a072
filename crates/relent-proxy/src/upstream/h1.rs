//! An HTTP/1.1 connection to an endpoint.

use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::attempt::Outgoing;
use super::counted::{Counted, Written};

/// Responses with a longer head are refused; also the most that is read ahead of a slow client.
const BUFFER: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: SendRequest<Outgoing>,
    pub(super) written: Written,
}

impl Connection {
    /// Speaks HTTP/1.1 on `io`, in a task that ends with the connection.
    pub(super) async fn open<T>(io: T) -> hyper::Result<Connection>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (counted, written) = Counted::new(io);
        let (sender, connection) =
            Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(counted)).await?;
        // How it ends is told to the request in flight; without one nobody wants to know.
        tokio::spawn(async move { drop(connection.with_upgrades().await) });
        Ok(Connection { sender, written })
    }

    pub(super) fn is_ready(&self) -> bool {
        self.sender.is_ready()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }
}
