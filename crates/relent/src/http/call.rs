//! The HTTP driver: one request, its attempts, and the response that is kept while it waits.

mod hedged;

use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response, request, response};
use http_body::Body;
use pin_project_lite::pin_project;
use relent_core::{AttemptId, Cause, Failure, Health, Launch, Repeat, Step, Stop, StopReason, Verdict};
use tower_service::Service;

use self::hedged::HttpHedges;
use super::kept::{self, Keeping, Kept, RetryBody};
use super::peek::{Peeking, Rules};
use super::peers::Peers;
use super::protocol::Protocol;
use super::replay::{Replay, ReplayBody};
use super::status::with_fields;
use super::wire;
use crate::ambient::Surroundings;
use crate::attempt::Attempt;
use crate::call::Call;
use crate::classify::Classify;
use crate::error::{Failures, RetryError};
use crate::retry::Retry;
use crate::timer::{Timer, poll_until};

/// Why a failed response was handed on, rather than the request sent again: among the response's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stopped {
    /// Why no further attempt was made.
    pub reason: StopReason,
    /// Attempts made.
    pub attempts: u32,
    /// Whether any of them may have been executed without an answer.
    pub ambiguous: bool,
    /// How long the call took, waits included.
    pub elapsed: Duration,
    /// What the server had asked to wait.
    pub hint: Option<Duration>,
    /// Whether the response's body is missing, since it was too long to be kept over a wait.
    pub without_body: bool,
}

/// What every attempt is made from.
pub(crate) struct Sender<S, B> {
    service: S,
    /// Whether `service` has been polled ready and not been called since.
    ready: bool,
    /// As the caller made it: no attempt sees another one's headers.
    pristine: request::Parts,
    replay: Replay<B>,
    peers: Peers,
    peer: Option<usize>,
    protocol: Protocol,
    rules: Rules,
}

impl<S, B> Sender<S, B> {
    /// `service` is ready.
    pub(crate) fn new(service: S, mut pristine: request::Parts, replay: Replay<B>, peers: Peers) -> Self {
        wire::forget(&mut pristine.headers);
        let peer = peers.find(&pristine.uri, &pristine.headers);
        Sender {
            service,
            ready: true,
            pristine,
            replay,
            peers,
            peer,
            protocol: Protocol::Http,
            rules: Rules::default(),
        }
    }

    /// The same where the caller has rules of its own.
    pub(super) fn ruled(self, rules: Rules) -> Self {
        Sender { rules, ..self }
    }

    /// The same in another language than plain HTTP.
    #[cfg(feature = "grpc")]
    pub(crate) fn speaking(self, protocol: Protocol) -> Self {
        Sender { protocol, ..self }
    }

    fn send(&mut self, launch: &Launch) -> S::Future
    where
        S: Service<Request<ReplayBody<B>>>,
        B: Body,
    {
        self.ready = false;
        let body = self.replay.next_attempt();
        let request = self.request(launch, body);
        self.service.call(request)
    }

    /// What an attempt sends.
    fn request(&mut self, launch: &Launch, body: ReplayBody<B>) -> Request<ReplayBody<B>> {
        let mut parts = self.pristine.clone();
        if self.peer.is_some() {
            wire::stamp(&mut parts.headers, launch);
        }
        self.protocol.stamp(&mut parts, launch);
        parts.extensions.insert(Attempt::new(launch));
        Request::from_parts(parts, body)
    }

    /// Adds to a failure whether the body can be sent again.
    fn whole(&self, failure: Failure) -> Failure
    where
        B: Body,
    {
        if self.replay.is_whole(&failure) { failure } else { failure.not_replayable() }
    }
}

pin_project! {
    /// An HTTP request that is retried: the future of [`HttpRetry`](super::HttpRetry).
    #[must_use = "futures do nothing unless polled"]
    pub struct HttpCall<S, B, RB, C, T>
    where
        S: Service<Request<ReplayBody<B>>>,
        T: Timer,
        RB: Body,
    {
        call: Call<Retry<C, T>>,
        // `None` once the call is over, so that a body still being sent is no longer kept.
        sender: Option<Sender<S, B>>,
        failures: Failures<S::Error>,
        phase: Phase,
        // The failed response of the attempt before, over a wait.
        failed: Option<Box<response::Parts>>,
        #[pin]
        keeping: Option<Keeping<RetryBody<RB>>>,
        // The response that is looked into.
        peeking: Option<Box<Peeking<RB>>>,
        // Launched, and sent as soon as the service is ready.
        launch: Option<Launch>,
        #[pin]
        attempt: Option<S::Future>,
        // Attempts beside it.
        hedges: Option<Box<HttpHedges<S, B>>>,
        // Which of these the response is from that is judged, and what it granted.
        by_hedge: Option<(AttemptId, Surroundings)>,
        #[pin]
        sleep: Option<T::Sleep>,
    }

    impl<S, B, RB, C, T> PinnedDrop for HttpCall<S, B, RB, C, T>
    where
        S: Service<Request<ReplayBody<B>>>,
        T: Timer,
        RB: Body,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            *this.hedges = None;
            this.call.inside_it(|| this.attempt.set(None));
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Attempt,
    Wait,
    Done,
}

