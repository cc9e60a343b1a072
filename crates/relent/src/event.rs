//! What happened, told once: logs, metrics and progress lines listen.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use relent_core::{BreakerChange, Failure, Stop, StopReason, WaitOrigin};

/// One thing that happened to a call. First tries that succeed are silent.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An attempt failed.
    Failed {
        /// Its number, from 1.
        attempt: u32,
        /// What it came to.
        failure: Failure,
    },
    /// Another attempt follows after a wait.
    Waiting {
        /// How many attempts were made.
        attempts: u32,
        /// How long the wait is.
        wait: Duration,
        /// Whose word it follows.
        origin: WaitOrigin,
    },
    /// The call succeeded after a retry or a hedge.
    Recovered {
        /// Attempts made.
        attempts: u32,
        /// The number of the one that succeeded.
        winner: u32,
    },
    /// A hedge: another attempt starts beside one that takes long.
    Hedged {
        /// Its number.
        attempt: u32,
    },
    /// A hedge was due and is not made. The attempts in flight go on.
    HedgeRefused {
        /// Who refused it.
        reason: StopReason,
    },
    /// The handle's breaker changed its state.
    Breaker(BreakerChange),
    /// The call gave up.
    Stopped(Stop),
}

impl fmt::Display for Event {
    /// One line for a log. There is nothing in it that an operation or its error said of itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Failed { attempt, failure } => write!(f, "attempt {attempt} failed: {failure}"),
            Event::Waiting { attempts, wait, origin } => {
                let whose = match origin {
                    WaitOrigin::Server => ", as the server asked",
                    _ => "",
                };
                write!(f, "attempt {} follows in {wait:.1?}{whose}", attempts.saturating_add(1))
            }
            Event::Recovered { attempts, winner } => {
                write!(f, "attempt {winner} of {attempts} succeeded")
            }
            Event::Hedged { attempt } => write!(f, "attempt {attempt} starts beside one that takes long"),
            Event::HedgeRefused { reason } => write!(f, "no hedge: {reason}"),
            Event::Breaker(change) => {
                write!(f, "the breaker is {} now, and was {}: {}", change.to, change.from, change.why.name())
            }
            Event::Stopped(stop) => {
                let plural = if stop.attempts == 1 { "" } else { "s" };
                write!(f, "gave up after {} attempt{plural}: {}", stop.attempts, stop.reason)?;
                if stop.ambiguous { f.write_str("; it may have taken effect") } else { Ok(()) }
            }
        }
    }
}

/// Whoever listens to a handle's events; must not block.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) Arc<dyn Fn(&Event) + Send + Sync>);

impl Listener {
    /// `listener`, told after the one before it.
    pub(crate) fn after(
        before: Option<Listener>,
        listener: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Listener {
        match before {
            None => Listener(Arc::new(listener)),
            Some(Listener(before)) => Listener(Arc::new(move |event| {
                before(event);
                listener(event);
            })),
        }
    }

    /// Tells, unless that could end the process: a call that is dropped because something panicked tells nobody, since a
    /// second panic would be the last.
    pub(crate) fn tell(&self, event: &Event) {
        if !std::thread::panicking() {
            (self.0)(event);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
