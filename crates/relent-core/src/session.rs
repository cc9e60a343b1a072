//! One logical call: events and time in, decisions out. The heart of relent.

mod decide;
mod flights;
mod ledger;
mod opening;
mod past;
mod step;

pub use flights::Hedge;
pub use opening::Opening;
pub use past::Past;
pub use step::{AttemptId, Launch, Step, Stop, StopReason, WaitOrigin};

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use crate::budget::{Permit, Presence};
use crate::waiting::Seat;
use crate::{
    Admission, Breaker, Budget, Cause, Credit, Failure, FreeRepeats, Health, Hold, Holds, Instant, Latencies,
    Policy, Random, Repeat, Used, Verdict, WaitingRoom,
};
use flights::Flights;
use ledger::Ledger;

/// What a session decides by: the policy, and the handles that many calls share.
pub struct Context<'a, C: ?Sized> {
    /// How calls are retried.
    pub policy: &'a Policy,
    /// Who pays for retries; `None`: nobody has to.
    pub budget: Option<&'a Arc<dyn Budget>>,
    /// Whether the target is well enough to be retried; `None`: not asked.
    pub breaker: Option<&'a dyn Breaker>,
    /// The calls in backoff for this target.
    pub waiting: &'a Arc<WaitingRoom>,
    /// The rate cap on free repeats.
    pub free_repeats: &'a FreeRepeats,
    /// What the layers above still grant.
    pub credit: &'a C,
    /// A pause that servers asked for; `None`: each call keeps its own only.
    pub hold: Option<&'a dyn Holds>,
    /// How long attempts take, where hedges go by that; `None`: not measured.
    pub latencies: Option<&'a Latencies>,
    /// Random bits for the jitter.
    pub random: &'a dyn Random,
}

impl<C: ?Sized> core::fmt::Debug for Context<'_, C> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Context").field("policy", self.policy).finish_non_exhaustive()
    }
}

/// One call, from its first attempt to its end.
///
/// # Driving it
/// 1. [`begin`](Session::begin) with `now`. It answers a [`Step`].
/// 2. [`Step::Launch`]: start the attempt, and ask to be woken at its `ends`.
/// 3. The attempt succeeded: [`succeeded`](Session::succeeded), and the call is over. It failed:
///    [`failed`](Session::failed). Its time came first: end it, and say [`expired`](Session::expired).
/// 4. [`Step::Wait`]: ask to be woken at `until`, then say [`due`](Session::due).
/// 5. [`Step::Stop`]: the call is over; the last real outcome goes to the caller, with the reason.
/// 6. Given up before its end: [`abandon`](Session::abandon).
///
/// Every input answers exactly one step, and nothing else happens between inputs.
///
/// ```
/// use relent_core::*;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// let policy = Policy::constant(Duration::from_millis(10)).attempts(2).no_budget().build()?;
/// let (waiting, free_repeats, bits) = (Arc::new(WaitingRoom::new()), FreeRepeats::default(), || 7);
/// let context = Context {
///     policy: &policy, budget: None, breaker: None, waiting: &waiting,
///     free_repeats: &free_repeats, credit: &NoCredit, hold: None, latencies: None, random: &bits,
/// };
///
/// let mut now = Instant::ZERO;
/// let mut session = Session::new(&policy, Repeat::Yes, Instant::NEVER, now);
/// let mut step = session.begin(&context, now);
/// let mut log = Vec::new();
/// let stop = loop {
///     step = match step {
///         Step::Launch(launch) => {
///             log.push(launch.number);
///             session.failed(&context, launch.id, Verdict::Transient.into(), now)
///         }
///         Step::Wait { until } => {
///             now = until;
///             session.due(&context, now)
///         }
///         Step::Stop(stop) => break stop,
///     };
/// };
/// assert_eq!((log, stop.reason), (vec![1, 2], StopReason::AttemptsExhausted));
/// # Ok::<(), PolicyError>(())
/// ```
#[derive(Debug)]
pub struct Session {
    deadline: Instant,
    /// When the attempt in flight started.
    started: Instant,
    /// When its time is up; while the call waits, until when.
    alarm: Instant,
    /// Attempts launched, free repeats included: the last id.
    launched: u32,
    ledger: Ledger,
    /// The breaker's leave for the attempt in flight.
    admission: Admission,
    repeat: Repeat,
    phase: Phase,
    replayable: bool,
    ambiguous: bool,
    /// The call's one free repeat is made.
    freed: bool,
    /// Whose word the wait follows.
    origin: WaitOrigin,
    /// Why the call ended.
    reason: StopReason,
    /// What only a call with a failure needs.
    troubles: Option<Box<Troubles>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Running,
    Waiting,
    Over,
}

