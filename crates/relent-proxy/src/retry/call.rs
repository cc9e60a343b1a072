//! One call: its session, its attempts, and what it gives back when the client leaves.

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use http::{Response, StatusCode};
use relent::http::{Replay, RetryBody, failure_of_response, wire};
use relent::timer::{Clock, SystemTimer};
use relent_core::{
    AttemptId, Cause, Context, Credit, Failure, Instant, Launch, Opening, Policy, Repeat, Session, Step,
    Stop, StopScope, Used,
};

use super::Answer;
use super::last::{Last, as_kept};
use crate::client::{BodyFault, RequestBody};
use crate::facts::{Attempt, Outcome};
use crate::fields::Seen;
use crate::plan::Target;
use crate::record::Record;
use crate::request::{Pristine, Upgrade};
use crate::respond::Refusal;
use crate::response::LiveBody;
use crate::tunnel;
use crate::upstream::{self, Broken, Connector, Ended, EndpointHolds, Local, Parcel, Progress, Sent, Tried};
use crate::worker::Worker;

pub(super) struct Call<'a, C: Connector> {
    pub(super) worker: &'a Worker<C>,
    pub(super) target: &'a Target,
    /// The target's policy as a trusted peer changed it for this call.
    pub(super) own: Option<Box<Policy>>,
    pub(super) local: &'a Local,
    pub(super) record: &'a mut Record,
    /// Where the answer is put: it is long, and would be moved through every layer above.
    pub(super) answer: &'a mut Option<Answer>,
    pub(super) stage: Stage,
    pub(super) repeat: Repeat,
    pub(super) credit: Granted,
    pub(super) pristine: Pristine,
    pub(super) replay: Replay<RequestBody>,
    pub(super) upgrade: Option<Upgrade>,
    pub(super) tried: Tried,
    /// The next attempt needs a connection of its own (421).
    pub(super) fresh: bool,
    pub(super) flight: Option<Flight>,
    pub(super) last: Option<Last>,
    /// Since when the call has waited for its next attempt, and why there is one.
    pub(super) waited_from: Option<(Instant, Cause)>,
    /// It was told to wait, be it for no time at all: what follows at once is free.
    pub(super) paid: bool,
}

/// How far a call has come. Most end with their first attempt, and never need more than the opening.
pub(super) enum Stage {
    /// Nothing runs: not yet, or no more.
    Quiet,
    Opening(Opening),
    Live(Session),
}

/// The attempt in flight.
pub(super) struct Flight {
    number: u32,
    endpoint: usize,
    began: Instant,
    waited: Duration,
    progress: Progress,
}

/// What an attempt leads to.
pub(super) enum Next {
    /// The end: the answer is there.
    Answered,
    /// What the session says, and when that was.
    Step(Step, Instant),
}

/// What the layers above grant.
#[derive(Debug)]
pub(super) struct Granted {
    left: Option<Cell<u32>>,
    /// Whether that layer spoke of credit, and wants to hear of it.
    asked: bool,
}

impl Granted {
    /// By the credit that came; or by another proxy's attempt number, which lowers what is done here.
    pub(super) fn new(left: Option<u32>, number: Option<u32>, attempts: u32) -> Granted {
        let counted = number.filter(|number| *number > 1).map(|number| attempts.saturating_sub(number));
        Granted { left: left.or(counted).map(Cell::new), asked: left.is_some() }
    }
}

impl Credit for Granted {
    fn left(&self) -> Option<u32> {
        self.left.as_ref().map(Cell::get)
    }

    fn take(&self, n: u32) -> u32 {
        self.left.as_ref().map_or(0, |left| Credit::take(left, n))
    }

    fn give(&self, n: u32) {
        if let Some(left) = &self.left {
            left.give(n);
        }
    }
}

