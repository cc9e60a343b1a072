//! The path of a request: one list, outermost first. Each line is a file of the same name.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use relent::timer::{Clock, SystemTimer};

use crate::client::{Connection, Running};
use crate::record::Record;
use crate::request::Inbound;
use crate::respond::Refusal;
use crate::response::ResponseBody;
use crate::upstream::Connector;
use crate::worker::Worker;
use crate::{deadline, finish, retry, route};

/// Answers a request, whatever happens.
pub(crate) async fn serve<C: Connector>(
    worker: Arc<Worker<C>>,
    running: Running,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Infallible> {
    let now = SystemTimer.now();
    let version = request.version();
    // access log: outermost, so that it sees everything, the refusals and the clients that leave too.
    let mut record = Record::open(&worker.listeners, running, &request, now);
    // respond: turns every error from below into one well-formed answer, and a panic into one lost request.
    let mut answer = None;
    let forwarded = {
        let forwarding = pin!(forward(&worker, request, now, &mut record, &mut answer));
        Unwinding(forwarding).await
    };
    let proxy = &worker.listeners.plan.proxy;
    Ok(match (answer, forwarded) {
        (Some(answer), Ok(())) => finish::answered(proxy, answer, record),
        (_, forwarded) => {
            finish::refused(proxy, version, &forwarded.err().unwrap_or(Refusal::Panicked), record)
        }
    })
}

async fn forward<C: Connector>(
    worker: &Worker<C>,
    request: Request<Incoming>,
    now: relent_core::Instant,
    record: &mut Record,
    answer: &mut Option<retry::Answer>,
) -> Result<(), Refusal> {
    let plan = &worker.listeners.plan;
    // request: what the hop before said to this one is heard, and goes no further.
    let mut inbound = Inbound::read(request, plan.trusts(record.connection().peer))?;
    // route: picks upstream and policy by reference.
    let target = route::find(plan, &inbound)?;
    record.routed(target);
    // deadline: before any waiting, and it includes all of it.
    let deadline = deadline::of(&inbound, now);
    // limit: sheds before anything is sent, or kept for a repeat.
    record.hold(plan.limits.request()?);
    // retry and replay: outside of the choice of an endpoint, so that an attempt may go elsewhere. Below it, for each
    // attempt: pick, the attempt's time, the pool.
    retry::run(worker, target, &mut inbound, deadline, now, record, answer).await
}

/// What hyper calls for each request of a connection.
pub(crate) fn service<C: Connector>(
    worker: Arc<Worker<C>>,
    connection: Arc<Connection>,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<ResponseBody>,
    Error = Infallible,
    Future: Future<Output = Result<Response<ResponseBody>, Infallible>> + Send,
> {
    hyper::service::service_fn(move |request| {
        // From this moment on, though the future may be polled later.
        serve(Arc::clone(&worker), connection.begin(), request)
    })
}

/// A panic while a request is served costs that request, not its connection, still less the process.
struct Unwinding<'a, F>(Pin<&'a mut F>);

impl<F> Future for Unwinding<'_, F>
where
    F: Future<Output = Result<(), Refusal>>,
{
    type Output = Result<(), Refusal>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.0.as_mut();
        // What a panic leaves behind is only dropped, never read.
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| inner.poll(cx)));
        polled.unwrap_or(Poll::Ready(Err(Refusal::Panicked)))
    }
}
