//! Client connections: HTTP/1.1 or HTTP/2, told apart by their first bytes.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::{ClientIo, Connection, Order, Speaks};
use crate::metrics::Shard;
use crate::record;
use crate::stack;
use crate::upstream::Connector;
use crate::worker::Worker;

/// Heads longer than this are refused with 431; also the most that is read ahead.
const BUFFER: usize = 64 * 1024;
/// Streams of one HTTP/2 connection.
const MOST_STREAMS: u32 = 200;
/// All fields of an HTTP/2 head together.
const HEADER_LIST: u32 = 64 * 1024;
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
const PING_EVERY: Duration = Duration::from_secs(30);

/// Serves one connection to its end.
pub(crate) async fn serve<C, T>(worker: &Arc<Worker<C>>, io: T, peer: Option<SocketAddr>)
where
    C: Connector,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let _counted = Counted::new(&worker.listeners.metrics);
    let connection = Arc::new(Connection::new(peer));
    let _registered = worker.connections.add(&connection);
    let listeners = Arc::clone(&worker.listeners);
    let mut io = ClientIo::new(io, Arc::clone(&connection), move |fault| {
        record::refused(&listeners, peer, fault.status(), fault.to_string());
    });
    let Some(speaks) = poll_fn(|cx| obey(&connection, cx, |cx| io.poll_speaks(cx))).await else { return };
    let (io, service) = (TokioIo::new(io), stack::service(Arc::clone(worker), Arc::clone(&connection)));
    let ended = match speaks {
        Speaks::Http1 => {
            let serving = http1_builder().serve_connection(io, service).with_upgrades();
            drive(&connection, pin!(serving), |serving| serving.graceful_shutdown()).await
        }
        Speaks::Http2 => {
            let serving = http2_builder().serve_connection(io, service);
            drive(&connection, pin!(serving), |serving| serving.graceful_shutdown()).await
        }
    };
    if let Err(error) = ended {
        unread(worker, peer, &error);
    }
}

/// Before anything is served, every order means: end.
fn obey<R>(
    connection: &Connection,
    cx: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<Option<R>>,
) -> Poll<Option<R>> {
    connection.wait_for_orders(cx.waker());
    if connection.order() == Order::Go { poll(cx) } else { Poll::Ready(None) }
}

/// Serves until the client has enough, or an order comes.
async fn drive<S>(
    connection: &Connection,
    mut serving: Pin<&mut S>,
    finish: impl Fn(Pin<&mut S>),
) -> hyper::Result<()>
where
    S: Future<Output = hyper::Result<()>>,
{
    let mut obeyed = Order::Go;
    poll_fn(|cx| {
        let order = connection.order();
        if order > obeyed {
            obeyed = order;
            finish(serving.as_mut());
        }
        if order == Order::Cut {
            return Poll::Ready(Ok(()));
        }
        serving.as_mut().poll(cx)
    })
    .await
}

/// One of the connections that are open now.
struct Counted<'a>(&'a Shard);

impl Counted<'_> {
    fn new(shard: &Shard) -> Counted<'_> {
        shard.connection_opened();
        Counted(shard)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.connection_closed();
    }
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Flat: for messages of the usual size one copy is cheaper than the bookkeeping of several parts.
    builder.max_buf_size(BUFFER).writev(false);
    builder
}

fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(HEADER_LIST)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    builder
}

/// What hyper itself refuses never becomes a request, but is logged like one.
fn unread<C: Connector>(worker: &Worker<C>, peer: Option<SocketAddr>, error: &hyper::Error) {
    if error.is_parse() {
        let status = if error.is_parse_too_large() { 431 } else { 400 };
        record::refused(&worker.listeners, peer, status, error.to_string());
    }
}
