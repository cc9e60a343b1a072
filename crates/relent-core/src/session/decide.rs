//! The one place where it is decided whether a failed attempt is followed by another: all questions, in order.

use core::time::Duration;

use super::{Context, Session, StopReason, WaitOrigin};
use crate::budget::{Permit, TokenClass};
use crate::rng::uniform;
use crate::time::nanos;
use crate::waiting::Seat;
use crate::{Admission, Cause, Credit, Failure, Hint, Instant, Repeat, Verdict};

/// A yes.
pub(super) enum Go {
    /// A free repeat.
    AtOnce,
    /// An ordinary retry, its seat and token taken.
    At { until: Instant, origin: WaitOrigin, seat: Option<Seat>, permit: Option<Permit> },
}

/// What a hedge starts with.
pub(super) struct Granted {
    pub(super) permit: Option<Permit>,
    pub(super) admission: Admission,
}

impl Session {
    /// Asks everyone who has to allow a retry; the first "no" is the reason. Nothing is taken before the last yes but
    /// what gives itself back.
    pub(super) fn decide<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        failure: &Failure,
        now: Instant,
    ) -> Result<Go, StopReason> {
        // The call's own time is up: nothing else matters, and the answer must not depend on which timer was polled first.
        ensure(now < self.deadline, StopReason::DeadlineExceeded)?;
        // 1. Is it a failure that this policy retries?
        ensure(is_retryable(failure, context), StopReason::NotRetryable)?;
        // 2. Has the peer said stop?
        ensure(failure.stop.is_none(), StopReason::StoppedByPeer)?;
        // 3. May it be sent again? Free repeats never reached anybody.
        ensure(failure.free || self.may_repeat(failure), StopReason::UnsafeToRepeat)?;
        // 4. Can it be?
        ensure(self.replayable, StopReason::NotReplayable)?;
        if failure.free && !self.freed && context.free_repeats.admits(now) {
            return Ok(Go::AtOnce);
        }
        ensure(self.may_repeat(failure), StopReason::UnsafeToRepeat)?;
        // 5. Are attempts left, by policy and by credit?
        ensure(self.counted() < context.policy.attempts_after(failure), StopReason::AttemptsExhausted)?;
        ensure(self.ledger.affords(context.policy.attempts(), context.credit), StopReason::CreditExhausted)?;
        // 6. How long, and does the server ask for no more than can be waited out?
        let hint = self.hint(failure, context);
        ensure(hint.is_none_or(|h| h.wait <= context.policy.max_hint()), StopReason::HintTooLong)?;
        let hint = held(hint, context, now);
        let backoff = self.backoff(context, hint);
        // 7. Does the wait fit before the deadline, and before the call is to give up? Without the hint's own jitter, which is then cut to what fits.
        let least = backoff.max(hint.map_or(Duration::ZERO, |h| h.wait));
        let room = room(self.last_start(), now + least + context.policy.min_attempt_time());
        let delay = match (hint, room) {
            (_, None) => return Err(StopReason::DeadlineTooClose),
            (Some(hint), Some(room)) if !hint.exact => spread(context, hint.wait, room, least),
            _ => least,
        };
        let until = now + delay;
        // 8. Is there room to wait?
        let seat = context.waiting.enter(context.policy.max_waiting());
        ensure(seat.is_some(), StopReason::TooManyWaiting)?;
        // 9. Will the breaker admit it then?
        let admitted = context.breaker.is_none_or(|breaker| breaker.admits_retry(now, until));
        ensure(admitted, StopReason::BreakerOpen)?;
        // 10. Does the budget pay? Last, so that no other refusal costs a token.
        let permit = match context.budget {
            Some(budget) => {
                let permit = budget.clone().withdraw(token_class(failure), now);
                Some(permit.ok_or(StopReason::BudgetExhausted)?)
            }
            None => None,
        };
        self.ledger.retry(context.credit);
        let by_server = delay > backoff || hint.is_some_and(|h| h.exact);
        let origin = if by_server { WaitOrigin::Server } else { WaitOrigin::Backoff };
        Ok(Go::At { until, origin, seat, permit })
    }

    /// Asks everyone who has to allow a hedge, in the same order. It is made before anything failed, so that there is no
    /// verdict, no wait and no seat to ask about.
    pub(super) fn decide_hedge<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        replayable: bool,
        now: Instant,
    ) -> Result<Granted, StopReason> {
        ensure(now < self.deadline, StopReason::DeadlineExceeded)?;
        ensure(self.repeat == Repeat::Yes, StopReason::UnsafeToRepeat)?;
        ensure(self.replayable && replayable, StopReason::NotReplayable)?;
        ensure(self.counted() < context.policy.attempts(), StopReason::AttemptsExhausted)?;
        ensure(self.ledger.affords(context.policy.attempts(), context.credit), StopReason::CreditExhausted)?;
        ensure(context.hold.is_none_or(|hold| hold.held_until() <= now), StopReason::HintTooLong)?;
        ensure(now + context.policy.min_attempt_time() < self.deadline, StopReason::DeadlineTooClose)?;
        let admitted = context.breaker.is_none_or(|breaker| breaker.admits_retry(now, now));
        ensure(admitted, StopReason::BreakerOpen)?;
        let mut permit = None;
        if let Some(budget) = context.budget {
            let token = budget.clone().withdraw(TokenClass::Hedge, now);
            permit = Some(token.ok_or(StopReason::BudgetExhausted)?);
        }
        // Last, since it can't be given back unused as easily as a token that was not spent.
        let admission = super::admit_retry(context, now).ok_or(StopReason::BreakerOpen)?;
        if let Some(permit) = &mut permit {
            permit.spend();
        }
        Ok(Granted { permit, admission })
    }

    /// At the launch of a retry: whether another call was told meanwhile to stay away longer. Then this one waits on, as far
    /// as its deadline and `max_hint` allow.
    pub(super) fn held_back<C: ?Sized>(
        &self,
        context: &Context<'_, C>,
        now: Instant,
    ) -> Result<Option<Instant>, StopReason> {
        let held = context.hold.map_or(Instant::ZERO, |hold| hold.held_until());
        if held <= now {
            return Ok(None);
        }
        ensure(held.since(self.started) <= context.policy.max_hint(), StopReason::HintTooLong)?;
        let left = held.since(now);
        let room = room(self.last_start(), held + context.policy.min_attempt_time());
        let room = room.ok_or(StopReason::DeadlineTooClose)?;
        Ok(Some(now + spread(context, left, room, left)))
    }

    fn may_repeat(&self, failure: &Failure) -> bool {
        match self.repeat {
            Repeat::Yes => true,
            Repeat::UnprocessedOnly => failure.verdict == Verdict::Unprocessed,
            Repeat::No => false,
        }
    }

    /// The server's word; a throttling answer without one counts as the policy's own.
    fn hint<C: ?Sized>(&mut self, failure: &Failure, context: &Context<'_, C>) -> Option<Hint> {
        match (failure.hint, failure.verdict) {
            (None, Verdict::Throttled { .. }) => {
                let retry = self.troubles().retry.saturating_add(1);
                let multiplier = context.policy.backoff().multiplier();
                Some(Hint::at_least(context.policy.throttled().wait(retry, multiplier)))
            }
            (hint, _) => hint,
        }
    }

    /// The next wait by the curve. An exact hint takes its place and starts the curve anew.
    fn backoff<C: ?Sized>(&mut self, context: &Context<'_, C>, hint: Option<Hint>) -> Duration {
        let troubles = self.troubles();
        if hint.is_some_and(|h| h.exact) {
            (troubles.retry, troubles.previous) = (0, 0);
            return Duration::ZERO;
        }
        troubles.retry = troubles.retry.saturating_add(1);
        let bits = context.random.next_u64();
        troubles.previous = context.policy.backoff().draw_nanos(troubles.retry, troubles.previous, bits);
        Duration::from_nanos(troubles.previous)
    }
}

