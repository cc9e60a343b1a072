//! One call in the hands of a driver: the session, its context, its surroundings. All drivers do exactly this; what
//! differs is how they run an attempt and how they wait.

use std::mem::ManuallyDrop;
use std::time::Duration;

use relent_core::{
    Admission, AttemptId, Failure, Health, Hedge, Instant, Launch, Opening, Repeat, Session, Step, Stop,
    StopReason, Used,
};

use crate::ambient::{AmbientCredit, Bound, Surroundings};
use crate::event::Event;
use crate::retry::{Plain, Retry, Shared};
use crate::timer::Clock;

/// A handle, borrowed or owned, as a driver holds it.
pub trait Handle {
    /// Says what an error means.
    type Classifier;
    /// Where time comes from.
    type Timer: Clock;

    /// The handle itself.
    fn retry(&self) -> &Retry<Self::Classifier, Self::Timer>;
}

impl<C, T: Clock> Handle for Retry<C, T> {
    type Classifier = C;
    type Timer = T;

    #[inline]
    fn retry(&self) -> &Retry<C, T> {
        self
    }
}

impl<C, T: Clock> Handle for &Retry<C, T> {
    type Classifier = C;
    type Timer = T;

    #[inline]
    fn retry(&self) -> &Retry<C, T> {
        self
    }
}

/// One call. Dropped before its end, everything that it holds goes back.
#[derive(Debug)]
pub(crate) struct Call<H: Handle, K = ()> {
    handle: H,
    stage: Stage<K>,
}

/// How far a call has come.
#[derive(Debug)]
enum Stage<K> {
    /// The first attempt has not been polled, or may still end at once. What may be repeated is known.
    Opening(Repeat),
    /// The same with the breaker's leave.
    Admitted(Repeat, Admission),
    /// Everything else. `ManuallyDrop`, so that the end of a call that never came here is one comparison;
    /// [`Call::end_early`] drops it.
    Live(ManuallyDrop<Live<K>>),
}

impl<K> Stage<K> {
    #[inline]
    fn live(&self) -> Option<&Live<K>> {
        if let Stage::Live(live) = self { Some(live) } else { None }
    }
}

/// A call that takes its time.
#[derive(Debug)]
struct Live<K> {
    session: Session,
    /// What the attempt in flight grants to the calls inside it; of several, the one that is no hedge.
    inside: Surroundings,
    /// The first clock reading; `NEVER` before it.
    began: Instant,
    /// What the driver keeps of a call that takes its time.
    kept: K,
}

/// A call's first attempt, while it may still end at once.
#[derive(Debug)]
pub(crate) struct First {
    opening: Opening,
    /// What it grants to the calls inside it.
    pub(crate) inside: Surroundings,
    /// What was granted outside, when it began.
    pub(crate) outside: Surroundings,
    /// The first clock reading, if there was one.
    began: Option<Instant>,
}

impl First {
    #[inline]
    pub(crate) fn launch(&self) -> Launch {
        self.opening.launch()
    }
}

impl<H: Handle, K: Default> Call<H, K> {
    #[inline]
    pub(crate) fn new(handle: H, repeat: Repeat) -> Call<H, K> {
        Call { handle, stage: Stage::Opening(repeat) }
    }

    /// How the call opens, if it does so as all plain calls of the handle do: then nothing needs to be asked. Only for
    /// calls that may be repeated whatever happens.
    #[inline]
    pub(crate) fn opens_plain(&self) -> Option<&Plain> {
        let plain = self.shared().plain.as_ref()?;
        if Surroundings::current().is_nothing() { Some(plain) } else { None }
    }

    /// The same for a handle with a breaker, which has to be asked.
    pub(crate) fn opens_guarded(&self) -> Option<&Plain> {
        let guarded = self.shared().guarded.as_ref()?;
        if Surroundings::current().is_nothing() { Some(guarded) } else { None }
    }

    /// Asks the breaker, if there is one, for a plain first attempt: the one thing that is not the same for all of them.
    #[inline]
    pub(crate) fn plain_leave(&mut self) -> Result<Option<Leave>, Stop> {
        let shared = &*self.handle.retry().shared;
        let Some(breaker) = shared.handles.breaker() else { return Ok(None) };
        let leave = match breaker.admit_untimed() {
            Some(admission) => Leave { admission, asked_at: None },
            None => self.plain_leave_by_the_clock()?,
        };
        self.stage = Stage::Admitted(Repeat::Yes, leave.admission);
        Ok(Some(leave))
    }

