//! What happened, line by line, in the form in which relent's own timelines are written.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use relent_core::{Failure, Instant, Stop, StopReason, StopScope, WaitOrigin};

use crate::attempt::Attempt;
use crate::event::Event;
use crate::timer::Clock;

/// Writes down what happens to a handle's calls, each line with its time since the recorder was made: to be compared with
/// what should have happened, or kept as a snapshot.
///
/// Failures, waits and ends come from the handle's events ([`listener`](Recorder::listener)); that an attempt begins, and
/// that a first one succeeds, no event tells: a [`Script`](super::Script) or [`around`](Recorder::around) does. Lengths
/// are exact, so that the lines of a seeded handle on virtual time are the same every time. Clones write to one record,
/// which is meant for calls that follow one another. It keeps the first hundred thousand lines.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use relent::testing::Recorder;
/// use relent::{Policy, Retry, timer::Manual};
///
/// let time = Manual::new();
/// let recorder = Recorder::new(&time);
/// let policy = Policy::constant(Duration::from_millis(50)).jitter(relent::Jitter::None).attempts(2).build()?;
/// let retry = Retry::with_timer(policy, time).on_event(recorder.listener());
/// let ask = recorder.around_blocking(|_| Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)));
///
/// assert!(retry.run_blocking(ask).is_err());
/// assert_eq!(recorder.lines(), [
///     "0ms launch 1",
///     "0ms fail 1 unprocessed cause=connect",
///     "0ms wait until 50ms by backoff",
///     "50ms launch 2",
///     "50ms fail 2 unprocessed cause=connect",
///     "50ms stop AttemptsExhausted attempts=2",
/// ]);
/// # Ok::<(), relent::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recorder<T> {
    timer: T,
    start: Instant,
    record: Arc<Mutex<Record>>,
}

#[derive(Debug, Default)]
struct Record {
    lines: Vec<String>,
    /// Attempts launched in the call that runs.
    launched: u32,
}

/// Longer ones nobody compares.
const MOST_LINES: usize = 100_000;

impl<T: Clock> Recorder<T> {
    /// An empty record; its times count from now on `timer`.
    #[must_use]
    pub fn new(timer: &T) -> Recorder<T> {
        Recorder { start: timer.now(), timer: timer.clone(), record: Arc::default() }
    }

    /// What [`Retry::on_event`](crate::Retry::on_event) takes.
    pub fn listener(&self) -> impl Fn(&Event) + Send + Sync + use<T> {
        let recorder = self.clone();
        move |event| recorder.hears(event)
    }

