//! Where a driver plays a timeline: it hands out what each attempt comes to and writes down what the driver does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relent_core::{Failure, Instant, Stop, StopReason, Verdict, WaitOrigin};

use crate::{ScriptedAttempt, ScriptedCall, ScriptedOutcome, Timeline, Trace};

/// The running call's script and the log so far; clones share both.
///
/// A driver says [`begin`](Stage::begin) before each call, [`launch`](Stage::launch) in each attempt,
/// [`wait`](Stage::wait) for each wait, and [`succeed`](Stage::succeed) or [`stop`](Stage::stop) at the call's end.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    trace: Trace,
    calls: usize,
    several: bool,
    logged: bool,
    script: std::vec::IntoIter<ScriptedAttempt>,
    launched: u32,
}

impl Stage {
    /// The stage for `timeline`; its times count from `start`.
    #[must_use]
    pub fn new(timeline: &Timeline, start: Instant) -> Stage {
        Stage(Arc::new(Mutex::new(State {
            trace: Trace::new(start),
            calls: 0,
            several: timeline.calls.len() > 1,
            logged: true,
            script: Vec::new().into_iter(),
            launched: 0,
        })))
    }

    /// `call` begins.
    pub fn begin(&self, call: &ScriptedCall, now: Instant) {
        let mut state = self.state();
        state.script = call.attempts.clone().into_iter();
        state.launched = 0;
        state.calls += 1;
        state.logged = call.logged;
        let number = state.calls;
        if state.several {
            state.log(|trace| trace.call(now, number));
        }
    }

    /// Attempt `number` starts; answers what it comes to. One that the script doesn't know fails for good.
    #[must_use]
    pub fn launch(&self, number: u32, now: Instant) -> ScriptedAttempt {
        let mut state = self.state();
        state.launched = number;
        state.log(|trace| trace.launch(now, number));
        let unknown = Failure::new(Verdict::Permanent);
        state.script.next().unwrap_or(ScriptedAttempt {
            takes: Duration::ZERO,
            outcome: ScriptedOutcome::Fails { failure: unknown, used: 0 },
        })
    }

    /// The call waits.
    pub fn wait(&self, now: Instant, until: Instant, origin: WaitOrigin) {
        self.state().log(|trace| trace.wait(now, until, origin));
    }

    /// The call succeeded, with the attempt launched last.
    pub fn succeed(&self, now: Instant) {
        let attempts = self.state().launched;
        self.stop(now, &Stop { reason: StopReason::Succeeded, attempts, ambiguous: false, hint: None });
    }

    /// The call gave up.
    pub fn stop(&self, now: Instant, stop: &Stop) {
        self.state().log(|trace| trace.stop(now, stop));
    }

    /// What was written down.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.state().trace.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn log(&mut self, write: impl FnOnce(&mut Trace)) {
        if self.logged {
            write(&mut self.trace);
        }
    }
}