    #[cold]
    #[inline(never)]
    fn plain_leave_by_the_clock(&self) -> Result<Leave, Stop> {
        let shared = self.shared();
        let now = shared.timer.now();
        let admission = shared.handles.breaker().and_then(|breaker| breaker.admit_first(now));
        let admission = admission.ok_or_else(|| self.refused(StopReason::BreakerOpen))?;
        Ok(Leave { admission, asked_at: Some(now) })
    }

    /// A plain call has succeeded at its first attempt.
    #[inline]
    pub(crate) fn plain_success(&self) {
        if let Some(budget) = self.shared().handles.budget() {
            budget.on_success(1, None);
        }
    }

    /// The same where a breaker gave leave.
    #[inline]
    pub(crate) fn admitted_success(&mut self, leave: Option<Leave>) {
        self.plain_success();
        let shared = &*self.handle.retry().shared;
        if let (Some(Leave { admission, asked_at }), Some(breaker)) = (leave, shared.handles.breaker()) {
            breaker.record(admission, Health::Good, Duration::ZERO, asked_at.unwrap_or(Instant::ZERO));
            self.stage = Stage::Opening(Repeat::Yes);
        }
    }

    /// A plain first attempt does not end at once: from now on the clock is looked at.
    pub(crate) fn plain_goes_on(&mut self, inside: Surroundings, leave: Option<Leave>) {
        let asked_at = leave.and_then(|leave| leave.asked_at);
        let now = asked_at.unwrap_or_else(|| self.shared().timer.now());
        if let Some(plain) = self.shared().plain.as_ref().or(self.shared().guarded.as_ref()) {
            let admission = leave.map_or(Admission::ANY, |leave| leave.admission);
            let opening = plain.opening.moved_to(now).admitted(admission);
            let inside = inside.bounded(Bound::at(opening.launch().ends_below()));
            self.goes_on(First { opening, inside, outside: Surroundings::NONE, began: Some(now) });
        }
    }

    /// Opens the call without a session yet: most calls succeed at once and never need one.
    pub(crate) fn open(&mut self) -> Result<First, Stop> {
        self.open_within(None)
    }

    /// The same for a caller who gives it so much time from now on.
    #[inline]
    fn open_within(&mut self, given: Option<Duration>) -> Result<First, Stop> {
        let shared = self.shared();
        let outside = Surroundings::current();
        let bound = outside.bound(shared.timer.is_system());
        // A breaker that is shared with others is not in the policy.
        let breaks = shared.handles.breaker().is_some();
        let timed = shared.policy.is_timed() || breaks || !bound.is_none() || given.is_some();
        let began = timed.then(|| shared.timer.now());
        let now = began.unwrap_or(Instant::ZERO);
        let deadline = bound.deadline(now).min(given.map_or(Instant::NEVER, |given| now + given));
        let opening = Opening::begin(&shared.context(), self.repeat(), deadline, now)
            .map_err(|reason| self.refused(reason))?;
        let inside = Surroundings::new(opening.left(), Bound::at(opening.launch().ends_below()));
        let inside = inside.on(shared.timer.is_system());
        if breaks {
            self.stage = Stage::Admitted(self.repeat(), opening.admission());
        }
        Ok(First { opening, inside, outside: Surroundings::current(), began })
    }

    /// The first attempt ended at once, and well.
    pub(crate) fn succeeded_at_once(&mut self, first: &First) {
        let shared = &*self.handle.retry().shared;
        let ended = shared.hears_times().then(|| shared.timer.now());
        first.opening.succeeded(&shared.context(), ended);
        self.stage = Stage::Opening(Repeat::No);
    }

    /// The first attempt goes on, or has failed.
    pub(crate) fn goes_on(&mut self, first: First) {
        let session = first.opening.into_session(&self.shared().policy, self.repeat());
        let live = Live {
            session,
            inside: first.inside,
            began: first.began.unwrap_or(Instant::NEVER),
            kept: K::default(),
        };
        self.stage = Stage::Live(ManuallyDrop::new(live));
    }

