//! One attempt at one endpoint: a connection from the pool or a new one, the request upon it, and what became of that.

use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use relent::http::ReplayBody;
use relent::timer::{Clock, SystemTimer, Timer};
use relent::{Classify, Standard};
use relent_core::{Cause, Failure, Health, Instant, Verdict};

use super::counted::Written;
use super::h1::Connection;
use super::h2::{Shared, Silence, Stream};
use super::pool::{Lease, Pool};
use super::{Connections, Connector, Local};
use crate::client::RequestBody;

/// The body of a request on its way to an endpoint.
pub(crate) type Outgoing = ReplayBody<RequestBody>;

/// What is sent, and where to.
pub(crate) struct Parcel {
    pub(crate) endpoint: usize,
    /// Taken when there is a connection.
    pub(crate) request: Option<Request<Outgoing>>,
    /// Not on a connection that was used before: one of those has refused this request.
    pub(crate) fresh: bool,
    pub(crate) now: Instant,
}

impl Parcel {
    fn take(&mut self) -> Request<Outgoing> {
        self.request.take().expect("a parcel is sent once")
    }
}

/// The head of a response, its body still coming.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) response: Response<Incoming>,
    pub(crate) lease: Lease,
}

/// No response.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) failure: Failure,
    /// What happened, in words.
    pub(crate) error: String,
}

/// How far an attempt has come: to be read whether it ended, failed, or was given up.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// On a connection that had been used before.
    pub(crate) reused: bool,
    sent: Sending,
}

#[derive(Debug, Default)]
enum Sending {
    /// There is no connection yet.
    #[default]
    Not,
    /// HTTP/1.1: what the connection had written before.
    Counted(Written, u64),
    /// HTTP/2: it was handed to the connection, which doesn't count per stream.
    Handed(Silence),
}

impl Progress {
    /// Whether any byte of the request may have left.
    pub(crate) fn wrote(&self) -> bool {
        match &self.sent {
            Sending::Not => false,
            Sending::Counted(written, before) => written.get() != *before,
            Sending::Handed(_) => true,
        }
    }

    fn watch(&mut self, written: &Written) {
        self.sent = Sending::Counted(written.clone(), written.get());
    }

    /// What it means that its time is up.
    pub(crate) fn expired(&self) -> Failure {
        if let Sending::Handed(silence) = &self.sent {
            silence.tell();
        }
        if self.wrote() {
            return Failure::timed_out();
        }
        // The endpoint did not even take the connection.
        Failure::new(Verdict::Unprocessed).cause(Cause::Timeout).health(Health::Bad)
    }
}

/// Sends one attempt, and waits for the head of its response.
pub(crate) async fn send<C: Connector>(
    connector: &C,
    local: &Local,
    parcel: &mut Parcel,
    progress: &mut Progress,
) -> Result<Sent, Broken> {
    match &local.endpoints[parcel.endpoint] {
        Connections::Http1(pool) => send_http1(connector, local, pool, parcel, progress).await,
        Connections::Http2(shared) => send_http2(connector, local, shared, parcel, progress).await,
    }
}

async fn send_http1<C: Connector>(
    connector: &C,
    local: &Local,
    pool: &Arc<Pool>,
    parcel: &mut Parcel,
    progress: &mut Progress,
) -> Result<Sent, Broken> {
    let kept = if parcel.fresh { None } else { pool.take(parcel.now) };
    progress.reused = kept.is_some();
    let mut connection = match kept {
        Some(connection) => connection,
        // Boxed: it is rare, and every request would hold the room for it.
        None => Box::pin(open_http1(connector, local, parcel.endpoint)).await?,
    };
    progress.watch(&connection.written);
    match connection.sender.try_send_request(parcel.take()).await {
        Ok(response) => Ok(Sent { response, lease: Lease::new(pool, connection) }),
        Err(mut failed) => {
            let returned = failed.take_message().is_some();
            let error = failed.into_error();
            if returned || !progress.wrote() {
                return Err(Broken::unsent(&error, progress.reused));
            }
            Err(Broken { failure: Standard.classify(&error), error: told(&error) })
        }
    }
}

async fn send_http2<C: Connector>(
    connector: &C,
    local: &Local,
    shared: &Shared,
    parcel: &mut Parcel,
    progress: &mut Progress,
) -> Result<Sent, Broken> {
    let there = if parcel.fresh { None } else { shared.take() };
    progress.reused = there.is_some();
    let (mut sender, stream) = match there {
        Some(place) => place,
        None => Box::pin(open_http2(connector, local, shared, parcel, progress)).await?,
    };
    progress.sent = Sending::Handed(stream.silence());
    match sender.try_send_request(parcel.take()).await {
        Ok(response) => {
            stream.answered();
            Ok(Sent { response, lease: Lease::shared(stream) })
        }
        Err(mut failed) => {
            let returned = failed.take_message().is_some();
            let error = failed.into_error();
            if returned {
                progress.sent = Sending::Not;
                return Err(Broken::unsent(&error, progress.reused));
            }
            Err(Broken { failure: Standard.classify(&error), error: told(&error) })
        }
    }
}

async fn open_http1<C: Connector>(
    connector: &C,
    local: &Local,
    endpoint: usize,
) -> Result<Connection, Broken> {
    let io = connect(connector, local, endpoint).await?;
    Connection::open(io).await.map_err(|error| Broken::unsent(&error, false))
}

/// A place on a new connection, or on one that somebody else has opened meanwhile.
async fn open_http2<C: Connector>(
    connector: &C,
    local: &Local,
    shared: &Shared,
    parcel: &Parcel,
    progress: &mut Progress,
) -> Result<(hyper::client::conn::http2::SendRequest<Outgoing>, Stream), Broken> {
    let _opening = shared.opening().await;
    if !parcel.fresh
        && let Some(place) = shared.take()
    {
        progress.reused = true;
        return Ok(place);
    }
    let io = connect(connector, local, parcel.endpoint).await?;
    shared.add(io).await.map_err(|error| Broken::unsent(&error, false))
}

async fn connect<C: Connector>(connector: &C, local: &Local, endpoint: usize) -> Result<C::Io, Broken> {
    let facts = &local.upstream.facts;
    let until = SystemTimer.sleep_until(SystemTimer.now() + facts.connect_timeout);
    tokio::select! {
        biased;
        connected = connector.connect(&facts.endpoints[endpoint]) => {
            connected.map_err(|error| Broken::unsent(&error, false))
        }
        () = until => Err(Broken {
            failure: Failure::new(Verdict::Unprocessed).cause(Cause::Connect),
            error: "no connection within the connect timeout".to_owned(),
        }),
    }
}

impl Broken {
    /// Not a byte of the request was sent. On a connection that had been kept, it is that which was stale.
    fn unsent(error: &(dyn std::error::Error + 'static), reused: bool) -> Broken {
        let failure = Failure::new(Verdict::Unprocessed).cause(Cause::Connect);
        let failure = if reused { failure.health(Health::Unknown).free() } else { failure };
        Broken { failure, error: told(error) }
    }
}

/// An error with its causes.
fn told(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
