//! Tests of code that retries: virtual time, services that follow a script, written timelines, injected faults.
//!
//! What a test needs to own is time, outcomes and chance. Time is a [`Manual`] clock ([`block_on`] runs a future on one,
//! to its end, without a runtime); chance is [`Retry::seed`](crate::Retry::seed); the rest stands here:
//!
//! | for | take |
//! |---|---|
//! | outcomes in order, as an operation or a tower service | [`Script`] |
//! | an HTTP server in memory that answers in order | `HttpScript` (feature `http`) |
//! | what happened, line by line, to compare or to snapshot | [`Recorder`] |
//! | errors and latency by chance, switched on while a program runs | [`Faults`], `FaultLayer` (feature `tower`) |
//!
//! ```
//! use std::io;
//! use std::time::Duration;
//! use relent::testing::{self, Recorder, Script};
//! use relent::{Jitter, Policy, Retry};
//!
//! let ((answer, timeline), took) = testing::block_on(async |time| {
//!     let recorder = Recorder::new(&time);
//!     let script = Script::on(&time)
//!         .fails(io::Error::from(io::ErrorKind::ConnectionReset)).takes(Duration::from_millis(20))
//!         .times_out()
//!         .succeeds(350).takes(Duration::from_millis(5))
//!         .recorded_by(&recorder);
//!     let policy = Policy::constant(Duration::from_secs(1)).jitter(Jitter::None).build().unwrap();
//!     let retry = Retry::with_timer(policy, time).on_event(recorder.listener());
//!
//!     (retry.run(script.operation()).await, recorder.to_string())
//! });
//! assert_eq!(answer.ok(), Some(350));
//! assert_eq!(took, Duration::from_millis(20 + 1_000 + 5_000 + 1_000 + 5));
//! assert_eq!(timeline, "\
//! 0ms      launch 1
//! 20ms     fail 1 transient cause=reset ambiguous
//! 20ms     wait until 1.02s by backoff
//! 1.02s    launch 2
//! 6.02s    fail 2 transient cause=timeout ambiguous
//! 6.02s    wait until 7.02s by backoff
//! 7.02s    launch 3
//! 7.025s   stop Succeeded attempts=3
//! ");
//! ```
//!
//! [`Manual`]: crate::timer::Manual

mod faults;
#[cfg(feature = "http")]
mod http_script;
mod recorder;
mod script;
mod seen;

pub use faults::{FaultCounts, Faults, Faulty};
#[cfg(feature = "tower")]
pub use faults::{FaultLayer, FaultService};
#[cfg(feature = "http")]
pub use http_script::{HttpPlay, HttpScript, ScriptedBody, SeenRequest};
pub use recorder::{Recorded, Recorder};
pub use script::{Play, Script};
pub use seen::Seen;

use std::time::Duration;

use crate::timer::Manual;

/// Runs a future on a fresh virtual clock to its end; answers what it came to, and how much virtual time that took.
///
/// The clock moves to the nearest sleeper whenever everything waits: an hour of backoff takes no time, and the same test
/// takes the same way each time. No runtime is needed; several calls at once are a join of their futures. For a clock that
/// stands already, take [`Manual::run`].
///
/// # Panics
/// If the future waits and nobody sleeps on the clock: it would never end.
///
/// ```
/// use std::time::Duration;
/// use relent::testing;
/// use relent::timer::{Clock, Timer};
///
/// let ((), took) = testing::block_on(async |time| time.sleep_until(time.now() + Duration::from_secs(3600)).await);
/// assert_eq!(took, Duration::from_secs(3600));
/// ```
pub fn block_on<V>(future: impl AsyncFnOnce(Manual) -> V) -> (V, Duration) {
    let time = Manual::new();
    let value = time.run(future(time.clone()));
    (value, time.elapsed())
}
