//! A server on loopback that gives the answers it was told to, one after another, and remembers what it was asked.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A running server; it ends with the program.
pub(crate) struct Flaky {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

/// Starts a server that answers with these status lines (and headers, if any), the last one for ever.
pub(crate) async fn start<const N: usize>(answers: [&'static str; N]) -> io::Result<Flaky> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = Flaky { address: listener.local_addr()?, heads: Arc::default() };
    let heads = Arc::clone(&server.heads);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, answers, Arc::clone(&heads)));
        }
    });
    Ok(server)
}

impl Flaky {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many requests came.
    pub(crate) fn requests(&self) -> usize {
        self.heads().len()
    }

    /// The request lines and headers that came, in lower case.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// One request a connection, to keep it short; the body, if there is one, may come along or not.
async fn serve<const N: usize>(
    mut stream: TcpStream,
    answers: [&str; N],
    heads: Arc<Mutex<Vec<String>>>,
) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let answer = {
        let mut heads = heads.lock().unwrap_or_else(PoisonError::into_inner);
        heads.push(String::from_utf8_lossy(&request).to_lowercase());
        answers.get(heads.len() - 1).or(answers.last()).copied().unwrap_or("200 OK")
    };
    let body = answer.lines().next().unwrap_or_default();
    let length = body.len();
    let response =
        format!("HTTP/1.1 {answer}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(response.as_bytes()).await?;
    // Closing with unread bytes would reset the connection, and with it the answer.
    stream.shutdown().await?;
    while stream.read_buf(&mut request).await? > 0 {}
    Ok(())
}
