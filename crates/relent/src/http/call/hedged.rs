//! What the HTTP driver does while a request has, or may get, several attempts in flight.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use http_body::Body;
use relent_core::{AttemptId, Failure, Launch, Step};
use tower_service::Service;

use super::{HttpCall, Outcome, ReplayBody};
use crate::ambient::Surroundings;
use crate::call::Alarm;
use crate::classify::Classify;
use crate::layer::ReadyCall;
use crate::run::{EndedHedge, Hedges};
use crate::timer::{Timer, poll_until};

/// The attempts beside the first: each waits for a clone of the service to be ready.
pub(super) type HttpHedges<S, B> = Hedges<ReadyCall<S, Request<ReplayBody<B>>>>;

impl<S, B, RB, C, T> HttpCall<S, B, RB, C, T>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<RB>> + Clone,
    C: Classify<S::Error>,
    T: Timer,
    B: Body,
    RB: Body,
{
    /// The first attempt is pending, or has failed while others go on: polls these, and then the time.
    #[cold]
    pub(super) fn poll_hedged(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<ControlFlow<Outcome<RB, S::Error>, Step>> {
        loop {
            let this = self.as_mut().project();
            if let Some(hedges) = this.hedges
                && let Poll::Ready(ended) = hedges.poll(cx)
            {
                return match self.as_mut().hedge_ended(ended) {
                    Some(next) => Poll::Ready(next),
                    None => self.poll_peek(cx),
                };
            }
            let Some(at) = this.call.ends() else { return Poll::Pending };
            ready!(poll_until(&this.call.shared().timer, at, this.sleep, cx));
            let sender = this.sender.as_ref().expect("the call is not over");
            match this.call.alarm_came(sender.replay.is_complete()) {
                Alarm::Nothing => {}
                Alarm::Hedge(launch, inside) => self.as_mut().start_hedge(&launch, inside),
                Alarm::Expired => return Poll::Ready(ControlFlow::Continue(self.expired())),
                Alarm::HedgeExpired(id) => {
                    return Poll::Ready(ControlFlow::Continue(self.hedge_expired(id)));
                }
            }
        }
    }

    fn start_hedge(self: Pin<&mut Self>, launch: &Launch, inside: Surroundings) {
        let this = self.project();
        let sender = this.sender.as_mut().expect("the call is not over");
        let body = sender.replay.beside().expect("a body that is complete can be sent beside");
        let request = sender.request(launch, body);
        let service = sender.service.clone();
        let hedges = this.hedges.get_or_insert_with(|| Box::new(Hedges::new()));
        hedges.start(launch, inside, || ReadyCall::new(service, request));
    }

    /// `None`: its response is looked into first.
    fn hedge_ended(
        mut self: Pin<&mut Self>,
        ended: EndedHedge<Result<Response<RB>, S::Error>>,
    ) -> Option<ControlFlow<Outcome<RB, S::Error>, Step>> {
        let EndedHedge { id, inside, outcome } = ended;
        let this = self.as_mut().project();
        match outcome {
            Ok(response) => {
                *this.by_hedge = Some((id, inside));
                self.judged(response)
            }
            Err(error) => {
                let sender = this.sender.as_ref().expect("the call is not over");
                let failure = this.call.handle().classify.classify(&error);
                let failure = super::of_a_sent_request(failure);
                this.failures.add(error);
                let failure = sender.whole(failure);
                let step = this.call.hedge_failed(id, &inside, failure);
                self.forget_response();
                Some(ControlFlow::Continue(step))
            }
        }
    }

    fn hedge_expired(mut self: Pin<&mut Self>, id: AttemptId) -> Step {
        let this = self.as_mut().project();
        let ended = this.hedges.as_mut().and_then(|hedges| hedges.end(id));
        let inside = ended.unwrap_or(Surroundings::NONE);
        this.failures.timed_out();
        let sender = this.sender.as_ref().expect("the call is not over");
        let failure = sender.whole(Failure::timed_out());
        let step = this.call.hedge_expired(id, &inside, failure);
        self.forget_response();
        step
    }

    /// The outcome that stands is the last one: another attempt's response is no more.
    fn forget_response(self: Pin<&mut Self>) {
        let mut this = self.project();
        this.keeping.set(None);
        *this.failed = None;
    }

    /// Ends every attempt that is still in flight.
    pub(super) fn end_all(self: Pin<&mut Self>) {
        let mut this = self.project();
        *this.hedges = None;
        if this.attempt.is_some() {
            this.call.inside_it(|| this.attempt.set(None));
        }
        *this.launch = None;
    }
}
