//! The library from outside: the timelines on every driver, and what each driver promises beyond them.
//!
//! Time is virtual everywhere. Tests named `a58_…` keep public failures of other libraries from coming back.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says so by a panic")]

mod ambient;
mod attempt;
mod budgets;
mod cancellation;
mod circuit;
mod classify;
mod composition;
mod credit;
mod deadline;
mod dropping;
mod error;
mod events;
#[cfg(feature = "grpc")]
mod grpc;
mod handles;
mod hedging;
#[cfg(feature = "reqwest")]
mod http;
#[cfg(feature = "tower")]
mod layer;
mod nested;
#[cfg(all(feature = "tracing", feature = "metrics"))]
mod observe;
mod outcome;
mod peers;
mod probes;
mod rig;
mod stepper;
#[cfg(feature = "testing")]
mod testing;
mod timelines;
mod timer;
#[cfg(feature = "tonic")]
mod tonic;
