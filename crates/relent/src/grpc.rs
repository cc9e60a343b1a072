//! gRPC sense over HTTP types: what a status means for another attempt, what a server asks for, and a tower layer for
//! clients that puts it all to work. Nothing here knows tonic; for tonic there is `adapter::tonic`.
//!
//! [`GrpcRetryLayer`] is the way in. It follows gRFC A6 where relent's own rules don't say otherwise:
//!
//! - A failure is seen in the *head* of a response: a status other than 0 there (gRPC calls it trailers-only), or an HTTP
//!   status that is not 200. Once a server has sent a head without a status the call is committed, and nothing is
//!   repeated; [`peek_first_frame`](GrpcRetryLayer::peek_first_frame) waits a little longer.
//! - UNAVAILABLE and RESOURCE_EXHAUSTED are retried by default, others where the policy's `retry_on` names them.
//! - `grpc-retry-pushback-ms` is kept to: exactly, and no retry at all where it is negative or can't be read.
//! - Each attempt says how much time it has (`grpc-timeout`) and how many there were before (`grpc-previous-rpc-attempts`).

mod layer;
mod methods;
mod peek;
mod previous;
mod pushback;
mod speech;
mod status;

pub use layer::{GrpcCall, GrpcRetry, GrpcRetryLayer};
pub use peek::{Peek, Peeked, Peeking};
pub use previous::{GRPC_PREVIOUS_ATTEMPTS, previous_attempts};
pub use pushback::{GRPC_RETRY_PUSHBACK, Pushback};
pub(crate) use speech::Speech;
pub use status::{GRPC_STATUS, code_of, code_of_http, failure_of_code, failure_of_response};
