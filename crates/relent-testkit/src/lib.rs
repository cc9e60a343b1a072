//! What relent's own tests share: the timelines, one set of scripts that the engine and every driver of it must follow to
//! the nanosecond. A behaviour that one driver has alone shows up here as a line that differs.
//!
//! A script ([`Timeline`]) says by which policy calls are made and what each attempt comes to; its `expect` section says
//! what has to follow: launches, waits, stops. A driver plays it on a [`Stage`], and [`check`] compares.
//!
//! Only for tests under `tests/it`: inside relent-core's unit tests, this crate's core is another copy with other types.
#![warn(missing_docs)]

mod check;
mod engine;
mod stage;
mod timeline;
mod trace;

pub use check::check;
pub use engine::run as run_on_the_engine;
pub use stage::Stage;
pub use timeline::{Above, ScriptError, ScriptedAttempt, ScriptedCall, ScriptedOutcome, Timeline};
pub use trace::Trace;
