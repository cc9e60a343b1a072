//! What happened, told once: logs, metrics and progress lines listen.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use relent_core::{Failure, Stop, StopReason, WaitOrigin};

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

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
