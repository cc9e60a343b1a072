//! The attempts of an async call that run beside its first one.

use std::pin::Pin;
use std::task::{Context, Poll};

use relent_core::{AttemptId, Launch};

use crate::ambient::Surroundings;

/// Hedges in flight. Boxed, one by one: a call without them carries a pointer.
pub(crate) struct Hedges<Fut>(Vec<Running<Fut>>);

struct Running<Fut> {
    id: AttemptId,
    /// What it grants to the calls inside it.
    inside: Surroundings,
    /// `None` once it has ended, or is being dropped.
    attempt: Option<Pin<Box<Fut>>>,
}

/// A hedge that has ended, and what it came to.
pub(crate) struct EndedHedge<O> {
    pub(crate) id: AttemptId,
    pub(crate) inside: Surroundings,
    pub(crate) outcome: O,
}

impl<Fut> Hedges<Fut> {
    pub(crate) fn new() -> Hedges<Fut> {
        Hedges(Vec::new())
    }

    /// Starts one; `attempt` makes it, inside of what it grants.
    pub(crate) fn start(&mut self, launch: &Launch, mut inside: Surroundings, attempt: impl FnOnce() -> Fut) {
        let attempt = inside.enter(|| Box::pin(attempt()));
        self.0.push(Running { id: launch.id, inside, attempt: Some(attempt) });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends one whose time is up; `None` if it is not one of these.
    pub(crate) fn end(&mut self, id: AttemptId) -> Option<Surroundings> {
        let place = self.0.iter().position(|hedge| hedge.id == id)?;
        let mut hedge = self.0.swap_remove(place);
        hedge.drop_inside();
        Some(hedge.inside)
    }
}

impl<Fut: Future> Hedges<Fut> {
    /// Polls all of them, until one has ended.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<EndedHedge<Fut::Output>> {
        for place in 0..self.0.len() {
            let Running { inside, attempt, .. } = &mut self.0[place];
            let outcome = inside.enter(|| {
                let outcome =
                    attempt.as_mut().expect("a hedge that has ended is taken out").as_mut().poll(cx);
                if outcome.is_ready() {
                    *attempt = None;
                }
                outcome
            });
            if let Poll::Ready(outcome) = outcome {
                let Running { id, inside, .. } = self.0.swap_remove(place);
                return Poll::Ready(EndedHedge { id, inside, outcome });
            }
        }
        Poll::Pending
    }
}

impl<Fut> Running<Fut> {
    /// Dropped where it ran, so that the calls inside it give back what they hold to it.
    fn drop_inside(&mut self) {
        let Running { inside, attempt, .. } = self;
        inside.enter(|| *attempt = None);
    }
}

impl<Fut> Drop for Hedges<Fut> {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Running::drop_inside);
    }
}
