//! HTTP: through tower (hyper-util's client) and through reqwest, against servers that follow a script.

mod client;
mod matrix;
mod server;
