//! What a handle's calls came to: counted in the process, written as `tracing` events and spans, or as `metrics`.
//!
//! All of it listens to the same [`Event`](crate::Event)s. First tries that succeed are silent, and cost nothing more; what is
//! told has no error texts, no bodies and no URLs in it.

#[cfg(feature = "metrics")]
mod meter;
mod snapshot;
#[cfg(feature = "tracing")]
mod spans;
#[cfg(feature = "tracing")]
mod trace;

#[cfg(feature = "metrics")]
pub(crate) use meter::meter;
pub(crate) use snapshot::Counts;
pub use snapshot::Snapshot;
#[cfg(all(feature = "tracing", feature = "http"))]
pub use spans::{AttemptSpanLayer, AttemptSpanService, SpannedResponse};
#[cfg(feature = "tracing")]
pub use spans::{SpannedAttempt, spans};
#[cfg(feature = "tracing")]
pub(crate) use trace::trace;
