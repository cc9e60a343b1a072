//! tonic on both sides: its server and its channel over memory, on paused time.

mod calls;
mod errors;
mod python;
mod stage;