    /// Opens the call for drivers that wait anyway; `given` is the time that the caller gives it from now on.
    #[cfg(feature = "http")]
    pub(crate) fn begin(&mut self, given: Option<Duration>) -> Step {
        match self.open_within(given) {
            Ok(first) => {
                let launch = first.launch();
                self.goes_on(first);
                Step::Launch(launch)
            }
            Err(stop) => Step::Stop(stop),
        }
    }

    /// Says before the first attempt that less may be repeated.
    pub(crate) fn narrow(&mut self, repeat: Repeat) {
        if let Stage::Opening(rule) = &mut self.stage {
            *rule = repeat;
        }
    }

    #[inline]
    pub(crate) fn handle(&self) -> &H {
        &self.handle
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared<H::Timer> {
        &self.handle.retry().shared
    }

    /// The attempt in flight grants this to what runs inside it.
    pub(crate) fn inside(&mut self) -> &mut Surroundings {
        &mut self.live().inside
    }

    /// The caller gave up with a word.
    #[cold]
    pub(crate) fn cancel(&mut self) -> Stop {
        match self.stage {
            Stage::Live(_) => self.abandon(),
            Stage::Opening(_) | Stage::Admitted(..) => self.refused(StopReason::Cancelled),
        }
    }

    /// What the attempt in flight grants, and what the driver keeps of the call.
    pub(crate) fn inside_and_kept(&mut self) -> (&mut Surroundings, &mut K) {
        let live = self.live();
        (&mut live.inside, &mut live.kept)
    }

    /// When the attempt in flight has to end, or something else is to be done. Reads the clock where nothing has yet, so that `elapsed` counts from the
    /// first attempt that did not end at once.
    pub(crate) fn ends(&mut self) -> Option<Instant> {
        if self.live().began.is_never() {
            self.live().began = self.shared().timer.now();
        }
        let Call { handle, stage: Stage::Live(live) } = self else { return None };
        let shared = &*handle.retry().shared;
        let alarm = match shared.policy.hedge() {
            None => live.session.ends(),
            Some(_) => live.session.alarm(&shared.context(), shared.timer.now()),
        };
        Some(alarm).filter(|ends| !ends.is_never())
    }

    /// The attempt in flight succeeded; hedges beside it have been dropped.
    pub(crate) fn succeeded(&mut self) {
        let Stage::Live(live) = &self.stage else { return };
        let (id, used) = (live.session.unhedged(), live.used());
        self.succeeded_as(id, used);
    }

    /// So did a hedge.
    #[cold]
    pub(crate) fn hedge_succeeded(&mut self, id: AttemptId) {
        self.succeeded_as(id, Used::Reported(0));
    }

    #[inline]
    fn succeeded_as(&mut self, id: AttemptId, used: Used) {
        let Call { handle, stage: Stage::Live(live) } = self else { return };
        if live.session.is_over() {
            return;
        }
        let shared = &*handle.retry().shared;
        let context = shared.context();
        // The clock is not read for this, unless the time is measured; its last reading lets the budget turn its window.
        let known = match shared.hears_times() {
            true => Some(shared.timer.now()),
            false => (!live.began.is_never()).then(|| live.session.started().max(live.began)),
        };
        live.session.succeeded(&context, id, used, known);
        if live.session.launched() > 1 {
            shared.tell(&Event::Recovered { attempts: live.session.launched(), winner: id.get() });
        }
    }

    #[cold]
    pub(crate) fn failed(&mut self, failure: Failure) -> Step {
        let (id, failure) = self.known_of(failure);
        self.ended(id, failure, Session::failed)
    }

    /// The attempt's time came first.
    #[cold]
    pub(crate) fn expired(&mut self, failure: Failure) -> Step {
        let (id, failure) = self.known_of(failure);
        self.ended(id, failure, Session::expired)
    }

    /// A hedge failed that granted `inside`.
    #[cold]
    pub(crate) fn hedge_failed(&mut self, id: AttemptId, inside: &Surroundings, failure: Failure) -> Step {
        self.ended(id, doubt(inside, failure), Session::failed)
    }

    /// A hedge's time came first.
    #[cold]
    pub(crate) fn hedge_expired(&mut self, id: AttemptId, inside: &Surroundings, failure: Failure) -> Step {
        self.ended(id, doubt(inside, failure), Session::expired)
    }

    /// The time that [`ends`](Call::ends) named has come: what is to be done? Only for calls that may be hedged.
    #[cold]
    /// `replayable`: whether another attempt could be sent now.
    pub(crate) fn alarm_came(&mut self, replayable: bool) -> Alarm {
        let Call { handle, stage: Stage::Live(live) } = self else { return Alarm::Nothing };
        let shared = &*handle.retry().shared;
        let now = shared.timer.now();
        if let Some(id) = live.session.overdue(now) {
            return if id == live.session.unhedged() { Alarm::Expired } else { Alarm::HedgeExpired(id) };
        }
        match live.session.hedge(&shared.context(), replayable, now) {
            Hedge::Launch(launch) => {
                shared.tell(&Event::Hedged { attempt: launch.number });
                Alarm::Hedge(launch, granted(&launch, shared.timer.is_system()))
            }
            Hedge::Refused(reason) => {
                shared.tell(&Event::HedgeRefused { reason });
                Alarm::Nothing
            }
            Hedge::NotYet => Alarm::Nothing,
        }
    }

    /// The wait is over.
    #[cold]
    pub(crate) fn due(&mut self) -> Step {
        let Call { handle, stage: Stage::Live(live) } = self else {
            panic!("only a call that is under way waits")
        };
        let shared = &*handle.retry().shared;
        let step = live.session.due(&shared.context(), shared.timer.now());
        live.remember(&step, shared.timer.is_system());
        if let Step::Stop(stop) = step {
            stopped(shared, stop);
        }
        step
    }

    /// When the time is up of the attempt that the session has in hand.
    #[cfg(feature = "http")]
    pub(crate) fn attempt_ends(&mut self) -> Option<Instant> {
        Some(self.live().session.ends()).filter(|ends| !ends.is_never())
    }

    /// Whether an attempt is in flight.
    #[cfg(feature = "http")]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.stage.live().is_some_and(|live| live.session.running().is_some())
    }

