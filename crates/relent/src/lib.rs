//! Retries that know when to stop.
#![warn(missing_docs)]

#[cfg(feature = "reqwest")]
pub mod adapter;
mod ambient;
mod attempt;
mod blocking;
mod call;
mod classify;
mod error;
mod event;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "tower")]
mod layer;
mod random;
mod retry;
mod run;
pub mod timer;

pub use ambient::{InScope, Scope};
pub use attempt::Attempt;
pub use call::Handle;
pub use classify::{Boxed, Classify, Standard, Transient};
pub use error::RetryError;
pub use event::Event;
#[cfg(feature = "tower")]
pub use layer::{Attempts, ReadyCall, RetryLayer, RetryService};
pub use relent_core::{
    BadStatus, Backoff, Budget, Cause, Deposit, Failure, Grant, Health, Hint, Instant, Jitter, Nested, Permit, Policy,
    PolicyBuilder, PolicyError, Ratio, RatioConfig, RatioError, Repeat, RepeatRule, RetriesOnlyConfig, RetryOn, Stop,
    StopReason, StopScope, TokenClass, Used, Verdict, WaitOrigin, defaults,
};
pub use retry::Retry;
pub use run::{Operation, Run, Until};
