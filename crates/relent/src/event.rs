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

/// Whoever listens to a handle's events; must not block.
#[derive(Clone)]
pub(crate) struct Listener(pub(crate) Arc<dyn Fn(&Event) + Send + Sync>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}
