//! The proxy from outside: raw clients before it, scripted endpoints behind it, in memory and on paused time.
//!
//! Tests named by a number are cases that broke other proxies.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says so by a panic")]
#![allow(clippy::print_stderr, reason = "a test that is left out says why")]

mod rig;

mod bodies;
mod counts;
mod h2;
mod hosts;
mod matrix;
mod safety;
mod sockets;
mod time;
mod timelines;
mod words;
