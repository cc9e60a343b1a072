//! Whether the responses on an HTTP/2 connection still move.
//!
//! While a client gives a stream no window, nobody asks for the response's body, and no timer of its own would be looked at:
//! so the sweep looks from outside. (On HTTP/1.1 the connection itself stops, which its writes tell.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use relent_core::Instant;

/// One response, as long as its body is not at its end.
#[derive(Debug, Default)]
pub(crate) struct Pulse(AtomicBool);

impl Pulse {
    /// The body was asked for.
    pub(crate) fn beat(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The responses of one connection.
#[derive(Debug, Default)]
pub(super) struct Pulses(Mutex<Vec<Watched>>);

#[derive(Debug)]
struct Watched {
    pulse: Weak<Pulse>,
    /// When it was last seen to move.
    since: Option<Instant>,
}

impl Pulses {
    pub(super) fn add(&self) -> Arc<Pulse> {
        let pulse = Arc::new(Pulse::default());
        let watched = Watched { pulse: Arc::downgrade(&pulse), since: None };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(watched);
        pulse
    }

    /// Whether one of them has stood still for so long. Those that have ended are forgotten.
    pub(super) fn stand_still(&self, now: Instant, patience: Duration) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut still = false;
        all.retain_mut(|watched| {
            let Some(pulse) = watched.pulse.upgrade() else { return false };
            if pulse.0.swap(false, Ordering::Relaxed) {
                watched.since = None;
            }
            still |= now.since(*watched.since.get_or_insert(now)) >= patience;
            true
        });
        still
    }
}