    /// `operation`, with a line where an attempt begins, and where the first one succeeds.
    pub fn around<F, Fut, V, E>(
        &self,
        mut operation: F,
    ) -> impl FnMut(Attempt) -> Recorded<Fut, T> + use<F, Fut, V, E, T>
    where
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        let recorder = self.clone();
        move |attempt| {
            recorder.launched(attempt.number());
            Recorded { attempt: operation(attempt), number: attempt.number(), recorder: recorder.clone() }
        }
    }

    /// The same for a blocking operation.
    pub fn around_blocking<F, V, E>(
        &self,
        mut operation: F,
    ) -> impl FnMut(Attempt) -> Result<V, E> + use<F, V, E, T>
    where
        F: FnMut(Attempt) -> Result<V, E>,
    {
        let recorder = self.clone();
        move |attempt| {
            recorder.launched(attempt.number());
            operation(attempt).inspect(|_| recorder.succeeded(attempt.number()))
        }
    }

    /// The lines so far, without alignment.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.record().lines.clone()
    }

    /// Forgets the lines so far; the times go on.
    pub fn clear(&self) {
        self.record().lines.clear();
    }

    /// Attempt `number` begins.
    pub(super) fn launched(&self, number: u32) {
        self.record().launched += 1;
        self.line(format_args!("launch {number}"));
    }

    /// Attempt `number` succeeded. Of any but a lone first one an event tells.
    pub(super) fn succeeded(&self, number: u32) {
        if number == 1 && self.record().launched == 1 {
            self.stop(StopReason::Succeeded, 1, "");
        }
    }

    fn hears(&self, event: &Event) {
        match event {
            Event::Failed { attempt, failure } => {
                self.line(format_args!("fail {attempt} {}", Shown(failure)));
            }
            Event::Waiting { wait, origin, .. } => {
                let until = Length((self.timer.now() + *wait).since(self.start));
                let whose = if *origin == WaitOrigin::Server { "server" } else { "backoff" };
                self.line(format_args!("wait until {until} by {whose}"));
            }
            Event::Hedged { attempt } => self.line(format_args!("hedge {attempt}")),
            Event::HedgeRefused { reason } => self.line(format_args!("no hedge {}", reason.name())),
            Event::Recovered { attempts, .. } => self.stop(StopReason::Succeeded, *attempts, ""),
            Event::Breaker(change) => {
                self.line(format_args!("breaker {} from {} {}", change.to, change.from, change.why.name()));
            }
            Event::Stopped(stop) => self.stop(stop.reason, stop.attempts, &more(stop)),
            #[allow(unreachable_patterns, reason = "events may grow; a new one is shown by its words")]
            other => self.line(format_args!("{other}")),
        }
    }

    fn stop(&self, reason: StopReason, attempts: u32, more: &str) {
        self.record().launched = 0;
        self.line(format_args!("stop {} attempts={attempts}{more}", reason.name()));
    }

    fn line(&self, what: fmt::Arguments<'_>) {
        let at = Length(self.timer.now().since(self.start));
        let mut record = self.record();
        if record.lines.len() < MOST_LINES {
            record.lines.push(format!("{at} {what}"));
        }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clock> fmt::Display for Recorder<T> {
    /// The lines, the times in a column of their own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.record().lines {
            let (time, what) = line.split_once(' ').unwrap_or((line, ""));
            writeln!(f, "{time:<8} {what}")?;
        }
        Ok(())
    }
}

pin_project! {
    /// An attempt of which a [`Recorder`] hears.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Recorded<Fut, T> {
        #[pin]
        attempt: Fut,
        number: u32,
        recorder: Recorder<T>,
    }
}

impl<Fut, T, V, E> Future for Recorded<Fut, T>
where
    Fut: Future<Output = Result<V, E>>,
    T: Clock,
{
    type Output = Result<V, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.attempt.poll(cx).map_ok(|value| {
            this.recorder.succeeded(*this.number);
            value
        })
    }
}

/// What a stop says beyond its reason.
fn more(stop: &Stop) -> String {
    let mut text = String::new();
    if stop.ambiguous {
        text.push_str(" ambiguous");
    }
    if let Some(hint) = stop.hint {
        text.push_str(&format!(" hint={}", Length(hint)));
    }
    text
}

/// A failure in the words in which a timeline's script has it.
struct Shown<'a>(&'a Failure);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let failure = self.0;
        write!(f, "{}", failure.verdict())?;
        if failure.kind() != relent_core::Cause::Other {
            write!(f, " cause={}", failure.kind())?;
        }
        if let Some(hint) = failure.asked() {
            let kind = if hint.exact { "pushback" } else { "hint" };
            write!(f, " {kind}={}", Length(hint.wait))?;
        }
        if let Some(scope) = failure.stopped() {
            let scope = match scope {
                StopScope::Host => "host",
                StopScope::Service => "service",
                StopScope::Chain => "chain",
            };
            write!(f, " stop={scope}")?;
        }
        if failure.is_ambiguous() { f.write_str(" ambiguous") } else { Ok(()) }
    }
}

/// A length, exact.
struct Length(Duration);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() { f.write_str("0ms") } else { write!(f, "{:?}", self.0) }
    }
}
