//! What the async driver does while a call has, or may get, several attempts in flight.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use relent_core::{AttemptId, Failure, Launch, Step};

use super::hedges::{EndedHedge, Hedges};
use super::{Operation, Run, end_all, end_attempt, errors};
use crate::ambient::Surroundings;
use crate::attempt::Attempt;
use crate::call::{Alarm, Handle};
use crate::classify::Classify;
use crate::error::Errors;
use crate::timer::{Timer, poll_until};

impl<H, F, Fut, V, E> Run<H, F, Fut, E>
where
    H: Handle,
    H::Timer: Timer,
    H::Classifier: Classify<E>,
    F: Operation<E, Future = Fut>,
    Fut: Future<Output = Result<V, E>>,
{
    /// The first attempt is pending, or has failed while others go on: polls these, and then the time.
    #[cold]
    pub(super) fn poll_hedged(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<V, Step>> {
        loop {
            let this = self.as_mut().project();
            if let Some(hedges) = this.call.kept().and_then(|kept| kept.hedges.as_mut())
                && let Poll::Ready(ended) = hedges.poll(cx)
            {
                return Poll::Ready(self.hedge_ended(ended));
            }
            let Some(at) = this.call.ends() else { return Poll::Pending };
            ready!(poll_until(&this.call.shared().timer, at, this.sleep, cx));
            match this.call.alarm_came(true) {
                Alarm::Nothing => {}
                Alarm::Hedge(launch, inside) => self.as_mut().start_hedge(&launch, inside),
                Alarm::Expired => {
                    end_attempt(this.call, this.attempt);
                    *this.timed_out = true;
                    return Poll::Ready(Err(this.call.expired(Failure::timed_out())));
                }
                Alarm::HedgeExpired(id) => {
                    return Poll::Ready(Err(self.hedge_expired(id)));
                }
            }
        }
    }

    fn start_hedge(self: Pin<&mut Self>, launch: &Launch, inside: Surroundings) {
        let this = self.project();
        let operation = this.operation;
        let Some(kept) = this.call.kept() else { return };
        let last = kept.errors.as_ref().and_then(Errors::last);
        let hedges = kept.hedges.get_or_insert_with(|| Box::new(Hedges::new()));
        hedges.start(launch, inside, || operation.start(Attempt::new(launch), last));
    }

    fn hedge_ended(mut self: Pin<&mut Self>, ended: EndedHedge<Result<V, E>>) -> Result<V, Step> {
        let this = self.as_mut().project();
        let EndedHedge { id, inside, outcome } = ended;
        match outcome {
            Ok(value) => {
                // The losers are gone before anybody hears of the success.
                end_all(this.call, this.attempt);
                this.call.hedge_succeeded(id);
                self.succeed();
                Ok(value)
            }
            Err(error) => {
                let failure = this.call.handle().retry().classify.classify(&error);
                *this.timed_out = false;
                errors(this.call).add(error);
                Err(this.call.hedge_failed(id, &inside, failure))
            }
        }
    }

    fn hedge_expired(self: Pin<&mut Self>, id: AttemptId) -> Step {
        let this = self.project();
        let hedges = this.call.kept().and_then(|kept| kept.hedges.as_mut());
        let ended = hedges.and_then(|hedges| hedges.end(id));
        let inside = ended.unwrap_or(Surroundings::NONE);
        *this.timed_out = true;
        this.call.hedge_expired(id, &inside, Failure::timed_out())
    }
}
