//! The engine alone, driven by hand: the shortest driver there is, and the measure of the others.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use relent_core::{
    Context, Credit, Failure, FreeRepeats, Instant, Latencies, Launch, Lock, Locks, NoCredit, Rng, Session,
    Step, TargetHold, Used, WaitingRoom,
};

use crate::{ScriptedCall, ScriptedOutcome, Stage, Timeline, Trace};

/// Plays `timeline` on the engine, without any driver.
#[must_use]
pub fn run(timeline: &Timeline) -> Trace {
    let policy = &timeline.policy;
    let start = Instant::ZERO;
    let budget = policy.budget().map(|config| config.build::<Mutexes>(policy.attempts(), start));
    let breaker = policy.breaker().map(|config| config.build::<Mutexes>(timeline.seed, start, |_| {}));
    let rng = RefCell::new(Rng::seeded(timeline.seed));
    let hold = TargetHold::new();
    let latencies = policy.hedge().map(|_| Latencies::new(start));
    let granted = timeline.above.left.map(Cell::new);
    let context = Context {
        policy,
        budget: budget.as_ref(),
        breaker: breaker.as_deref(),
        waiting: &Arc::new(WaitingRoom::new()),
        free_repeats: &FreeRepeats::default(),
        credit: granted.as_ref().map_or(&NoCredit as &dyn Credit, |left| left),
        hold: Some(&hold),
        latencies: latencies.as_ref(),
        random: &|| rng.borrow_mut().next(),
    };
    let stage = Stage::new(timeline, start);
    let mut now = start;
    for call in &timeline.calls {
        now = now.max(start + call.at.unwrap_or_default());
        play(timeline, call, &context, &stage, &mut now);
    }
    stage.trace()
}

fn play(
    timeline: &Timeline,
    call: &ScriptedCall,
    context: &Context<'_, dyn Credit + '_>,
    stage: &Stage,
    now: &mut Instant,
) {
    stage.begin(call, *now);
    let deadline = timeline.above.deadline.map_or(Instant::NEVER, |length| Instant::ZERO + length);
    let mut session = Session::new(&timeline.policy, timeline.repeat, deadline, *now);
    let mut step = session.begin(context, *now);
    loop {
        step = match step {
            Step::Launch(launch) => match attempt(launch, &mut session, context, stage, now) {
                Some(step) => step,
                None => return stage.succeed(*now),
            },
            Step::Wait { until } => {
                let origin = session.wait_origin().expect("a session that says wait is waiting");
                stage.wait(*now, until, origin);
                *now = until;
                session.due(context, *now)
            }
            Step::Stop(stop) => return stage.stop(*now, &stop),
        };
    }
}

/// One attempt, to its end or to the end of its time, whichever is first; at equal times the answer counts. `None`: it
/// succeeded.
fn attempt(
    launch: Launch,
    session: &mut Session,
    context: &Context<'_, dyn Credit + '_>,
    stage: &Stage,
    now: &mut Instant,
) -> Option<Step> {
    let scripted = stage.launch(launch.number, *now);
    let reported = |used| if launch.left.is_some() { Used::Reported(used) } else { Used::Unsaid };
    let ends = *now + scripted.takes;
    if ends > launch.ends {
        *now = launch.ends;
        return Some(session.expired(context, launch.id, Failure::timed_out().used(reported(0)), *now));
    }
    *now = ends;
    match scripted.outcome {
        ScriptedOutcome::Succeeds => {
            let asked = context.breaker.is_some_and(|breaker| breaker.hears_times());
            let told = (asked || context.latencies.is_some()).then_some(*now);
            session.succeeded(context, launch.id, reported(0), told);
            None
        }
        ScriptedOutcome::Fails { failure, used } => {
            Some(session.failed(context, launch.id, failure.used(reported(used)), *now))
        }
    }
}

/// The locks that the engine is lent.
struct Mutexes;

impl Locks for Mutexes {
    type Of<T: fmt::Debug + Send + 'static> = Guarded<T>;
}

/// The lock that the engine is lent.
#[derive(Debug)]
struct Guarded<S>(Mutex<S>);

impl<S: Send> Lock<S> for Guarded<S> {
    fn new(value: S) -> Self {
        Guarded(Mutex::new(value))
    }

    fn with<R>(&self, work: impl FnOnce(&mut S) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn try_with<R>(&self, work: impl FnOnce(&mut S) -> R) -> Option<R> {
        self.0.try_lock().ok().map(|mut state| work(&mut state))
    }
}
