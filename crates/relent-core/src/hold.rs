//! A pause that a server asked all retries to take.

use crate::Instant;
use crate::sync::{AtomicU64, Ordering};

/// Until when retries to a target, or to one endpoint of it, are held back.
///
/// Set by a 503 that says how long (and by a 429, where the policy says that it speaks for the whole target); only ever
/// extended. First tries don't ask.
pub trait Holds: core::fmt::Debug + Send + Sync {
    /// When the next retry may start, as far as is known; [`Instant::ZERO`] if nothing holds it.
    fn held_until(&self) -> Instant;

    /// The server that answered wants no retry before `until`.
    fn hold(&self, until: Instant);
}

/// The hold on one target.
#[derive(Debug, Default)]
pub struct TargetHold(AtomicU64);

impl TargetHold {
    /// Nothing is held.
    #[must_use]
    pub fn new() -> TargetHold {
        TargetHold(AtomicU64::new(0))
    }
}

impl Holds for TargetHold {
    fn held_until(&self) -> Instant {
        Instant::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn hold(&self, until: Instant) {
        self.0.fetch_max(until.as_nanos(), Ordering::Relaxed);
    }
}
