//! HTTP sense: what may be sent again, what a status, a header or an error means, bodies that can be replayed, and a
//! tower layer that puts it all to work.
//!
//! [`HttpRetryLayer`] is the way in. Its parts can be had one by one, for authors of other drivers.

mod authorities;
mod call;
mod classify;
mod date;
mod deadline;
mod fields;
pub mod grpc_timeout;
mod kept;
mod keys;
mod layer;
mod memory;
mod method;
mod peek;
mod peers;
mod protocol;
mod replay;
mod retry_after;
mod send_deadline;
mod status;
mod time_fields;
pub mod wire;

#[cfg(feature = "grpc")]
pub(crate) use call::Sender;
pub use call::{HttpCall, Stopped};
pub(crate) use classify::known_error;
pub use deadline::{DeadlineBody, DeadlineLayer, DeadlineResponse, DeadlineService};
pub use grpc_timeout::GRPC_TIMEOUT;
pub use kept::{Keeping, Kept, RetryBody, without_body};
#[cfg(feature = "grpc")]
pub(crate) use layer::take_ready;
pub use layer::{DEFAULT_AUTHORITIES, HttpRetry, HttpRetryLayer};
pub use memory::ReplayMemory;
#[cfg(feature = "reqwest")]
pub(crate) use method::is_idempotent;
#[cfg(feature = "grpc")]
pub(crate) use method::repeat_of;
pub use method::{IDEMPOTENCY_KEY, repeat};
#[cfg(feature = "grpc")]
pub(crate) use peers::Peers;
pub use peers::PeersError;
#[cfg(feature = "grpc")]
pub(crate) use protocol::Protocol;
#[cfg(feature = "grpc")]
pub(crate) use replay::Watch;
pub use replay::{Replay, ReplayBody, ReplayError};
pub use retry_after::retry_after;
pub use send_deadline::{SendDeadline, SendDeadlineError, SendDeadlineFuture, SendDeadlineLayer};
pub use status::failure_of_response;
pub use time_fields::TimeUnit;
pub use wire::{ATTEMPT_COUNT, ATTEMPTS, EXPECTED_TIMEOUT, RATE_LIMITED, STOP};
