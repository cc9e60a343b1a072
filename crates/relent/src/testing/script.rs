//! Outcomes in order: an operation or a service that does what a test says.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use relent_core::Instant;

use super::recorder::Recorder;
use super::seen::{Log, Seen};
use crate::attempt::Attempt;
use crate::timer::{BlockingTimer, Clock, Timer, poll_until};

/// Outcomes in the order in which attempts are made, and how long each takes: what stands in for the thing that is called.
///
/// It is an operation for [`Retry::run`](crate::Retry::run) ([`operation`](Script::operation)) and for
/// [`Retry::run_blocking`](crate::Retry::run_blocking) ([`blocking`](Script::blocking)), and, with the feature `tower`, a
/// tower service for any request. Clones play one script, and see what it saw ([`seen`](Script::seen)). An attempt beyond
/// the end of the script panics, unless [`then_always`](Script::then_always) says what follows.
///
/// ```
/// use std::time::Duration;
/// use relent::testing::Script;
/// use relent::{Policy, Retry, Verdict, timer::Manual};
///
/// let time = Manual::new();
/// let script = Script::on(&time).fails("busy").takes(Duration::from_millis(30)).succeeds(7);
/// let policy = Policy::constant(Duration::from_secs(60)).no_deadline().build()?;
/// let retry = Retry::with_timer(policy, time.clone()).classify(|_: &&str| Verdict::Transient);
///
/// assert_eq!(retry.run_blocking(script.blocking()).ok(), Some(7));
/// let seen = script.seen();
/// assert_eq!((seen[1].attempt, seen[1].at), (2, Duration::from_millis(60_030)));
/// assert_eq!(script.left(), 0);
/// # Ok::<(), relent::PolicyError>(())
/// ```
pub struct Script<V, E, T> {
    state: Arc<Mutex<State<V, E>>>,
    timer: T,
    start: Instant,
    recorder: Option<Recorder<T>>,
}

struct State<V, E> {
    outcomes: VecDeque<Line<V, E>>,
    written: usize,
    always: Option<Always<V, E>>,
    calls: u32,
    seen: Log<Seen>,
}

/// What comes of every attempt beyond the end.
type Always<V, E> = Box<dyn FnMut(u32) -> Result<V, E> + Send>;

/// One line of a script.
struct Line<V, E> {
    takes: Duration,
    /// `None`: it never ends.
    outcome: Option<Result<V, E>>,
}

impl<V, E, T: Clock> Script<V, E, T> {
    /// A script without a line; what takes time takes it on `timer`.
    #[must_use]
    pub fn on(timer: &T) -> Script<V, E, T> {
        let state = State { outcomes: VecDeque::new(), written: 0, always: None, calls: 0, seen: Log::new() };
        Script {
            state: Arc::new(Mutex::new(state)),
            start: timer.now(),
            timer: timer.clone(),
            recorder: None,
        }
    }

    /// The next attempt fails, at once unless [`takes`](Script::takes) follows.
    #[must_use]
    pub fn fails(self, error: E) -> Self {
        self.line(Some(Err(error)))
    }

    /// The next `count` attempts fail, each with an error of its own.
    #[must_use]
    pub fn fails_times(self, count: u32, mut error: impl FnMut() -> E) -> Self {
        (0..count).fold(self, |script, _| script.fails(error()))
    }

    /// The next attempt succeeds, at once unless [`takes`](Script::takes) follows.
    #[must_use]
    pub fn succeeds(self, value: V) -> Self {
        self.line(Some(Ok(value)))
    }

    /// The next attempt never ends by itself: only a timeout, or a dropped future, ends it.
    #[must_use]
    pub fn times_out(self) -> Self {
        self.line(None)
    }

    /// How long the outcome written last lets wait.
    ///
    /// # Panics
    /// If there is none before it.
    #[must_use]
    pub fn takes(self, time: Duration) -> Self {
        let mut state = self.state();
        state.outcomes.back_mut().expect("`takes` follows an outcome").takes = time;
        drop(state);
        self
    }

    /// What comes, at once, of every attempt beyond the lines above; it is told how many were made before.
    #[must_use]
    pub fn then_always(self, outcome: impl FnMut(u32) -> Result<V, E> + Send + 'static) -> Self {
        self.state().always = Some(Box::new(outcome));
        self
    }

    /// Writes the attempts to `recorder`, too.
    #[must_use]
    pub fn recorded_by(mut self, recorder: &Recorder<T>) -> Self {
        self.recorder = Some(recorder.clone());
        self
    }

