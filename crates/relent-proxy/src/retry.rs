//! The proxy's driver of the session: attempts, waits, and the last real outcome. It decides nothing.

mod call;
mod last;
mod wait;

use http::Response;
use relent::http::{Replay, RetryBody};
use relent_core::{Instant, Repeat, Step};

use crate::client::RequestBody;
use crate::plan::Target;
use crate::record::Record;
use crate::request::{Inbound, Pristine};
use crate::respond::Refusal;
use crate::response::LiveBody;
use crate::upstream::{Connector, Tried};
use crate::worker::Worker;
use call::{Call, Granted, Next, Stage};

/// What a call ends with: the response of an endpoint, be it the last of several.
pub(crate) type Answer = Response<RetryBody<LiveBody>>;

/// Sends the request, again where policy and everybody else allow it, and puts the last real outcome into `answer`.
pub(crate) async fn run<C: Connector>(
    worker: &Worker<C>,
    target: &Target,
    inbound: &mut Inbound,
    deadline: Instant,
    now: Instant,
    record: &mut Record,
    answer: &mut Option<Answer>,
) -> Result<(), Refusal> {
    let local = &worker.locals[target.upstream];
    let repeat = match &inbound.head {
        Some(head) => relent::http::repeat(target.policy.repeat(), &head.method, &head.headers),
        None => Repeat::No,
    };
    let pristine = Pristine::new(inbound, &local.upstream)?;
    let timeout = worker.listeners.plan.proxy.body_timeout;
    let body = inbound.body.take().expect("a body is taken once");
    let body = RequestBody::new(body, record.connection(), timeout);
    if let Some(watch) = body.watch() {
        record.watch_body(watch);
    }
    let own = inbound.overrides.upon(&target.policy).map(Box::new);
    let attempts = own.as_deref().unwrap_or(&target.policy).attempts();
    let mut call = Call {
        worker,
        target,
        own,
        local,
        record,
        answer,
        stage: Stage::Quiet,
        repeat,
        credit: Granted::new(inbound.granted, inbound.number, attempts),
        pristine,
        replay: Replay::new(body, target.policy.replay_limit(), &target.memory),
        upgrade: inbound.upgrade.take(),
        tried: Tried::default(),
        fresh: false,
        flight: None,
        last: None,
        waited_from: None,
        paid: false,
    };
    let mut step = call.begin(deadline, now);
    let mut at = now;
    loop {
        step = match step {
            Step::Launch(launch) => match call.attempt(launch, at).await? {
                Next::Answered => return Ok(()),
                Next::Step(step, now) => {
                    at = now;
                    step
                }
            },
            Step::Wait { until } => {
                // Boxed: most calls never wait.
                let (step, now) = Box::pin(call.wait(until)).await;
                at = now;
                step
            }
            Step::Stop(stop) => return call.end(stop),
        }
    }
}
