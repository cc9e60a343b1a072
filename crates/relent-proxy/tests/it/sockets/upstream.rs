//! The service behind the proxy: one thread, and an answer for each path.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};

use super::websocket;
use crate::rig::message::{Fields, Framing, read_body, read_head};

/// What lasts when the service is started anew.
#[derive(Default)]
pub(super) struct Memory {
    /// How often each path was asked for.
    seen: Mutex<HashMap<String, usize>>,
    /// Who wants to know that a path was asked for.
    watched: Mutex<HashMap<String, Arc<Notify>>>,
    /// Where reports go.
    report: Mutex<Option<Sender<String>>>,
}

impl Memory {
    pub(super) fn seen(&self, path: &str) -> usize {
        self.seen.lock().unwrap().get(path).copied().unwrap_or(0)
    }

    /// Notified whenever this path is asked for.
    pub(super) fn watch(&self, path: &str) -> Arc<Notify> {
        Arc::clone(self.watched.lock().unwrap().entry(path.to_owned()).or_default())
    }

    /// The bodies that are sent to `/report`.
    pub(super) fn reports(&self) -> Receiver<String> {
        let (sender, reports) = channel();
        *self.report.lock().unwrap() = Some(sender);
        reports
    }

    fn count(&self, path: &str) -> usize {
        if let Some(watcher) = self.watched.lock().unwrap().get(path) {
            watcher.notify_one();
        }
        let mut seen = self.seen.lock().unwrap();
        let count = seen.entry(path.to_owned()).or_default();
        *count += 1;
        *count
    }
}

/// A service that runs.
pub(super) struct Upstream {
    pub(super) address: SocketAddr,
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Upstream {
    /// Listens there; port 0 is any.
    pub(super) fn start(address: SocketAddr, memory: &Arc<Memory>) -> Upstream {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (end, mut ended) = watch::channel(false);
        let own = Arc::clone(memory);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
            runtime.block_on(async move {
                tokio::select! {
                    () = accept(listener, &own) => {}
                    _ = ended.wait_for(|ended| *ended) => {}
                }
            });
            // The runtime takes its connections along.
        });
        Upstream { address, end, thread: Some(thread) }
    }

    /// Closes the listener and all connections.
    pub(super) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the service does not fail");
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.end();
    }
}

async fn accept(listener: TcpListener, memory: &Arc<Memory>) {
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((stream, _)) = listener.accept().await {
        let memory = Arc::clone(memory);
        // Clients that leave are no fault of the service.
        tokio::spawn(async move { drop(serve(BufReader::new(stream), &memory).await) });
    }
}

async fn serve(mut io: BufReader<TcpStream>, memory: &Memory) -> io::Result<()> {
    io.get_ref().set_nodelay(true)?;
    while let Some((line, fields)) = read_head(&mut io).await? {
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let framing = match (fields.one("transfer-encoding"), fields.one("content-length")) {
            (Some(_), _) => Framing::Chunked,
            (None, Some(length)) => Framing::Length(length.parse().map_err(io::Error::other)?),
            (None, None) => Framing::Nothing,
        };
        let (body, _, whole) = read_body(&mut io, framing).await;
        if !whole {
            return Ok(());
        }
        let count = memory.count(&path);
        answer(&mut io, &path, &fields, body, count, memory).await?;
    }
    Ok(())
}

/// Answers a request; paths below `/flaky` fail at first.
async fn answer(
    io: &mut BufReader<TcpStream>,
    path: &str,
    fields: &Fields,
    body: Vec<u8>,
    count: usize,
    memory: &Memory,
) -> io::Result<()> {
    let mut parts = path.trim_start_matches('/').split('/');
    let mut first = parts.next().unwrap_or_default();
    if first == "flaky" {
        if count == 1 {
            return say(io, 503, "text/plain", b"not yet").await;
        }
        first = parts.next().unwrap_or_default();
    }
    match first {
        "hello" => say(io, 200, "text/plain", b"hello").await,
        "echo" => say(io, 200, "application/octet-stream", &body).await,
        "chunks" => {
            io.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
            for part in ["one ", "two ", "three"] {
                chunk(io, part).await?;
            }
            io.write_all(b"0\r\n\r\n").await
        }
        "events" => events(io, fields.one("last-event-id")).await,
        "ws" => {
            let key = websocket::accept(fields.one("sec-websocket-key").unwrap_or_default());
            let head = format!(
                "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {key}\r\n\r\n"
            );
            io.write_all(head.as_bytes()).await?;
            websocket::echo(io).await?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        "page" => say(io, 200, "text/html", super::browser::PAGE.as_bytes()).await,
        "report" => {
            if let Some(report) = &*memory.report.lock().unwrap() {
                drop(report.send(String::from_utf8_lossy(&body).into_owned()));
            }
            say(io, 200, "text/plain", b"thanks").await
        }
        "busy" => say(io, 503, "text/plain", b"busy").await,
        "begin" => {
            io.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhello").await?;
            until_it_leaves(io).await
        }
        "silent" => until_it_leaves(io).await,
        _ => say(io, 404, "text/plain", b"nothing here").await,
    }
}

async fn say<T: AsyncWrite + Unpin>(io: &mut T, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} Word\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
    io.write_all(&[head.as_bytes(), body].concat()).await
}

async fn chunk<T: AsyncWrite + Unpin>(io: &mut T, text: &str) -> io::Result<()> {
    io.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}

/// Two events, and the end; to a client that comes back for more, a third and the last.
async fn events<T: AsyncWrite + Unpin>(io: &mut T, last: Option<&str>) -> io::Result<()> {
    io.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        .await?;
    if last == Some("2") {
        chunk(io, "id: 3\ndata: three\n\n").await?;
        chunk(io, "event: last\ndata: four\n\n").await?;
    } else {
        chunk(io, "retry: 1\n\n").await?;
        chunk(io, "id: 1\ndata: one\n\n").await?;
        chunk(io, "id: 2\ndata: two\n\n").await?;
    }
    io.write_all(b"0\r\n\r\n").await
}

async fn until_it_leaves<T: AsyncRead + Unpin>(io: &mut T) -> io::Result<()> {
    drop(io.read_u8().await);
    Err(io::ErrorKind::ConnectionAborted.into())
}
