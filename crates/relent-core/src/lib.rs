#![no_std]
#![warn(missing_docs)]
//! The pure retry engine of relent. (Face to be written with the session.)
extern crate alloc;
mod backoff;
pub mod defaults;
mod outcome;
mod policy;
mod ratio;
mod rng;
mod time;
pub use backoff::{Backoff, Jitter};
pub use outcome::*;
pub use policy::*;
pub use ratio::{Ratio, RatioError};
pub use rng::{Random, Rng};
pub use time::Instant;
