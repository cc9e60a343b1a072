//! One call in the hands of a driver: the session, its context, its surroundings. All drivers do exactly this; what
//! differs is how they run an attempt and how they wait.

use std::mem::ManuallyDrop;
use std::time::Duration;

use relent_core::{
    AttemptId, Failure, Instant, Launch, Opening, Repeat, Session, Step, Stop, StopReason, Used,
};

use crate::ambient::{Bound, Surroundings};
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
pub(crate) struct Call<H: Handle> {
    handle: H,
    repeat: Repeat,
    /// `None` until the first attempt has failed, or has to be waited for.
    /// `ManuallyDrop`, so that the end of a call that needs none of it is one comparison; [`Call::end_early`] drops it.
    live: Option<ManuallyDrop<Live>>,
}

/// A call that takes its time.
#[derive(Debug)]
struct Live {
    session: Session,
    /// The attempt in flight: its id, its end, and what it was told.
    launch: Option<Launch>,
    /// What it grants to the calls inside it.
    inside: Surroundings,
    /// The first clock reading.
    began: Option<Instant>,
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

impl<H: Handle> Call<H> {
    #[inline]
    pub(crate) fn new(handle: H, repeat: Repeat) -> Call<H> {
        Call { handle, repeat, live: None }
    }

    /// How the call opens, if it does so as all plain calls of the handle do: then nothing needs to be asked.
    #[inline]
    pub(crate) fn opens_plain(&self) -> Option<&Plain> {
        let plain = self.shared().plain.as_ref()?;
        (Surroundings::current().is_nothing() && self.repeat == Repeat::Yes).then_some(plain)
    }

    /// A plain first attempt does not end at once: from now on the clock is looked at.
    pub(crate) fn plain_goes_on(&mut self, inside: Surroundings) {
        let now = self.shared().timer.now();
        if let Some(plain) = &self.shared().plain {
            let opening = plain.opening.moved_to(now);
            let inside = inside.bounded(Bound::at(opening.launch().ends_below()));
            self.goes_on(&First { opening, inside, outside: Surroundings::NONE, began: Some(now) });
        }
    }

    /// Opens the call without a session yet: most calls succeed at once and never need one.
    pub(crate) fn open(&self) -> Result<First, Stop> {
        let shared = self.shared();
        let outside = Surroundings::current();
        let timed = shared.policy.is_timed() || !outside.bound().is_none();
        let began = timed.then(|| shared.timer.now());
        let now = began.unwrap_or(Instant::ZERO);
        let opening = Opening::begin(&shared.context(), self.repeat, outside.bound().deadline(now), now)
            .map_err(|reason| self.refused(reason))?;
        let inside = Surroundings::new(opening.left(), Bound::at(opening.launch().ends_below()));
        Ok(First { opening, inside, outside: Surroundings::current(), began })
    }

    /// The first attempt ended at once, and well.
    pub(crate) fn succeeded_at_once(&self, first: &First) {
        first.opening.succeeded(&self.shared().context());
    }

    /// The first attempt goes on, or has failed.
    pub(crate) fn goes_on(&mut self, first: &First) {
        let session = first.opening.into_session(&self.shared().policy, self.repeat);
        let live = Live { session, launch: Some(first.launch()), inside: first.inside, began: first.began };
        self.live = Some(ManuallyDrop::new(live));
    }

    /// Opens the call for drivers that wait anyway.
    pub(crate) fn begin(&mut self) -> Step {
        match self.open() {
            Ok(first) => {
                let launch = first.launch();
                self.goes_on(&first);
                Step::Launch(launch)
            }
            Err(stop) => Step::Stop(stop),
        }
    }

