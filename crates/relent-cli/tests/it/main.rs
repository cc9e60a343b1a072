//! The program as its users run it: arguments in; output, exit codes and effects out.
#![allow(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod explain;
mod explain_file;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod run_ends;
#[cfg(unix)]
mod run_input;
mod support;
mod usage;