/// A call's memory of its failures, and what it holds while it waits and gives back when it is dropped.
#[derive(Debug, Default)]
struct Troubles {
    /// Retries since the curve (re)started.
    retry: u32,
    /// The last backoff in nanoseconds, which decorrelated jitter grows from.
    previous: u64,
    seat: Option<Seat>,
    permit: Option<Permit>,
    /// The last failure, for the attempt after it.
    past: Past,
    seldom: Option<Box<Seldom>>,
}

/// What few policies ask for: apart, since many calls may wait at once.
#[derive(Debug, Default)]
struct Seldom {
    /// The attempts of a hedged call.
    flights: Flights,
    /// From when on no attempt is started any more, if the time since the first failure bounds that.
    give_up: Option<Instant>,
    /// The call counts as in flight until its end, where a budget wants to know.
    presence: Option<Presence>,
}

impl Session {
    /// A call that starts at `now`, may be repeated as `repeat` says, and has to end by `deadline` (the caller's, the
    /// wire's, the layer's above; [`Instant::NEVER`] if there is none) or by the policy's, whichever is nearer.
    ///
    /// A driver that need not read its clock (see [`Policy::is_timed`]) and has no `deadline` may pass any `now`.
    #[must_use]
    pub fn new(policy: &Policy, repeat: Repeat, deadline: Instant, now: Instant) -> Session {
        Session {
            deadline: opening::nearer(policy, deadline, now),
            started: now,
            alarm: Instant::NEVER,
            launched: 0,
            ledger: Ledger::default(),
            admission: Admission::ANY,
            repeat,
            phase: Phase::New,
            replayable: true,
            ambiguous: false,
            freed: false,
            origin: WaitOrigin::Backoff,
            reason: StopReason::Succeeded,
            troubles: None,
        }
    }

    /// Says before the first attempt that the operation's input can't be kept, so that layers below get all the credit.
    pub fn cannot_be_replayed(&mut self) {
        self.replayable = false;
    }

    /// Says before the first attempt that less may be repeated.
    pub fn narrow(&mut self, repeat: Repeat) {
        self.repeat = repeat;
    }

    /// Starts the call.
    pub fn begin<C: Credit + ?Sized>(&mut self, context: &Context<'_, C>, now: Instant) -> Step {
        assert!(self.phase == Phase::New, "a session begins once");
        match Opening::of(context, self.can_retry(context.policy), self.deadline, now) {
            Ok(opening) => Step::Launch(self.opened(opening)),
            Err(reason) => self.stop(reason),
        }
    }

