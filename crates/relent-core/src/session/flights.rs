//! Several attempts of one call at once: the newest stands in the session itself, the others are laid aside here.

use alloc::vec::Vec;

use super::decide::{Granted, is_retryable};
use super::ledger::Told;
use super::{AttemptId, Context, Launch, Phase, Session, StopReason, opening};
use crate::budget::Permit;
use crate::{Admission, Credit, Failure, HedgeDelay, Hint, Instant, StopScope, Used};

/// An attempt that runs while another one stands in the session.
#[derive(Debug)]
struct Flight {
    id: u32,
    started: Instant,
    ends: Instant,
    told: Told,
    admission: Admission,
    /// Spent, and held to the attempt's end.
    permit: Option<Permit>,
}

/// What a hedged call remembers beside its session.
#[derive(Debug, Default)]
pub(super) struct Flights {
    aside: Vec<Flight>,
    /// The attempt that stands in the session, if it is not the newest.
    fore: Option<AttemptId>,
    /// The attempt that is no hedge, once there are some.
    base: Option<AttemptId>,
    /// Hedges made.
    made: u32,
    /// When the last one was.
    last: Instant,
    /// No more of them: refused, or an attempt failed in a way that asks for a pause.
    over: bool,
    /// What the peers said in the attempts that failed while others went on.
    stopped: bool,
    hint: Option<Hint>,
}

/// What [`Session::hedge`] answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a hedge that was granted has to be launched"]
pub enum Hedge {
    /// Start this attempt beside those in flight.
    Launch(Launch),
    /// It is not yet time for one, or there is none to come.
    NotYet,
    /// Somebody refused it, for this reason; the attempts in flight go on, and no other hedge is asked for.
    Refused(StopReason),
}

impl Session {
    /// When the driver has to look again: when the time of an attempt in flight is up, or when a hedge is due; while the
    /// call waits, when the wait ends.
    #[must_use]
    pub fn alarm<C: ?Sized>(&self, context: &Context<'_, C>, now: Instant) -> Instant {
        let Some(hedge_at) = self.hedge_at(context, now) else { return self.earliest_end() };
        self.earliest_end().min(hedge_at)
    }

    /// An attempt in flight whose time is up: to be ended, and told to [`expired`](Session::expired).
    #[must_use]
    pub fn overdue(&self, now: Instant) -> Option<AttemptId> {
        if self.phase != Phase::Running {
            return None;
        }
        if now >= self.alarm {
            return Some(self.fore());
        }
        let overdue = self.aside().iter().find(|flight| now >= flight.ends)?;
        Some(AttemptId::numbered(overdue.id))
    }

