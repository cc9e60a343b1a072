//! The retrying reverse proxy: HTTP/1.1 and HTTP/2 without TLS on both sides, every call driven by relent's session.
//!
//! [`start`] a checked configuration; the [`Proxy`] that comes back is drained and joined. A program that is nothing else
//! takes [`bind`] and runs what comes back. What happens to a request is
//! one list, in `stack.rs`. [`Engine`] is the same without sockets.

mod access;
mod admin;
mod alarm;
mod client;
mod deadline;
mod engine;
mod facts;
mod fields;
mod finish;
mod framing;
mod idle;
mod limit;
mod listen;
mod metrics;
mod plan;
mod record;
mod request;
mod respond;
mod response;
mod retry;
mod route;
mod server;
mod stack;
mod tunnel;
mod upstream;
mod worker;

pub use engine::Engine;
pub use server::{Bound, Ended, Proxy, StartError, bind, start};
pub use upstream::{Connector, TcpConnector};