    /// The attempts that were made, in order; the first hundred thousand.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.state().seen.all()
    }

    /// How many of the lines have not been played.
    #[must_use]
    pub fn left(&self) -> usize {
        self.state().outcomes.len()
    }

    /// The script for [`Retry::run`](crate::Retry::run).
    pub fn operation(&self) -> impl Fn(Attempt) -> Play<V, E, T> + Clone + use<V, E, T>
    where
        T: Timer,
    {
        let script = self.clone();
        move |attempt| script.play(Some(attempt))
    }

    /// The script for [`Retry::run_blocking`](crate::Retry::run_blocking).
    ///
    /// # Panics
    /// In an attempt that never ends: nothing could cut it off. Let it fail after as long as a socket's timeout would take.
    pub fn blocking(&self) -> impl Fn(Attempt) -> Result<V, E> + Clone + use<V, E, T>
    where
        T: BlockingTimer,
    {
        let script = self.clone();
        move |attempt| {
            let line = script.next(Some(attempt));
            let outcome = line.outcome.expect("a blocking attempt that never ends would never return");
            script.timer.block_until(script.timer.now() + line.takes);
            script.ended(attempt.number(), outcome.is_ok());
            outcome
        }
    }

    fn line(self, outcome: Option<Result<V, E>>) -> Self {
        let mut state = self.state();
        state.written += 1;
        state.outcomes.push_back(Line { takes: Duration::ZERO, outcome });
        drop(state);
        self
    }

    /// What the attempt comes to that begins now.
    fn next(&self, attempt: Option<Attempt>) -> Line<V, E> {
        let at = self.timer.now().since(self.start);
        let mut state = self.state();
        let before = state.calls;
        state.calls = before.saturating_add(1);
        let number = attempt.map_or(state.calls, |attempt| attempt.number());
        let time_left = attempt.and_then(|attempt| attempt.time_left());
        state.seen.add(Seen { attempt: number, at, time_left });
        if let Some(recorder) = &self.recorder {
            recorder.launched(number);
        }
        if let Some(line) = state.outcomes.pop_front() {
            return line;
        }
        let written = state.written;
        match &mut state.always {
            Some(always) => Line { takes: Duration::ZERO, outcome: Some(always(before)) },
            None => panic!(
                "the script has {written} outcomes, and one attempt more was made: add a line, or then_always"
            ),
        }
    }

    fn play(&self, attempt: Option<Attempt>) -> Play<V, E, T>
    where
        T: Timer,
    {
        let line = self.next(attempt);
        let number = attempt.map_or_else(|| self.state().calls, |attempt| attempt.number());
        Play {
            ends: self.timer.now() + line.takes,
            outcome: line.outcome,
            script: self.clone(),
            number,
            sleep: None,
        }
    }

    fn ended(&self, number: u32, well: bool) {
        if let Some(recorder) = &self.recorder
            && well
        {
            recorder.succeeded(number);
        }
    }

    fn state(&self) -> MutexGuard<'_, State<V, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V, E, T: Clone> Clone for Script<V, E, T> {
    fn clone(&self) -> Self {
        Script {
            state: Arc::clone(&self.state),
            timer: self.timer.clone(),
            start: self.start,
            recorder: self.recorder.clone(),
        }
    }
}

impl<V, E, T> fmt::Debug for Script<V, E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").finish_non_exhaustive()
    }
}

#[cfg(feature = "tower")]
impl<R, V, E, T: Timer> tower_service::Service<R> for Script<V, E, T> {
    type Response = V;
    type Error = E;
    type Future = Play<V, E, T>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: R) -> Play<V, E, T> {
        self.play(None)
    }
}

pin_project! {
    /// One attempt of a [`Script`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Play<V, E, T>
    where
        T: Timer,
    {
        script: Script<V, E, T>,
        number: u32,
        ends: Instant,
        // Taken at the end; `None` before it: there is none.
        outcome: Option<Result<V, E>>,
        #[pin]
        sleep: Option<T::Sleep>,
    }
}

impl<V, E, T: Timer> Future for Play<V, E, T> {
    type Output = Result<V, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Some(outcome) = this.outcome else { return Poll::Pending };
        let well = outcome.is_ok();
        if this.script.timer.now() < *this.ends {
            ready!(poll_until(&this.script.timer, *this.ends, this.sleep, cx));
        }
        this.script.ended(*this.number, well);
        Poll::Ready(this.outcome.take().expect("seen above"))
    }
}

impl<V, E, T: Timer> fmt::Debug for Play<V, E, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Play").field("number", &self.number).field("ends", &self.ends).finish_non_exhaustive()
    }
}
