//! The retrying reverse proxy: HTTP/1.1 and HTTP/2 without TLS on both sides, every call driven by relent's session.
//!
//! [`start`] a checked configuration; the [`Proxy`] that comes back is drained and joined. What happens to a request is
//! one list, in `stack.rs`.

mod facts;
mod server;

pub use server::{Ended, Proxy, StartError, start};