    /// Whether several attempts may be in flight.
    #[inline]
    pub(crate) fn may_be_hedged(&self) -> bool {
        self.shared().policy.hedge().is_some()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let began = self.stage.live().map_or(Instant::NEVER, |live| live.began);
        if began.is_never() { Duration::ZERO } else { self.shared().timer.now().since(began) }
    }

    /// The attempt that is no hedge, and what the calls inside it add to its failure.
    fn known_of(&mut self, failure: Failure) -> (AttemptId, Failure) {
        let live = self.live();
        (live.session.unhedged(), doubt(&live.inside, failure).used(live.used()))
    }

    fn ended(&mut self, id: AttemptId, failure: Failure, input: Input) -> Step {
        let Call { handle, stage: Stage::Live(live) } = self else {
            panic!("only a call that is under way has an attempt")
        };
        let shared = &*handle.retry().shared;
        let now = shared.timer.now();
        live.began = live.began.min(now);
        shared.tell(&Event::Failed { attempt: id.get(), failure });
        let step = input(&mut live.session, &shared.context(), id, failure, now);
        match step {
            Step::Stop(stop) => stopped(shared, stop),
            Step::Wait { until } => {
                if let Some(origin) = live.session.wait_origin() {
                    let (attempts, wait) = (live.session.launched(), until.since(now));
                    shared.tell(&Event::Waiting { attempts, wait, origin });
                }
            }
            Step::Launch(_) => {}
        }
        live.remember(&step, shared.timer.is_system());
        step
    }

    #[cold]
    fn refused(&self, reason: StopReason) -> Stop {
        let stop = Stop { reason, attempts: 0, ambiguous: false, hint: None };
        stopped(self.shared(), stop);
        stop
    }

    fn live(&mut self) -> &mut Live<K> {
        match &mut self.stage {
            Stage::Live(live) => live,
            Stage::Opening(_) | Stage::Admitted(..) => panic!("the call is not under way yet"),
        }
    }

    fn repeat(&self) -> Repeat {
        match self.stage {
            Stage::Opening(repeat) | Stage::Admitted(repeat, _) => repeat,
            Stage::Live(_) => Repeat::No,
        }
    }
}

