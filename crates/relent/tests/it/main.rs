//! The library from outside: the timelines on every driver, and what each driver promises beyond them.
//!
//! Time is virtual everywhere. Tests named `a58_…` keep public failures of other libraries from coming back.

mod block_on;
#[cfg(feature = "reqwest")]
mod http;
mod timelines;