    /// Attempt `id` succeeded; the call is over. `now` is given where the driver has read its clock anyway.
    #[inline]
    pub fn succeeded<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        id: AttemptId,
        used: Used,
        now: Option<Instant>,
    ) {
        if !self.bring_forward(id) {
            return;
        }
        self.ledger.settle(used, context.credit);
        if let Some(permit) = self.troubles.as_mut().and_then(|troubles| troubles.permit.take()) {
            permit.succeed();
        }
        if let (Some(latencies), Some(now)) = (context.latencies, now) {
            latencies.record(now.since(self.started), now);
        }
        // Those that lose stand here one after another; what is told of the winner is taken down before.
        let (admission, started) = (self.admission, self.started);
        self.drop_others(context, now, false);
        self.phase = Phase::Over;
        self.ledger.refund(context.credit);
        let took = now.map_or(Duration::ZERO, |now| now.since(started));
        opening::tell_success(context, self.counted(), admission, took, now.unwrap_or(started), now);
        self.release();
        self.leave();
    }

    /// Attempt `id` failed.
    #[cold]
    pub fn failed<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        id: AttemptId,
        failure: Failure,
        now: Instant,
    ) -> Step {
        if !self.bring_forward(id) {
            return self.standing();
        }
        self.record(context, &failure, failure.health, now);
        if self.goes_on_with_others(context, &failure) {
            return self.standing();
        }
        self.drop_others(context, Some(now), false);
        let failure = self.of_all(failure);
        match self.decide(context, &failure, now) {
            Ok(decide::Go::AtOnce) => {
                self.freed = true;
                // It was never seen by anybody: where the breaker has no leave to give, it goes without.
                self.admission = admit_retry(context, now).unwrap_or_default();
                self.launch(context, now)
            }
            Ok(decide::Go::At { until, origin, seat, permit }) => {
                self.origin = origin;
                let troubles = self.troubles();
                (troubles.seat, troubles.permit) = (seat, permit);
                self.alarm = until;
                self.phase = Phase::Waiting;
                Step::Wait { until }
            }
            Err(reason) => {
                // A 404 is good work of the target, if not what the caller hoped for.
                if let (Health::Good, Some(budget)) = (failure.health, context.budget) {
                    budget.on_good_failure(self.counted(), now);
                }
                self.stop(reason)
            }
        }
    }

    /// The time of attempt `id` came before its answer, and the driver has ended it. Whether it was the attempt's own
    /// time or the whole call's is the session's to say; `failure` tells what is known of the attempt
    /// ([`Failure::timed_out`] for most).
    #[cold]
    pub fn expired<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        id: AttemptId,
        failure: Failure,
        now: Instant,
    ) -> Step {
        if !self.bring_forward(id) || now < self.alarm {
            return self.standing();
        }
        if now < self.deadline {
            return self.failed(context, id, failure, now);
        }
        let health = self.health_of_the_cut_off(context, now);
        self.record(context, &failure, health, now);
        self.drop_others(context, Some(now), true);
        self.stop(StopReason::DeadlineExceeded)
    }

    /// The time that [`Step::Wait`] named has come. Breaker and deadline are asked once more; a refusal gives the token
    /// back. Called early, it answers the same wait again.
    #[cold]
    pub fn due<C: Credit + ?Sized>(&mut self, context: &Context<'_, C>, now: Instant) -> Step {
        if self.phase != Phase::Waiting || now < self.alarm {
            return self.standing();
        }
        let refusal = if now >= self.deadline {
            Some(StopReason::DeadlineExceeded)
        } else if now + context.policy.min_attempt_time() >= self.last_start() {
            Some(StopReason::DeadlineTooClose)
        } else {
            None
        };
        if let Some(reason) = refusal {
            return self.refused(context, reason);
        }
        match self.held_back(context, now) {
            Ok(None) => {}
            Ok(Some(until)) => {
                self.origin = WaitOrigin::Server;
                self.alarm = until;
                return Step::Wait { until };
            }
            Err(reason) => return self.refused(context, reason),
        }
        let Some(admission) = admit_retry(context, now) else {
            return self.refused(context, StopReason::BreakerOpen);
        };
        self.admission = admission;
        self.troubles().seat = None;
        if let Some(permit) = &mut self.troubles().permit {
            permit.spend();
        }
        self.launch(context, now)
    }

    /// The caller gave the call up: tokens, seats and lent credit go back, and nobody is blamed unless the attempt had
    /// already taken more than half its time. `used` is what is known of the attempt in flight. Answers
    /// [`StopReason::Cancelled`], or how the call had ended before.
    #[cold]
    pub fn abandon<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        used: Used,
        now: Option<Instant>,
    ) -> Stop {
        match self.phase {
            Phase::Over => return self.ended(),
            Phase::New => {}
            Phase::Waiting => self.ledger.unretry(context.credit),
            Phase::Running => {
                self.ledger.settle(used, context.credit);
                self.tell_breaker_of_the_cut_off(context, now, true);
                self.drop_others(context, now, true);
                self.ambiguous = true;
            }
        }
        self.release();
        self.stop(StopReason::Cancelled);
        self.ended()
    }

    /// The call has to end sooner than it was known to: the program shuts down, say. Without effect on an attempt in
    /// flight; a wait that would end too late ends now, with the last real outcome, and no new one is begun.
    #[cold]
    pub fn shorten<C: Credit + ?Sized>(&mut self, context: &Context<'_, C>, deadline: Instant) -> Step {
        self.deadline = self.deadline.min(deadline);
        if self.phase == Phase::Waiting && self.alarm + context.policy.min_attempt_time() >= self.deadline {
            return self.refused(context, StopReason::DeadlineTooClose);
        }
        self.standing()
    }

    /// Extra attempts made at and below this call so far: what it answers as `used`, clamped to what it was told.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.ledger.used()
    }

    /// The attempt in flight.
    #[must_use]
    pub fn running(&self) -> Option<AttemptId> {
        (self.phase == Phase::Running).then(|| self.fore())
    }

    /// When the time of the attempt in flight is up, or was of the last one.
    #[must_use]
    pub fn ends(&self) -> Instant {
        self.alarm
    }

    /// The attempt credit that the attempt in flight was told of; 0 if nothing was said.
    #[must_use]
    pub fn told(&self) -> u32 {
        self.ledger.told()
    }

    /// Whose word the present wait follows; `None` if the call is not waiting.
    #[must_use]
    pub fn wait_origin(&self) -> Option<WaitOrigin> {
        (self.phase == Phase::Waiting).then_some(self.origin)
    }

    /// Whether the call has ended.
    #[must_use]
    #[inline]
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The nearest of all deadlines of the call.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// When the attempt in flight started, or the last one did.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Attempts launched so far.
    #[must_use]
    #[inline]
    pub fn launched(&self) -> u32 {
        self.launched
    }

    /// Whether any attempt so far may have been executed without an answer.
    #[must_use]
    pub fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// Whether this layer can retry this call itself, which decides what the layers below are told.
    fn can_retry(&self, policy: &Policy) -> bool {
        self.replayable && opening::can_retry(policy, self.repeat)
    }

    fn troubles(&mut self) -> &mut Troubles {
        self.troubles.get_or_insert_default()
    }

    fn seldom(&mut self) -> &mut Seldom {
        self.troubles().seldom.get_or_insert_default()
    }

    /// The call is no more in flight.
    fn leave(&mut self) {
        if let Some(seldom) = self.troubles.as_mut().and_then(|troubles| troubles.seldom.as_mut()) {
            seldom.presence = None;
        }
    }

    /// Attempts launched, free repeats aside: what `attempts` bounds.
    fn counted(&self) -> u32 {
        self.launched - u32::from(self.freed)
    }

    /// The first attempt runs.
    fn opened(&mut self, opening: Opening) -> Launch {
        self.launched = 1;
        self.alarm = opening.ends();
        self.ledger.remember(opening.told());
        self.admission = opening.admission();
        self.phase = Phase::Running;
        let launch = opening.launch();
        if let Some(presence) = opening.into_presence() {
            self.seldom().presence = Some(presence);
        }
        launch
    }

    fn launch<C: Credit + ?Sized>(&mut self, context: &Context<'_, C>, now: Instant) -> Step {
        self.launched += 1;
        self.started = now;
        self.alarm = opening::ends(context.policy, self.deadline, now);
        self.phase = Phase::Running;
        self.newest_in_fore();
        let can_retry = self.can_retry(context.policy);
        let hedges = self.hedges_left(context);
        let left = self.ledger.tell(context.policy, can_retry, hedges, context.credit);
        let past = self.troubles().past.ambiguous(self.ambiguous);
        let previous = self.counted() - 1;
        Step::Launch(Launch { past, previous, ..Launch::new(self.launched, now, self.alarm, left) })
    }

    /// Step 0: budget, breaker, credit and the call's own memory hear what became of the attempt.
    fn record<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        failure: &Failure,
        health: Health,
        now: Instant,
    ) {
        self.ledger.settle(failure.used, context.credit);
        self.ambiguous |= failure.ambiguous;
        self.replayable &= failure.replayable;
        self.release();
        self.troubles().past = Past::of(failure);
        // What is repeated for free was never seen by anybody (gRFC A6: a transparent retry does not count).
        let transparent = failure.free && !self.freed;
        if let Some(budget) = context.budget
            && !transparent
        {
            budget.on_failure(decide::verdict_by(failure, context), health, now);
        }
        if let Some(breaker) = context.breaker {
            breaker.record(self.admission, health, now.since(self.started), now);
        }
        self.hold(context, failure, now);
        if let Some(time) = context.policy.give_up_after() {
            // An attempt that lasted so long had worked: this is a first failure again.
            let lasted = now.since(self.started) >= time;
            let give_up = &mut self.seldom().give_up;
            *give_up = give_up.filter(|_| !lasted).or(Some(now + time));
        }
    }

    /// The nearer of the deadline and the point from which on nothing is started any more.
    fn last_start(&self) -> Instant {
        let give_up = self.troubles.as_ref().and_then(|troubles| troubles.seldom.as_ref()?.give_up);
        give_up.map_or(self.deadline, |give_up| give_up.min(self.deadline))
    }

    /// A server that says how long it is busy is left alone by all retries, not only by this call's.
    fn hold<C: ?Sized>(&self, context: &Context<'_, C>, failure: &Failure, now: Instant) {
        let (Some(hold), Some(hint)) = (context.hold, failure.hint) else { return };
        let speaks_for_all = match failure.verdict {
            Verdict::Throttled { .. } => context.policy.hold() == Hold::Target,
            _ => failure.cause == Cause::Status(503),
        };
        if speaks_for_all && !hint.exact && hint.wait <= context.policy.max_hint() {
            hold.hold(now + hint.wait);
        }
    }

    /// Gives back, or ends, whatever the call holds.
    fn release(&mut self) {
        if let Some(troubles) = &mut self.troubles {
            (troubles.seat, troubles.permit) = (None, None);
        }
    }

    /// A retry that was decided is not made after all.
    fn refused<C: Credit + ?Sized>(&mut self, context: &Context<'_, C>, reason: StopReason) -> Step {
        self.release();
        self.ledger.unretry(context.credit);
        self.stop(reason)
    }

    /// An attempt that its caller's deadline or cancellation cut off says nothing about the target, unless it had taken
    /// more than half its own time, or longer than what the breaker calls slow: so a tiny deadline blames nobody, and a
    /// black hole stays visible.
    fn health_of_the_cut_off<C: ?Sized>(&self, context: &Context<'_, C>, now: Instant) -> Health {
        let took = now.since(self.started);
        match context.policy.attempt_timeout().or(context.policy.deadline()) {
            Some(own) if took >= own / 2 => Health::Bad,
            _ if context.breaker.is_some_and(|breaker| breaker.is_slow(took)) => Health::Good,
            _ => Health::Unknown,
        }
    }

    /// The attempt in flight was cut off. `blame`: by the call's own end, so that it may say something of its target;
    /// otherwise another attempt was faster. Its leave goes back either way.
    fn tell_breaker_of_the_cut_off<C: ?Sized>(
        &self,
        context: &Context<'_, C>,
        now: Option<Instant>,
        blame: bool,
    ) {
        let Some(breaker) = context.breaker else { return };
        let at = now.unwrap_or(self.started);
        let health = match (blame, now) {
            (true, Some(now)) => self.health_of_the_cut_off(context, now),
            _ => Health::Unknown,
        };
        breaker.record(self.admission, health, at.since(self.started), at);
    }

    fn stop(&mut self, reason: StopReason) -> Step {
        self.phase = Phase::Over;
        self.leave();
        self.reason = reason;
        Step::Stop(self.ended())
    }

    /// How a call that is over has ended.
    fn ended(&self) -> Stop {
        let hint = self.troubles.as_ref().and_then(|troubles| troubles.past.hint());
        // A call that succeeded in the end was not stopped by what the server had asked for before.
        let hint = hint.filter(|_| self.reason != StopReason::Succeeded).map(|hint| hint.wait);
        let reason = self.reason;
        Stop { reason, attempts: self.launched, ambiguous: self.ambiguous, hint }
    }

    /// The answer to an input that no longer matters.
    fn standing(&self) -> Step {
        match self.phase {
            Phase::New => Step::Wait { until: self.started },
            Phase::Running => Step::Wait { until: self.earliest_end() },
            Phase::Waiting => Step::Wait { until: self.alarm },
            Phase::Over => Step::Stop(self.ended()),
        }
    }
}

/// The breaker's leave for a retry that starts now.
fn admit_retry<C: ?Sized>(context: &Context<'_, C>, now: Instant) -> Option<Admission> {
    match context.breaker {
        Some(breaker) => breaker.admit_retry(now),
        None => Some(Admission::ANY),
    }
}