/// How a call ends.
type Outcome<RB, E> = Result<Response<RetryBody<RB>>, RetryError<E>>;

impl<S, B, RB, C, T> HttpCall<S, B, RB, C, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<RB>>,
    T: Timer,
    RB: Body,
{
    pub(crate) fn new(retry: Retry<C, T>, sender: Sender<S, B>, repeat: Repeat) -> Self {
        HttpCall {
            failures: Failures::new(retry.shared.keep_errors),
            call: Call::new(retry, repeat),
            sender: Some(sender),
            phase: Phase::New,
            failed: None,
            keeping: None,
            peeking: None,
            launch: None,
            attempt: None,
            hedges: None,
            by_hedge: None,
            sleep: None,
        }
    }
}

impl<S, B, RB, C, T> Future for HttpCall<S, B, RB, C, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<RB>> + Clone,
    C: Classify<S::Error>,
    T: Timer,
    B: Body,
    RB: Body,
{
    type Output = Outcome<RB, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let next = match self.phase {
                Phase::New => ControlFlow::Continue(self.as_mut().begin()),
                Phase::Attempt => ready!(self.as_mut().poll_attempt(cx)),
                Phase::Wait => ControlFlow::Continue(ready!(self.as_mut().poll_wait(cx))),
                Phase::Done => panic!("a call was polled after its end"),
            };
            let next = match next {
                ControlFlow::Continue(step) => self.as_mut().follow(step),
                over => over.map_continue(|_| ()),
            };
            if let ControlFlow::Break(outcome) = next {
                self.as_mut().close();
                return Poll::Ready(outcome);
            }
        }
    }
}

