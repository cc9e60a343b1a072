//! A script of calls, and what has to come of them. The form is told in `timelines/README.md`.

mod attempt;
mod policy;
mod script;
mod value;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use relent_core::{Failure, Policy, Repeat};

use crate::Trace;

/// One script file, read.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The file, from the workspace's root.
    pub path: String,
    /// How its calls are retried.
    pub policy: Policy,
    /// What may be repeated.
    pub repeat: Repeat,
    /// What the jitter is drawn from.
    pub seed: u64,
    /// What the layers above grant.
    pub above: Above,
    /// The calls, one after another on one handle.
    pub calls: Vec<ScriptedCall>,
    /// The lines that have to come of it, in the form of [`Trace::lines`].
    pub expected: Vec<String>,
    /// Where each of them stands in the file.
    expected_at: Vec<usize>,
    skips: Vec<Skip>,
}

/// A driver that a script is not for, and why.
#[derive(Clone, Debug)]
struct Skip {
    driver: String,
    reason: String,
}

/// What the layers above a call grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Above {
    /// Further attempts; `None`: nobody said anything.
    pub left: Option<u32>,
    /// When they want the answer, from the start of the timeline.
    pub deadline: Option<Duration>,
}

/// One call.
#[derive(Clone, Debug)]
pub struct ScriptedCall {
    /// When it starts, from the start of the timeline; at once after the last one if nothing is said.
    pub at: Option<Duration>,
    /// Whether it is written down: the many calls that only fill a budget are not.
    pub logged: bool,
    /// What its attempts come to, in order.
    pub attempts: Vec<ScriptedAttempt>,
}

/// One attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptedAttempt {
    /// How long it takes, unless it is ended earlier.
    pub takes: Duration,
    /// What it comes to.
    pub outcome: ScriptedOutcome,
}

/// What an attempt comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptedOutcome {
    /// It succeeds.
    Succeeds,
    /// It fails.
    Fails {
        /// How.
        failure: Failure,
        /// Extra attempts that a layer below made meanwhile.
        used: u32,
    },
}

/// A script that can't be read: where, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The file, from the workspace's root.
    pub path: String,
    /// The line, from 1; 0 if it is the whole file.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

impl std::error::Error for ScriptError {}

impl Timeline {
    /// Every script of the kit, by name.
    ///
    /// # Errors
    /// The first one that can't be read.
    pub fn all() -> Result<Vec<Timeline>, ScriptError> {
        const FOLDER: &str = "crates/relent-testkit/timelines";
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("timelines");
        let failed = |path: &str, error: std::io::Error| ScriptError {
            path: path.to_owned(),
            line: 0,
            message: format!("cannot be read: {error}"),
        };
        let mut names = Vec::new();
        for entry in folder.read_dir().map_err(|error| failed(FOLDER, error))? {
            let name = entry.map_err(|error| failed(FOLDER, error))?.file_name();
            names.extend(name.into_string().ok().filter(|name| name.ends_with(".txt")));
        }
        names.sort();
        let read = |name: &String| {
            let path = format!("{FOLDER}/{name}");
            let text = std::fs::read_to_string(folder.join(name)).map_err(|error| failed(&path, error))?;
            Timeline::parse(&path, &text)
        };
        names.iter().map(read).collect()
    }

    /// Reads one script; `path` is for messages.
    ///
    /// # Errors
    /// The first line that can't be understood.
    pub fn parse(path: &str, text: &str) -> Result<Timeline, ScriptError> {
        script::parse(path, text).map_err(|(line, message)| ScriptError {
            path: path.to_owned(),
            line,
            message,
        })
    }

    /// Why `driver` can't play this one; `None` if it can.
    #[must_use]
    pub fn skipped_by(&self, driver: &str) -> Option<&str> {
        self.skips.iter().find(|skip| skip.driver == driver).map(|skip| skip.reason.as_str())
    }

    /// The line of the file where `trace` leaves what is expected.
    #[must_use]
    pub fn line_of_difference(&self, trace: &Trace) -> usize {
        let same = trace.lines().iter().zip(&self.expected).take_while(|(did, should)| did == should).count();
        let last = self.expected_at.last().copied().unwrap_or(0);
        self.expected_at.get(same).copied().unwrap_or(last)
    }
}

impl Above {
    /// Whether any layer above says anything.
    #[must_use]
    pub fn grants(&self) -> bool {
        *self != Above::default()
    }

    /// A policy whose first attempt grants just this to the calls inside it: drivers that have no other way to be told
    /// put a layer with it around the timeline. `None` if no policy does.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        // A layer that can retry keeps one attempt back: of n + 2 attempts, n are left for those below.
        let attempts = match self.left {
            Some(left) => left.checked_add(2)?,
            None => 1,
        };
        let layer = Policy::constant(Duration::ZERO).attempts(attempts).no_budget().no_attempt_timeout();
        let layer = match self.deadline {
            Some(end) => layer.deadline(longer_by_the_margin(end)?),
            None => layer.no_deadline(),
        };
        layer.build().ok()
    }
}

/// The time whose end, less max(5 ms, 5 %), is `end`.
fn longer_by_the_margin(end: Duration) -> Option<Duration> {
    const LEAST: Duration = Duration::from_millis(5);
    let time = if end <= 19 * LEAST { end + LEAST } else { end.checked_mul(20)? / 19 };
    (time - (time / 20).max(LEAST) == end).then_some(time)
}

#[cfg(test)]
mod tests {
    use relent_core::{Context, FreeRepeats, Instant, NoCredit, Session, Step, WaitingRoom};

    use super::*;

    #[test]
    fn a_layer_above_grants_what_it_should() {
        let check = |left: Option<u32>, deadline: Option<u64>| {
            let above = Above { left, deadline: deadline.map(Duration::from_millis) };
            let policy = above.policy().unwrap();
            let context = Context {
                policy: &policy,
                budget: None,
                breaker: None,
                waiting: &std::sync::Arc::new(WaitingRoom::new()),
                free_repeats: &FreeRepeats::default(),
                credit: &NoCredit,
                hold: None,
                latencies: None,
                random: &|| 0,
            };
            let mut session = Session::new(&policy, Repeat::Yes, Instant::NEVER, Instant::ZERO);
            let Step::Launch(launch) = session.begin(&context, Instant::ZERO) else { panic!("not launched") };
            let ends = deadline.map_or(Instant::NEVER, |ms| Instant::ZERO + Duration::from_millis(ms));
            assert_eq!((launch.left, launch.ends_below()), (left, ends));
        };
        check(Some(0), None);
        check(Some(7), None);
        check(None, Some(95));
        check(None, Some(100));
        check(None, Some(1900));
        check(Some(1), Some(20));
    }

    #[test]
    fn nobody_grants_more_than_can_be_counted() {
        assert_eq!(Above { left: Some(u32::MAX), deadline: None }.policy(), None);
        assert_eq!(Above { left: None, deadline: Some(Duration::MAX) }.policy(), None);
    }
}
