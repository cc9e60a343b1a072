//! The engine from outside: delay laws, the order of the questions, budgets against a brute-force count, credit over
//! layers. Time and random bits are handed in, so every run is the same run.
//!
//! Tests named `a31_…`, `b9_…`, `p74_…` keep public failures of other libraries from coming back under a new name.

// Under loom the atomics only work inside a model: the interleavings are explored by tests inside the crate.
#![cfg(not(relent_loom))]
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod breaker;
mod budget;
mod chi_square;
mod credit;
mod delay;
mod rig;
mod session;
mod timelines;
mod validation;