impl<C: Connector> Call<'_, C> {
    fn policy(&self) -> &Policy {
        self.own.as_deref().unwrap_or(&self.target.policy)
    }

    /// Opens the call, which has to be over by `deadline`.
    pub(super) fn begin(&mut self, deadline: Instant, now: Instant) -> Step {
        let context = self.target.handles.context(self.policy(), &self.credit);
        match Opening::begin(&context, self.repeat, deadline, now) {
            Ok(opening) => {
                let launch = opening.launch();
                self.stage = Stage::Opening(opening);
                Step::Launch(launch)
            }
            Err(reason) => Step::Stop(Stop { reason, attempts: 0, ambiguous: false, hint: None }),
        }
    }

    /// Hands the session an input.
    fn input<R>(&mut self, input: impl FnOnce(&mut Session, &Context<'_, Granted>) -> R) -> R {
        let policy = self.own.as_deref().unwrap_or(&self.target.policy);
        let endpoint = self.flight.as_ref().map(|flight| flight.endpoint);
        let holds = EndpointHolds { upstream: &self.local.upstream, endpoint };
        let context = Context { hold: Some(&holds), ..self.target.handles.context(policy, &self.credit) };
        let session = match &mut self.stage {
            Stage::Live(session) => session,
            stage => {
                let session = match std::mem::replace(stage, Stage::Quiet) {
                    Stage::Opening(opening) => opening.into_session(policy, self.repeat),
                    _ => Session::new(policy, self.repeat, Instant::NEVER, Instant::ZERO),
                };
                *stage = Stage::Live(session);
                let Stage::Live(session) = stage else { unreachable!("it was just put there") };
                session
            }
        };
        input(session, &context)
    }

    pub(super) fn due(&mut self, now: Instant) -> Step {
        self.input(|session, context| session.due(context, now))
    }

    pub(super) fn shorten(&mut self, deadline: Instant) -> Step {
        self.input(|session, context| session.shorten(context, deadline))
    }

    /// Attempt `id` succeeded.
    fn succeeded(&mut self, id: AttemptId, used: Used, now: Instant) {
        if let (Stage::Opening(opening), false) = (&self.stage, self.credit.asked) {
            let handles = &self.target.handles;
            let ended = handles.hears_times().then_some(now);
            opening.succeeded(&handles.context(self.policy(), &self.credit), ended);
            self.stage = Stage::Quiet;
            self.record.succeeded(1, false);
            return;
        }
        let (attempts, ambiguous) = self.input(|session, context| {
            session.succeeded(context, id, used, Some(now));
            (session.launched(), session.is_ambiguous())
        });
        self.record.succeeded(attempts, ambiguous);
        self.report();
    }

    /// Makes one attempt.
    pub(super) async fn attempt(&mut self, launch: Launch, now: Instant) -> Result<Next, Refusal> {
        let waited = self.waited(now);
        self.last = None;
        let endpoint = self.local.pick(&self.tried, now);
        let request = self.pristine.attempt(&launch, &self.target.stamp, self.replay.next_attempt());
        let mut parcel = Parcel { endpoint, request: Some(request), fresh: self.fresh, now };
        let progress = Progress::default();
        let flight = Flight { number: launch.number, endpoint, began: now, waited, progress };
        let flight = self.flight.insert(flight);
        let ended = {
            let sending =
                upstream::send(&self.worker.connector, self.local, &mut parcel, &mut flight.progress);
            self.worker.alarms.in_time(launch.ends, pin!(sending)).await
        };
        let now = SystemTimer.now();
        // A body that failed is the client's doing: nobody is blamed, and nothing is sent again.
        if let Some(fault) = self.record.body().and_then(|body| body.fault())
            && !matches!(ended, Some(Ok(_)))
        {
            return Err(Refusal::Body(fault));
        }
        // The endpoint could not answer: the client has not said all.
        if ended.is_none() && self.record.body().is_some_and(|body| body.is_waited_for()) {
            return Err(Refusal::Body(BodyFault::Stalled));
        }
        match ended {
            Some(Ok(sent)) => Ok(self.answered(launch.id, sent, now)),
            Some(Err(broken)) => Ok(Next::Step(self.broke(launch.id, broken, now), now)),
            None => Ok(Next::Step(self.expired(launch.id, now), now)),
        }
    }

    /// How long the call has waited; a retry is told of.
    fn waited(&mut self, now: Instant) -> Duration {
        let Some((since, cause)) = self.waited_from.take() else { return Duration::ZERO };
        self.record.retry(cause, !std::mem::take(&mut self.paid));
        now.since(since)
    }

    fn answered(&mut self, id: AttemptId, sent: Sent, now: Instant) -> Next {
        let Sent { mut response, mut lease } = sent;
        let status = response.status();
        self.landed(Outcome::Status(status.as_u16()), now);
        let seen = Seen::of(response.headers());
        self.record.has_seen(seen);
        let used = self.heard(&response, seen);
        if status == StatusCode::SWITCHING_PROTOCOLS {
            lease.forget();
            if let Some(upgrade) = self.upgrade.take() {
                self.record.connection().set_tunnel();
                tunnel::open(upgrade, &mut response, &self.worker.tunnels, self.record.release());
            }
        }
        if status == StatusCode::MISDIRECTED_REQUEST {
            lease.forget();
            self.fresh = true;
        }
        let timeout = self.worker.listeners.plan.proxy.body_timeout;
        if status.as_u16() < 400 {
            self.succeeded(id, used, now);
            let answer = response.map(|body| RetryBody::live(LiveBody::new(body, lease, timeout, now)));
            *self.answer = Some(answer);
            return Next::Answered;
        }
        self.tried.failed(self.endpoint(), Ended::Otherwise);
        self.believe(&mut response);
        let failure = failure_of_response(status, response.headers(), SystemTimer.wall())
            .expect("400 and above are failures")
            .used(used);
        let response = response.map(|body| LiveBody::new(body, lease, timeout, now));
        match self.failed(id, failure, now) {
            Step::Stop(stop) => {
                self.stopped(&stop);
                *self.answer = Some(response.map(RetryBody::live));
                Next::Answered
            }
            step => {
                self.last = Some(Last::response(response, &self.target.memory));
                Next::Step(step, now)
            }
        }
    }

    fn broke(&mut self, id: AttemptId, broken: Broken, now: Instant) -> Step {
        let cause = broken.failure.kind();
        self.landed(Outcome::Failed(cause), now);
        let ended = match cause {
            Cause::Reset => Ended::BrokeOff,
            Cause::Connect => Ended::Unreachable,
            _ => Ended::Otherwise,
        };
        self.tried.failed(self.endpoint(), ended);
        self.last = Some(Last::Error(cause, broken.error));
        let used = self.unheard(&broken.failure);
        self.failed(id, broken.failure.used(used), now)
    }

    fn expired(&mut self, id: AttemptId, now: Instant) -> Step {
        let failure = self.flight.as_ref().map_or(Failure::timed_out(), |flight| flight.progress.expired());
        self.landed(Outcome::Failed(Cause::Timeout), now);
        self.tried.failed(self.endpoint(), Ended::Otherwise);
        self.last = Some(Last::Error(Cause::Timeout, "no answer in time".to_owned()));
        let used = self.unheard(&failure);
        let failure = self.whole(failure.used(used));
        let step = self.input(|session, context| session.expired(context, id, failure, now));
        self.waited_from = Some((now, Cause::Timeout));
        step
    }

    fn failed(&mut self, id: AttemptId, failure: Failure, now: Instant) -> Step {
        let failure = self.whole(failure);
        let step = self.input(|session, context| session.failed(context, id, failure, now));
        self.waited_from = Some((now, failure.kind()));
        step
    }

    /// Adds to a failure whether the body can be sent again.
    fn whole(&self, failure: Failure) -> Failure {
        if self.replay.is_whole(&failure) { failure } else { failure.not_replayable() }
    }

    fn endpoint(&self) -> usize {
        self.flight.as_ref().map_or(0, |flight| flight.endpoint)
    }

    /// What the response says of attempt credit.
    fn heard<B>(&self, response: &Response<B>, seen: Seen) -> Used {
        let upstream = &self.local.upstream;
        match (upstream.facts.trust, seen.has_credit()) {
            (true, true) => upstream.reporter.heard(response.headers()),
            (true, false) => upstream.reporter.silent(),
            (false, _) => Used::Unsaid,
        }
    }

    fn unheard(&self, failure: &Failure) -> Used {
        let upstream = &self.local.upstream;
        if upstream.facts.trust { upstream.reporter.unheard(failure) } else { Used::Unsaid }
    }

    /// Takes out a stop mark that is not to be believed, or not meant for the endpoint that comes next.
    fn believe<B>(&self, response: &mut Response<B>) {
        let facts = &self.local.upstream.facts;
        let elsewhere = self.tried.leaves_any(facts.endpoints.len());
        let host_alone = || wire::stop_mark(response.headers()) == Some(StopScope::Host);
        if !facts.trust || (elsewhere && host_alone()) {
            response.headers_mut().remove(wire::STOP);
            response.headers_mut().remove(wire::RATE_LIMITED);
        }
    }

    /// The end of a call whose last attempt had no response, or was followed by a wait.
    pub(super) fn end(&mut self, stop: Stop) -> Result<(), Refusal> {
        self.stopped(&stop);
        match self.last.take() {
            Some(Last::Response(parts, keeping)) => {
                *self.answer = Some(as_kept(*parts, keeping, &self.target.memory));
                Ok(())
            }
            Some(Last::Error(cause, error)) => Err(Refusal::Unanswered { stop, cause: Some(cause), error }),
            None => Err(Refusal::Unanswered { stop, cause: None, error: String::new() }),
        }
    }

    fn stopped(&mut self, stop: &Stop) {
        self.record.stopped(stop);
        self.report();
    }

    /// The layer above wants to know what was spent.
    fn report(&mut self) {
        if self.credit.asked {
            let used = if let Stage::Live(session) = &self.stage { session.used() } else { 0 };
            self.record.spent(used);
        }
    }

    /// The attempt in flight has ended.
    fn landed(&mut self, outcome: Outcome, now: Instant) {
        if let Some(flight) = &self.flight {
            self.record.attempt(Attempt {
                number: flight.number,
                endpoint: Some(flight.endpoint),
                outcome,
                wrote: flight.progress.wrote(),
                reused: flight.progress.reused,
                waited: flight.waited,
                took: now.since(flight.began),
            });
        }
    }
}

/// The client left, or its body failed: whatever the call holds goes back, and nobody is blamed.
impl<C: Connector> Drop for Call<'_, C> {
    fn drop(&mut self) {
        let running = match &self.stage {
            Stage::Quiet => return,
            Stage::Opening(_) => true,
            Stage::Live(session) if session.is_over() => return,
            Stage::Live(session) => session.running().is_some(),
        };
        let now = SystemTimer.now();
        if running {
            self.landed(Outcome::GivenUp, now);
        }
        let stop = self.input(|session, context| session.abandon(context, Used::Unsaid, Some(now)));
        self.record.stopped(&stop);
    }
}
