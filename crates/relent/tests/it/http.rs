//! HTTP: through tower (hyper-util's client) and through reqwest, against servers that follow a script.

#![allow(clippy::unwrap_used, reason = "a test that can't set its stage has failed")]

mod adapter;
mod authorities;
mod bodies;
mod client;
mod connection;
mod errors;
mod h2;
mod headers;
mod hedging;
mod hints;
mod hyper_util;
mod keys;
mod matrix;
#[cfg(feature = "reqwest-middleware")]
mod middleware;
mod peek;
mod replay;
mod responses;
mod send_deadline;
mod server;
mod server_deadline;
mod service;
