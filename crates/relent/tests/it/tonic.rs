//! tonic on both sides: its server and its channel over memory, on paused time.

#![allow(clippy::print_stderr, reason = "a test that is left out says why")]

mod calls;
mod errors;
mod python;
mod stage;