impl<S, B, RB, C, T> HttpCall<S, B, RB, C, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<RB>> + Clone,
    C: Classify<S::Error>,
    T: Timer,
    B: Body,
    RB: Body,
{
    fn begin(self: Pin<&mut Self>) -> Step {
        let this = self.project();
        let sender = this.sender.as_ref().expect("the call is not over");
        this.call.begin(sender.protocol.time_given(&sender.pristine.headers))
    }

    /// Polls the attempt, and only if it is not ready its time: at equal times an answer beats the clock.
    fn poll_attempt(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<ControlFlow<Outcome<RB, S::Error>, Step>> {
        if self.peeking.is_some() {
            return self.poll_peek(cx);
        }
        if self.attempt.is_none() && self.launch.is_none() {
            return self.poll_hedged(cx);
        }
        let polled = match self.as_mut().poll_sent(cx) {
            Poll::Ready(Ok(())) => {
                let this = self.as_mut().project();
                let attempt = this.attempt.as_pin_mut().expect("it was sent");
                this.call.inside().enter(|| attempt.poll(cx))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        };
        match polled {
            Poll::Ready(Ok(response)) => match self.as_mut().received(response) {
                Some(next) => Poll::Ready(next),
                None => self.poll_peek(cx),
            },
            Poll::Ready(Err(error)) => Poll::Ready(ControlFlow::Continue(self.broke(error))),
            Poll::Pending if self.call.may_be_hedged() => self.poll_hedged(cx),
            Poll::Pending => {
                ready!(self.as_mut().poll_time(cx));
                Poll::Ready(ControlFlow::Continue(self.expired()))
            }
        }
    }

    /// Sends the attempt once the service is ready: the very instance that is called.
    fn poll_sent(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let mut this = self.project();
        let Some(launch) = this.launch else { return Poll::Ready(Ok(())) };
        let sender = this.sender.as_mut().expect("the call is not over");
        if !sender.ready {
            ready!(this.call.inside().enter(|| sender.service.poll_ready(cx)))?;
            // What the wait for readiness took can't be told to the peer any more.
            launch.time = launch.ends.left(this.call.shared().timer.now());
        }
        let attempt = this.call.inside().enter(|| sender.send(launch));
        this.attempt.set(Some(attempt));
        *this.launch = None;
        Poll::Ready(Ok(()))
    }

    /// Ready when the attempt's time has come.
    fn poll_time(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let Some(ends) = this.call.ends() else { return Poll::Pending };
        poll_until(&this.call.shared().timer, ends, this.sleep, cx)
    }

    /// Ready when the time of the attempt is up that has answered, be there others or not.
    fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        let Some(ends) = this.call.attempt_ends() else { return Poll::Pending };
        poll_until(&this.call.shared().timer, ends, this.sleep, cx)
    }

    fn poll_wait(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let mut this = self.project();
        if let Some(keeping) = this.keeping.as_mut().as_pin_mut() {
            keeping.poll_read(cx);
        }
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(cx));
        }
        this.sleep.set(None);
        Poll::Ready(this.call.due())
    }

    /// A response has come. `None`: its body is looked into first.
    fn received(
        mut self: Pin<&mut Self>,
        response: Response<RB>,
    ) -> Option<ControlFlow<Outcome<RB, S::Error>, Step>> {
        let mut this = self.as_mut().project();
        // Dropped where it ran, so that calls inside it give back what they hold to it.
        this.call.inside_it(|| this.attempt.set(None));
        let sender = this.sender.as_ref().expect("the call is not over");
        this.call.inside().spend(sender.peers.used(sender.peer, &response));
        self.judged(response)
    }

    /// What a response comes to. `None`: its body is looked into first.
    fn judged(
        mut self: Pin<&mut Self>,
        response: Response<RB>,
    ) -> Option<ControlFlow<Outcome<RB, S::Error>, Step>> {
        let this = self.as_mut().project();
        let sender = this.sender.as_ref().expect("the call is not over");
        let (parts, body) = response.into_parts();
        if let Some(limit) = sender.rules.peeks(&parts) {
            let memory = &this.call.shared().memory;
            *this.peeking = Some(Box::new(Peeking::new(parts, body, limit, memory)));
            return None;
        }
        let judged = sender.rules.judge(&parts, None);
        Some(self.answered(parts, RetryBody::live(body), judged))
    }

    /// Looks into the body within the attempt's time. One that takes longer is handed on without.
    fn poll_peek(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<ControlFlow<Outcome<RB, S::Error>, Step>> {
        let peeking = self.as_mut().project().peeking.as_mut().expect("a body is looked into");
        if peeking.poll_read(cx).is_pending() {
            ready!(self.as_mut().poll_end(cx));
        }
        let this = self.as_mut().project();
        let (parts, body, whole) = this.peeking.take().expect("a body is looked into").finish();
        let sender = this.sender.as_ref().expect("the call is not over");
        let judged = sender.rules.judge(&parts, whole.as_ref());
        Poll::Ready(self.answered(parts, body, judged))
    }

    /// `judged` is what the caller's own rules say of the response.
    fn answered(
        mut self: Pin<&mut Self>,
        mut parts: response::Parts,
        body: RetryBody<RB>,
        judged: Option<Failure>,
    ) -> ControlFlow<Outcome<RB, S::Error>, Step> {
        let mut this = self.as_mut().project();
        let sender = this.sender.as_ref().expect("the call is not over");
        let timer = &this.call.shared().timer;
        let failure = match judged {
            Some(failure) => Some(with_fields(failure, &parts.headers, timer.wall())),
            None => sender.protocol.failure(&parts, timer),
        };
        let by_hedge = this.by_hedge.take();
        let Some(failure) = failure else {
            wire::consume(&mut parts.headers);
            // The losers are gone before anybody hears of the success.
            self.as_mut().end_all();
            match by_hedge {
                None => self.project().call.succeeded(),
                Some((id, _)) => self.project().call.hedge_succeeded(id),
            }
            return ControlFlow::Break(Ok(Response::from_parts(parts, body)));
        };
        let failure = sender.whole(failure);
        let step = match by_hedge {
            None => this.call.failed(failure),
            Some((id, inside)) => this.call.hedge_failed(id, &inside, failure),
        };
        match step {
            Step::Stop(stop) => {
                let elapsed = this.call.elapsed();
                ControlFlow::Break(Ok(refused(parts, body, stop, elapsed, false)))
            }
            step => {
                this.keeping.set(Some(Keeping::new(body, &this.call.shared().memory)));
                *this.failed = Some(Box::new(parts));
                ControlFlow::Continue(step)
            }
        }
    }

    fn broke(self: Pin<&mut Self>, error: S::Error) -> Step {
        let mut this = self.project();
        this.call.inside_it(|| this.attempt.set(None));
        let sent = this.launch.take().is_none();
        let sender = this.sender.as_ref().expect("the call is not over");
        let mut failure = this.call.handle().classify.classify(&error);
        if sent {
            failure = of_a_sent_request(failure);
        }
        this.failures.add(error);
        this.call.inside().spend(sender.peers.unheard(sender.peer, &failure));
        this.call.failed(sender.whole(failure))
    }

    fn expired(self: Pin<&mut Self>) -> Step {
        let mut this = self.project();
        this.call.inside_it(|| this.attempt.set(None));
        let sender = this.sender.as_ref().expect("the call is not over");
        let failure = match this.launch.take() {
            // What waited for its turn until then was never sent.
            Some(_) => Failure::new(Verdict::Unprocessed).cause(Cause::Timeout).health(Health::Unknown),
            None => Failure::timed_out(),
        };
        this.failures.timed_out();
        this.call.inside().spend(sender.peers.unheard(sender.peer, &failure));
        this.call.expired(sender.whole(failure))
    }

    /// Does what the session answered.
    fn follow(mut self: Pin<&mut Self>, step: Step) -> ControlFlow<Outcome<RB, S::Error>> {
        let mut this = self.as_mut().project();
        match step {
            Step::Launch(launch) => {
                this.sleep.set(None);
                this.keeping.set(None);
                *this.failed = None;
                *this.launch = Some(launch);
                *this.phase = Phase::Attempt;
            }
            Step::Wait { .. } if this.call.is_in_flight() => {
                this.sleep.set(None);
                *this.phase = Phase::Attempt;
            }
            Step::Wait { until } => {
                let sender = this.sender.as_ref().expect("the call is not over");
                sender.replay.another_follows();
                let sleep = this.call.shared().timer.sleep_until(until);
                this.sleep.set(Some(sleep));
                *this.phase = Phase::Wait;
            }
            Step::Stop(stop) => return ControlFlow::Break(self.as_kept(stop)),
        }
        ControlFlow::Continue(())
    }

    /// The end after a wait, or without any answer.
    fn as_kept(self: Pin<&mut Self>, stop: Stop) -> Outcome<RB, S::Error> {
        let mut this = self.project();
        let elapsed = this.call.elapsed();
        let Some(parts) = this.failed.take() else {
            let failures = std::mem::replace(this.failures, Failures::new(false));
            return Err(RetryError::new(stop, elapsed, failures));
        };
        let memory = &this.call.shared().memory;
        let kept = this.keeping.as_mut().as_pin_mut().and_then(|keeping| keeping.finish(memory));
        let without_body = kept.is_none();
        let mut parts = *parts;
        if without_body {
            kept::without_body(&mut parts.headers);
        }
        let body = RetryBody::kept(kept.unwrap_or_else(Kept::nothing));
        Ok(refused(parts, body, stop, elapsed, without_body))
    }

    fn close(mut self: Pin<&mut Self>) {
        self.as_mut().end_all();
        let mut this = self.project();
        *this.phase = Phase::Done;
        *this.sender = None;
        this.sleep.set(None);
        this.keeping.set(None);
    }
}

/// An error after the request was handed down. Nobody knows this error, or nobody said more of it: no answer came.
fn of_a_sent_request(failure: Failure) -> Failure {
    if failure.verdict() == Verdict::Permanent { failure.ambiguous() } else { failure }
}

/// The last real response, with the reason why it is the last.
fn refused<RB: Body>(
    mut parts: response::Parts,
    body: RetryBody<RB>,
    stop: Stop,
    elapsed: Duration,
    without_body: bool,
) -> Response<RetryBody<RB>> {
    wire::consume(&mut parts.headers);
    let Stop { reason, attempts, ambiguous, hint, .. } = stop;
    parts.extensions.insert(Stopped { reason, attempts, ambiguous, elapsed, hint, without_body });
    Response::from_parts(parts, body)
}

impl<S, B, RB, C, T> fmt::Debug for HttpCall<S, B, RB, C, T>
where
    S: Service<Request<ReplayBody<B>>>,
    T: Timer,
    RB: Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCall").field("phase", &self.phase).finish_non_exhaustive()
    }
}