fn ensure(yes: bool, otherwise: StopReason) -> Result<(), StopReason> {
    if yes { Ok(()) } else { Err(otherwise) }
}

pub(super) fn is_retryable<C: ?Sized>(failure: &Failure, context: &Context<'_, C>) -> bool {
    let verdict = match failure.verdict {
        Verdict::Transient | Verdict::Throttled { .. } | Verdict::Unprocessed => true,
        Verdict::Permanent | Verdict::Rejected => false,
    };
    // What may be repeated for free was never seen by anybody: it needs no entry.
    verdict && (failure.free || context.policy.retry_on().contains(failure.cause))
}

/// A hold on the target counts like a hint of the call's own, if it is the longer of the two.
fn held<C: ?Sized>(hint: Option<Hint>, context: &Context<'_, C>, now: Instant) -> Option<Hint> {
    let held = context.hold.map_or(Duration::ZERO, |hold| hold.held_until().since(now));
    if held > hint.map_or(Duration::ZERO, |hint| hint.wait) { Some(Hint::at_least(held)) } else { hint }
}

/// The verdict as a budget is to hear it: what this policy does not retry is permanent by it, unless the peer itself said
/// to stop, which gRPC's throttle charges for (gRFC A6).
pub(super) fn verdict_by<C: ?Sized>(failure: &Failure, context: &Context<'_, C>) -> Verdict {
    let counts = failure.stop.is_some() || is_retryable(failure, context);
    if counts { failure.verdict } else { Verdict::Permanent }
}

/// What is left before the deadline once the attempt has its least time; `None` if nothing is (equality is nothing).
fn room(deadline: Instant, earliest_end: Instant) -> Option<Duration> {
    if deadline.is_never() {
        return Some(Duration::MAX);
    }
    (earliest_end < deadline).then(|| deadline.since(earliest_end) - Duration::from_nanos(1))
}

/// max(least, hint + U[0, min(hint/2, cap)]), cut to what fits: a date sent to many must not bring them all back at once.
fn spread<C: ?Sized>(context: &Context<'_, C>, wait: Duration, room: Duration, least: Duration) -> Duration {
    let room = room.saturating_add(least - wait.min(least));
    let widest = (wait / 2).min(context.policy.backoff().cap()).min(room);
    let jitter = uniform(0, nanos(widest), context.random.next_u64());
    least.max(wait + Duration::from_nanos(jitter))
}

fn token_class(failure: &Failure) -> TokenClass {
    match (failure.verdict, failure.cause) {
        (Verdict::Throttled { .. }, _) => TokenClass::Throttled,
        (_, Cause::Timeout) => TokenClass::Timeout,
        _ => TokenClass::Transient,
    }
}