impl<H: Handle, K> Call<H, K> {
    /// Whether the call has a session.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        self.stage.live().is_some()
    }

    /// What the driver keeps of the call; `None` before it is under way.
    pub(crate) fn kept(&mut self) -> Option<&mut K> {
        if let Stage::Live(live) = &mut self.stage { Some(&mut live.kept) } else { None }
    }

    /// Runs `work` inside the attempt in flight, if there is one.
    #[inline]
    pub(crate) fn inside_it<R>(&mut self, work: impl FnOnce() -> R) -> R {
        match &mut self.stage {
            Stage::Live(live) => live.inside.enter(work),
            Stage::Opening(_) | Stage::Admitted(..) => work(),
        }
    }

    /// The caller gave up, with a word or by dropping the call. The attempt in flight, if any, has been dropped before, so
    /// that all who ran inside it have given back what they held.
    #[cold]
    pub(crate) fn abandon(&mut self) -> Stop {
        let Call { handle, stage: Stage::Live(live) } = self else { return cancelled() };
        let shared = &*handle.retry().shared;
        let told = !live.began.is_never() && shared.handles.breaker().is_some();
        let now = told.then(|| shared.timer.now());
        let open = !live.session.is_over();
        let spent = live.session.running().map_or(Used::Unsaid, |_| live.used());
        let stop = live.session.abandon(&shared.context(), spent, now);
        if open {
            stopped(shared, stop);
        }
        stop
    }

    #[cold]
    #[inline(never)]
    fn end_early(&mut self) {
        if let Stage::Admitted(_, admission) = self.stage {
            return self.give_leave_back(admission);
        }
        self.abandon();
        if let Stage::Live(live) = std::mem::replace(&mut self.stage, Stage::Opening(Repeat::No)) {
            drop(ManuallyDrop::into_inner(live));
        }
    }
}

/// A call has ended without success: listeners hear of it, and so does the attempt that it was made in.
fn stopped<T: Clock>(shared: &Shared<T>, stop: Stop) {
    if stop.ambiguous {
        Surroundings::mark_ambiguous();
    }
    shared.tell(&Event::Stopped(stop));
}

/// A call that was given up before anything was run.
fn cancelled() -> Stop {
    Stop { reason: StopReason::Cancelled, attempts: 0, ambiguous: false, hint: None }
}

impl<K> Live<K> {
    /// Remembers what the attempt that a step launches grants.
    fn remember(&mut self, step: &Step, system: bool) {
        if let Step::Launch(launch) = step {
            self.inside = granted(launch, system);
        }
    }

    /// How much of what it was told the attempt in flight has used.
    fn used(&self) -> Used {
        let told = self.session.told();
        Used::Reported(told.saturating_sub(self.inside.left().unwrap_or(told)))
    }
}

/// The breaker's leave for a plain first attempt, and when it was asked, if it wanted to know that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leave {
    admission: Admission,
    asked_at: Option<Instant>,
}

/// What the alarm of a call means that may be hedged.
pub(crate) enum Alarm {
    /// Nothing is to be done yet.
    Nothing,
    /// The time of the attempt is up.
    Expired,
    /// The time of a hedge is up.
    HedgeExpired(AttemptId),
    /// Another attempt is to start beside those in flight; what it grants.
    Hedge(Launch, Surroundings),
}

/// What an attempt grants to the calls inside it.
fn granted(launch: &Launch, system: bool) -> Surroundings {
    Surroundings::new(launch.left, Bound::at(launch.ends_below())).on(system)
}

/// Where a call inside an attempt may have been executed without an answer, so may the attempt.
fn doubt(inside: &Surroundings, failure: Failure) -> Failure {
    if inside.is_ambiguous() { failure.ambiguous() } else { failure }
}

/// One of the session's two ways to hear of a failed attempt.
type Input = fn(&mut Session, &relent_core::Context<'_, AmbientCredit>, AttemptId, Failure, Instant) -> Step;

impl<H: Handle, K> Call<H, K> {
    /// The first attempt came to nothing before the call was under way: it panicked, say.
    fn give_leave_back(&self, admission: Admission) {
        let shared = &*self.handle.retry().shared;
        if let Some(breaker) = shared.handles.breaker() {
            breaker.record(admission, Health::Unknown, Duration::ZERO, shared.timer.now());
        }
    }
}

impl<H: Handle, K> Drop for Call<H, K> {
    #[inline]
    fn drop(&mut self) {
        if !matches!(self.stage, Stage::Opening(_)) {
            self.end_early();
        }
    }
}
