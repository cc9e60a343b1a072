//! One call in the hands of a driver: the session, its context, its surroundings. All drivers do exactly this; what
//! differs is how they run an attempt and how they wait.

use std::time::Duration;

use relent_core::{AttemptId, Failure, Instant, Launch, Repeat, Session, Step, Stop, Used};

use crate::ambient::Surroundings;
use crate::event::Event;
use crate::retry::{Retry, Shared};
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
    session: Session,
    launch: Option<Launch>,
    /// What the attempt in flight grants to the calls inside it.
    inside: Surroundings,
    /// The first clock reading.
    began: Option<Instant>,
}

impl<H: Handle> Call<H> {
    #[inline]
    pub(crate) fn new(handle: H, repeat: Repeat) -> Call<H> {
        let shared = &*handle.retry().shared;
        let deadline = Surroundings::current().deadline;
        let timed = shared.policy.is_timed() || !deadline.is_never();
        let began = timed.then(|| shared.timer.now());
        let session = Session::new(&shared.policy, repeat, deadline, began.unwrap_or(Instant::ZERO));
        Call { handle, session, launch: None, inside: Surroundings::NONE, began }
    }

    #[inline]
    pub(crate) fn begin(&mut self) -> Step {
        let now = self.began.unwrap_or(Instant::ZERO);
        let step = self.session.begin(&self.handle.retry().shared.context(), now);
        self.take(step)
    }

    /// Says before the first attempt that less may be repeated.
    pub(crate) fn narrow(&mut self, repeat: Repeat) {
        self.session.narrow(repeat);
    }

    #[inline]
    pub(crate) fn handle(&self) -> &H {
        &self.handle
    }

    #[inline]
    pub(crate) fn shared(&self) -> &Shared<H::Timer> {
        &self.handle.retry().shared
    }

    #[cfg(feature = "http")]
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// The attempt in flight grants this to what runs inside it.
    #[inline]
    pub(crate) fn inside(&mut self) -> &mut Surroundings {
        &mut self.inside
    }

    /// When the attempt in flight has to end. Reads the clock where nothing has yet, so that `elapsed` counts from the
    /// first attempt that did not end at once.
    pub(crate) fn ends(&mut self) -> Option<Instant> {
        if self.began.is_none() {
            self.began = Some(self.shared().timer.now());
        }
        self.launch.map(|launch| launch.ends).filter(|ends| !ends.is_never())
    }

    #[inline]
    pub(crate) fn succeeded(&mut self) {
        let Some(id) = self.id() else { return };
        let used = self.used();
        // A clock that was not needed so far is not read for this.
        self.session.succeeded(&self.handle.retry().shared.context(), id, used, None);
        if self.session.launched() > 1 {
            self.shared().tell(&Event::Recovered { attempts: self.session.launched() });
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
        let now = self.shared().timer.now();
        let step = self.session.due(&self.handle.retry().shared.context(), now);
        let step = self.take(step);
        if let Step::Stop(stop) = step {
            self.shared().tell(&Event::Stopped(stop));
        }
        step
    }

    /// The caller gave up, with a word or by dropping the call.
    #[cold]
    pub(crate) fn abandon(&mut self) -> Stop {
        let shared = &*self.handle.retry().shared;
        let now = (self.began.is_some() && shared.policy.breaker().is_some()).then(|| shared.timer.now());
        let open = !self.session.is_over();
        let stop = self.session.abandon(&shared.context(), now);
        if open {
            shared.tell(&Event::Stopped(stop));
        }
        stop
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.map_or(Duration::ZERO, |began| self.shared().timer.now().since(began))
    }

    fn ended(&mut self, failure: Failure, input: Input) -> Step {
        let Some(id) = self.id() else { return Step::Stop(self.abandon()) };
        let failure = failure.used(self.used());
        let shared = &*self.handle.retry().shared;
        let now = shared.timer.now();
        self.began.get_or_insert(now);
        shared.tell(&Event::Failed { attempt: id.get(), failure });
        let step = input(&mut self.session, &shared.context(), id, failure, now);
        match step {
            Step::Stop(stop) => shared.tell(&Event::Stopped(stop)),
            Step::Wait { until } => {
                if let Some(origin) = self.session.wait_origin() {
                    let (attempts, wait) = (self.session.launched(), until.since(now));
                    shared.tell(&Event::Waiting { attempts, wait, origin });
                }
            }
            Step::Launch(_) => {}
        }
        self.take(step)
    }

    /// Remembers the attempt that a step launches.
    #[inline]
    fn take(&mut self, step: Step) -> Step {
        if let Step::Launch(launch) = step {
            let deadline = launch.ends_below().min(self.session.deadline());
            self.inside = Surroundings::new(launch.left, deadline);
            self.launch = Some(launch);
        }
        step
    }

    #[inline]
    fn id(&self) -> Option<AttemptId> {
        self.launch.map(|launch| launch.id)
    }

    /// How much of what it was told the attempt in flight has used.
    #[inline]
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
        if !self.session.is_over() {
            self.abandon();
        }
    }
}
