//! Client connections: HTTP/1.1 or HTTP/2, told apart by their first bytes.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::{ClientIo, Connection, Order};
use crate::metrics::Shard;
use crate::record;
use crate::stack;
use crate::upstream::Connector;
use crate::worker::Worker;

/// Heads longer than this are refused with 431; also the most that is read ahead.
const BUFFER: usize = 64 * 1024;
/// Fields of one head.
const MOST_FIELDS: usize = 100;
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
    let io = ClientIo::new(io, Arc::clone(&connection), move |fault| {
        record::refused(&listeners, peer, fault.status(), fault.to_string());
    });
    let service = stack::service(Arc::clone(worker), Arc::clone(&connection));
    let builder = builder();
    let mut serving = pin!(builder.serve_connection_with_upgrades(TokioIo::new(io), service));
    let mut obeyed = Order::Go;
    let ended = poll_fn(|cx| {
        if obeyed == Order::Go {
            connection.wait_for_orders(cx.waker());
        }
        let order = connection.order();
        if order > obeyed {
            obeyed = order;
            serving.as_mut().graceful_shutdown();
        }
        if order == Order::Cut {
            return Poll::Ready(Ok(()));
        }
        serving.as_mut().poll(cx)
    })
    .await;
    if let Err(error) = ended {
        unread(worker, peer, &*error);
    }
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

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(BUFFER).max_headers(MOST_FIELDS);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(HEADER_LIST)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    builder
}

/// What hyper itself refuses never becomes a request, but is logged like one.
fn unread<C: Connector>(
    worker: &Worker<C>,
    peer: Option<SocketAddr>,
    error: &(dyn std::error::Error + 'static),
) {
    let Some(error) = error.downcast_ref::<hyper::Error>() else { return };
    if error.is_parse() {
        let status = if error.is_parse_too_large() { 431 } else { 400 };
        record::refused(&worker.listeners, peer, status, error.to_string());
    }
}