    /// Says before the first attempt that less may be repeated.
    pub(crate) fn narrow(&mut self, repeat: Repeat) {
        self.repeat = repeat;
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

    /// When the attempt in flight has to end. Reads the clock where nothing has yet, so that `elapsed` counts from the
    /// first attempt that did not end at once.
    pub(crate) fn ends(&mut self) -> Option<Instant> {
        if self.live().began.is_none() {
            self.live().began = Some(self.shared().timer.now());
        }
        self.live().launch.map(|launch| launch.ends).filter(|ends| !ends.is_never())
    }

    pub(crate) fn succeeded(&mut self) {
        let Call { handle, live: Some(live), .. } = self else { return };
        let Some(launch) = live.launch else { return };
        let shared = &*handle.retry().shared;
        // A clock that was not needed so far is not read for this.
        let used = live.used();
        live.session.succeeded(&shared.context(), launch.id, used, None);
        if live.session.launched() > 1 {
            shared.tell(&Event::Recovered { attempts: live.session.launched() });
        }
    }

    #[cold]
    pub(crate) fn failed(&mut self, failure: Failure) -> Step {
        self.ended(failure, Session::failed)
    }

    /// The attempt's time came first.
    #[cold]
    pub(crate) fn expired(&mut self, failure: Failure) -> Step {
        self.ended(failure, Session::expired)
    }

    /// The wait is over.
    #[cold]
    pub(crate) fn due(&mut self) -> Step {
        let Call { handle, live, .. } = self;
        let live = live.as_mut().expect("only a call that is under way waits");
        let shared = &*handle.retry().shared;
        let step = live.session.due(&shared.context(), shared.timer.now());
        live.remember(&step);
        if let Step::Stop(stop) = step {
            shared.tell(&Event::Stopped(stop));
        }
        step
    }

    /// The caller gave up, with a word or by dropping the call.
    #[cold]
    pub(crate) fn abandon(&mut self) -> Stop {
        let Call { handle, live, .. } = self;
        let Some(live) = live else { return cancelled() };
        let shared = &*handle.retry().shared;
        let now = (live.began.is_some() && shared.policy.breaker().is_some()).then(|| shared.timer.now());
        let open = !live.session.is_over();
        let stop = live.session.abandon(&shared.context(), now);
        if open {
            shared.tell(&Event::Stopped(stop));
        }
        stop
    }

    pub(crate) fn elapsed(&self) -> Duration {
        let began = self.live.as_ref().and_then(|live| live.began);
        began.map_or(Duration::ZERO, |began| self.shared().timer.now().since(began))
    }

    fn ended(&mut self, failure: Failure, input: Input) -> Step {
        let Call { handle, live, .. } = self;
        let live = live.as_mut().expect("only a call that is under way has an attempt");
        let launch = live.launch.expect("an attempt was launched");
        let failure = failure.used(live.used());
        let shared = &*handle.retry().shared;
        let now = shared.timer.now();
        live.began.get_or_insert(now);
        shared.tell(&Event::Failed { attempt: launch.number, failure });
        let step = input(&mut live.session, &shared.context(), launch.id, failure, now);
        match step {
            Step::Stop(stop) => shared.tell(&Event::Stopped(stop)),
            Step::Wait { until } => {
                if let Some(origin) = live.session.wait_origin() {
                    let (attempts, wait) = (live.session.launched(), until.since(now));
                    shared.tell(&Event::Waiting { attempts, wait, origin });
                }
            }
            Step::Launch(_) => {}
        }
        live.remember(&step);
        step
    }

    #[cold]
    #[inline(never)]
    fn end_early(&mut self) {
        if !self.live().session.is_over() {
            self.abandon();
        }
        drop(self.live.take().map(ManuallyDrop::into_inner));
    }

    #[cold]
    fn refused(&self, reason: StopReason) -> Stop {
        let stop = Stop { reason, attempts: 0, ambiguous: false, hint: None };
        self.shared().tell(&Event::Stopped(stop));
        stop
    }

    fn live(&mut self) -> &mut Live {
        self.live.as_mut().expect("the call is under way")
    }
}

/// A call that was given up before anything was run.
fn cancelled() -> Stop {
    Stop { reason: StopReason::Cancelled, attempts: 0, ambiguous: false, hint: None }
}

impl Live {
    /// Remembers the attempt that a step launches.
    fn remember(&mut self, step: &Step) {
        if let Step::Launch(launch) = *step {
            self.inside = Surroundings::new(launch.left, Bound::at(launch.ends_below()));
            self.launch = Some(launch);
        }
    }

    /// How much of what it was told the attempt in flight has used.
    fn used(&self) -> Used {
        match (self.launch.and_then(|launch| launch.left), self.inside.left()) {
            (Some(told), Some(left)) => Used::Reported(told.saturating_sub(left)),
            _ => Used::Unsaid,
        }
    }
}

/// One of the session's two ways to hear of a failed attempt.
type Input = fn(
    &mut Session,
    &relent_core::Context<'_, crate::ambient::AmbientCredit>,
    AttemptId,
    Failure,
    Instant,
) -> Step;

impl<H: Handle> Drop for Call<H> {
    #[inline]
    fn drop(&mut self) {
        if self.live.is_some() {
            self.end_early();
        }
    }
}
