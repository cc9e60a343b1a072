//! What happened, line by line: the form that all drivers must agree on.

use std::fmt;
use std::time::Duration;

use relent_core::{Instant, Stop, StopReason, WaitOrigin};

/// The log of a timeline's calls: launches, waits and stops, each with its time since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    start: Instant,
    lines: Vec<String>,
}

impl Trace {
    pub(crate) fn new(start: Instant) -> Trace {
        Trace { start, lines: Vec::new() }
    }

    pub(crate) fn call(&mut self, now: Instant, number: usize) {
        self.line(now, format_args!("call {number}"));
    }

    pub(crate) fn launch(&mut self, now: Instant, number: u32) {
        self.line(now, format_args!("launch {number}"));
    }

    pub(crate) fn wait(&mut self, now: Instant, until: Instant, origin: WaitOrigin) {
        let until = Length(until.since(self.start));
        match origin {
            WaitOrigin::Server => self.line(now, format_args!("wait until {until} by server")),
            _ => self.line(now, format_args!("wait until {until} by backoff")),
        }
    }

    pub(crate) fn stop(&mut self, now: Instant, stop: &Stop) {
        let mut line = format!("stop {} attempts={}", stop.reason.name(), stop.attempts);
        // A success is nobody's doubt, and brings no hint.
        if stop.reason != StopReason::Succeeded {
            if stop.ambiguous {
                line.push_str(" ambiguous");
            }
            if let Some(hint) = stop.hint {
                line.push_str(&format!(" hint={}", Length(hint)));
            }
        }
        self.line(now, format_args!("{line}"));
    }

    /// The lines, without alignment.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    fn line(&mut self, now: Instant, what: fmt::Arguments<'_>) {
        self.lines.push(format!("{} {what}", Length(now.since(self.start))));
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            let (time, what) = line.split_once(' ').unwrap_or((line, ""));
            writeln!(f, "  {time:<8} {what}")?;
        }
        Ok(())
    }
}

/// A length as the scripts write it: exact.
struct Length(Duration);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() { f.write_str("0ms") } else { write!(f, "{:?}", self.0) }
    }
}
