//! One line per attempt, on stderr.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use relent::{Event, Stop, StopReason};

use crate::render::{Paint, length};

/// Tells how the attempts go. Clones tell one story.
#[derive(Clone, Debug)]
pub(super) struct Progress(Arc<Story>);

#[derive(Debug)]
struct Story {
    quiet: bool,
    attempts: u32,
    paint: Paint,
    /// How the last attempt ended, while its line is still to come.
    ended: Mutex<Option<String>>,
}

impl Progress {
    pub(super) fn new(quiet: bool, attempts: u32) -> Progress {
        Progress(Arc::new(Story { quiet, attempts, paint: Paint::stderr(), ended: Mutex::new(None) }))
    }

    /// An attempt ended like this; what follows from it is heard from the driver.
    pub(super) fn ended(&self, how: impl fmt::Display) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(how.to_string());
    }

    /// An attempt succeeded.
    pub(super) fn succeeded(&self, attempt: u32) {
        self.line(attempt, "exit code 0");
    }

    /// What the driver says of the call.
    pub(super) fn hear(&self, event: &Event) {
        match event {
            // One that was given up from outside has no other ending.
            Event::Failed { .. } => {
                let mut ended = self.0.ended.lock().unwrap_or_else(PoisonError::into_inner);
                ended.get_or_insert_with(|| "out of time".into());
            }
            Event::Waiting { attempts, wait, .. } => {
                let ended = self.take_ended().unwrap_or_default();
                let next =
                    if wait.is_zero() { "next at once".into() } else { format!("next in {}", length(*wait)) };
                self.line(*attempts, &format!("{ended}, {next}"));
            }
            Event::Stopped(stop) => self.stopped(stop),
            _ => {}
        }
    }

    fn stopped(&self, stop: &Stop) {
        match (self.take_ended(), stop.reason) {
            (Some(ended), StopReason::Cancelled) => self.line(stop.attempts, &format!("{ended}, called off")),
            (Some(ended), reason) => {
                self.line(stop.attempts, &format!("{ended}, giving up: {}", words(reason)))
            }
            (None, StopReason::Cancelled) => self.print("called off during the wait"),
            (None, reason) => self.print(&format!("giving up: {}", words(reason))),
        }
    }

    fn take_ended(&self) -> Option<String> {
        self.0.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn line(&self, attempt: u32, what: &str) {
        self.print(&format!("attempt {attempt} of {}: {what}", self.0.attempts));
    }

    fn print(&self, line: &str) {
        if !self.0.quiet {
            // The command goes on if nobody reads this.
            let _ = writeln!(io::stderr(), "{} {line}", self.0.paint.faint("relent:"));
        }
    }
}

/// A reason to stop, as it looks for a command.
fn words(reason: StopReason) -> &'static str {
    match reason {
        StopReason::NotRetryable => "that is not an exit to retry on",
        StopReason::NotReplayable => "its stdin is used up, and too long to be kept",
        other => other.describe(),
    }
}