    /// The time of [`alarm`](Session::alarm) has come, and nobody is [`overdue`](Session::overdue): may another attempt
    /// start beside those in flight? Everybody who has to allow a retry is asked, but for the backoff. `replayable`: whether
    /// the operation's input is here as a whole, so that it could be sent beside those.
    #[cold]
    pub fn hedge<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        replayable: bool,
        now: Instant,
    ) -> Hedge {
        if self.hedge_at(context, now).is_none_or(|at| now < at) {
            return Hedge::NotYet;
        }
        match self.decide_hedge(context, replayable, now) {
            Ok(Granted { permit, admission }) => {
                self.lay_aside();
                self.admission = admission;
                let base = self.unhedged();
                let hedging = self.flights();
                hedging.base = Some(base);
                hedging.made += 1;
                hedging.last = now;
                Hedge::Launch(self.launch_hedge(context, permit, now))
            }
            Err(reason) => {
                self.flights().over = true;
                Hedge::Refused(reason)
            }
        }
    }

    /// The attempt of those in flight that is no hedge, or was; without hedges the newest one.
    #[must_use]
    #[inline]
    pub fn unhedged(&self) -> AttemptId {
        let base = self.known_flights().and_then(|flights| flights.base);
        base.unwrap_or(AttemptId::numbered(self.launched))
    }

    /// How many attempts are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        if self.phase == Phase::Running { 1 + self.aside().len() } else { 0 }
    }

    /// Makes attempt `id` the one that stands in the session; `false` if it is not in flight.
    #[inline]
    pub(super) fn bring_forward(&mut self, id: AttemptId) -> bool {
        if self.phase != Phase::Running {
            return false;
        }
        id == self.fore() || self.exchange(id)
    }

    #[cold]
    fn exchange(&mut self, id: AttemptId) -> bool {
        let Some(place) = self.aside().iter().position(|flight| flight.id == id.get()) else { return false };
        let wanted = self.flights().aside.swap_remove(place);
        self.lay_aside();
        self.take_up(wanted);
        true
    }

    /// An attempt failed. Whether the call goes on with others that are still in flight: it does unless the failure is
    /// one that no further attempt would mend.
    pub(super) fn goes_on_with_others<C: ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        failure: &Failure,
    ) -> bool {
        if self.aside().is_empty() || !is_retryable(failure, context) {
            return false;
        }
        let flights = self.flights();
        flights.stopped |= failure.stop.is_some();
        flights.hint = longer(flights.hint, failure.hint);
        flights.over |= flights.stopped || flights.hint.is_some();
        match flights.aside.pop() {
            Some(next) => self.take_up(next),
            None => return false,
        }
        true
    }

    /// The last attempt in flight failed: what is decided by is what all of them were told.
    pub(super) fn of_all(&mut self, mut failure: Failure) -> Failure {
        let Some(flights) = self.known_flights_mut() else {
            return failure;
        };
        if flights.stopped && failure.stop.is_none() {
            failure.stop = Some(StopScope::Service);
        }
        failure.hint = longer(flights.hint.take(), failure.hint);
        flights.over = false;
        failure
    }

    /// The call is over: attempts still in flight are dropped by the driver. `blame` says whether they may count against
    /// their target; after a success they never do.
    pub(super) fn drop_others<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        now: Option<Instant>,
        blame: bool,
    ) {
        while let Some(flight) = self.pop_aside() {
            self.take_up(flight);
            self.ledger.settle(Used::Missing, context.credit);
            if let (Some(latencies), Some(now), false) = (context.latencies, now, blame) {
                latencies.record(now.since(self.started), now);
            }
            self.tell_breaker_of_the_cut_off(context, now, blame);
            self.drop_permit();
        }
    }

    /// The attempt that stands in the session.
    #[inline]
    pub(super) fn fore(&self) -> AttemptId {
        let fore = self.known_flights().and_then(|flights| flights.fore);
        fore.unwrap_or(AttemptId::numbered(self.launched))
    }

    /// Hedges that this call may still make.
    pub(super) fn hedges_left<C: ?Sized>(&self, context: &Context<'_, C>) -> u32 {
        let made = self.known_flights().map_or(0, |f| f.made);
        opening::hedges(context.policy, self.repeat).saturating_sub(made)
    }

    /// When the next hedge is due; `None` if there is none to come.
    fn hedge_at<C: ?Sized>(&self, context: &Context<'_, C>, now: Instant) -> Option<Instant> {
        let config = context.policy.hedge()?;
        let flights = self.known_flights();
        let over = flights.is_some_and(|flights| flights.over);
        if self.phase != Phase::Running || over || self.hedges_left(context) == 0 {
            return None;
        }
        let delay = match config.delay {
            HedgeDelay::After(delay) => delay,
            HedgeDelay::Quantile { quantile, least } => {
                context.latencies?.quantile(quantile, now)?.max(least)
            }
        };
        let latest = flights.map_or(self.started, |flights| flights.last.max(self.started));
        Some(latest + delay)
    }

    fn launch_hedge<C: Credit + ?Sized>(
        &mut self,
        context: &Context<'_, C>,
        permit: Option<Permit>,
        now: Instant,
    ) -> Launch {
        self.ledger.retry(context.credit);
        self.launched += 1;
        self.started = now;
        self.alarm = opening::ends(context.policy, self.deadline, now);
        self.troubles().permit = permit;
        let left = self.ledger.tell_hedge(context.policy.nested());
        let past = self.troubles().past.ambiguous(self.ambiguous);
        let previous = self.counted() - 1;
        Launch { past, previous, ..Launch::new(self.launched, now, self.alarm, left) }
    }

    /// Puts the attempt that stands in the session aside.
    fn lay_aside(&mut self) {
        let (id, told) = (self.fore().get(), self.ledger.lay_aside());
        let permit = self.troubles().permit.take();
        let flight =
            Flight { id, started: self.started, ends: self.alarm, told, admission: self.admission, permit };
        let flights = self.flights();
        flights.aside.push(flight);
        flights.fore = None;
    }

    fn take_up(&mut self, flight: Flight) {
        self.started = flight.started;
        self.alarm = flight.ends;
        self.ledger.remember(flight.told);
        self.admission = flight.admission;
        self.troubles().permit = flight.permit;
        self.flights().fore = Some(AttemptId::numbered(flight.id));
    }

    fn pop_aside(&mut self) -> Option<Flight> {
        self.known_flights_mut()?.aside.pop()
    }

    fn drop_permit(&mut self) {
        self.troubles().permit = None;
    }

    fn aside(&self) -> &[Flight] {
        let flights = self.known_flights();
        flights.map_or(&[], |flights| &flights.aside)
    }

    fn known_flights(&self) -> Option<&Flights> {
        Some(&self.troubles.as_ref()?.seldom.as_ref()?.flights)
    }

    fn known_flights_mut(&mut self) -> Option<&mut Flights> {
        Some(&mut self.troubles.as_mut()?.seldom.as_mut()?.flights)
    }

    fn flights(&mut self) -> &mut Flights {
        &mut self.seldom().flights
    }

    pub(super) fn earliest_end(&self) -> Instant {
        self.aside().iter().map(|flight| flight.ends).fold(self.alarm, Instant::min)
    }

    /// A retry is launched: no other attempt is in flight.
    pub(super) fn newest_in_fore(&mut self) {
        if let Some(flights) = self.known_flights_mut() {
            (flights.fore, flights.base) = (None, None);
        }
    }
}

/// The longer of two waits that were asked for.
fn longer(one: Option<Hint>, other: Option<Hint>) -> Option<Hint> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.wait >= one.wait { other } else { one }),
        (one, other) => one.or(other),
    }
}
