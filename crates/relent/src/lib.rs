//! Retries that know when to stop.
//!
//! Say in a [`Policy`] how a kind of call is retried, make a [`Retry`] from it, keep that, and run calls through it:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::io;
//! use std::time::Duration;
//! use relent::{Policy, Retry};
//!
//! let policy = Policy::exponential(Duration::from_millis(50), Duration::from_secs(1)) // waits: base, cap
//!     .attempts(4)
//!     .attempt_timeout(Duration::from_millis(500))
//!     .deadline(Duration::from_secs(2))
//!     .build()?; // a policy that contradicts itself is refused here
//! let retry = Retry::new(policy);
//!
//! let price = retry.run(|attempt| async move {
//!     println!("attempt {}, {:?} left", attempt.number(), attempt.time_left());
//!     io::Result::Ok(350) // your call
//! });
//! assert_eq!(price.await?, 350);
//! # Ok(()) }
//! ```
//!
//! # What you get
//!
//! - **Bounds.** Attempts, the time of each, and a deadline for all of it, waits included. Nobody sleeps only to be refused.
//! - **A budget.** Over all calls of a handle and its clones, retries are a share of the calls that succeed, and a few more in
//!   reserve. In an outage the load on the target falls to what it would be without retries. So make one handle for each
//!   target, not one for each call.
//! - **Layers that share.** A call inside an attempt of another call takes its attempts from the outer one's: three layers that
//!   each retry three times make 3 requests at a dead target, not 27. Over a `spawn` a [`Scope`] carries that along.
//! - **The truth.** A [`RetryError`] has the last error, untouched, the [`StopReason`], and whether an attempt may have taken
//!   effect though no answer came ([`ambiguous`](RetryError::ambiguous)).
//!
//! # Which errors are retried
//!
//! [`Standard`] knows the errors of the standard library, and of HTTP clients by feature, also deep inside of your own. An
//! error that nobody knows is *not* retried. For your own, hand a closure to [`Retry::classify`], or mark them with
//! [`Transient`]:
//!
//! ```
//! use relent::{Retry, StopReason, Verdict};
//!
//! let retry = Retry::default().classify(|error: &&str| match *error {
//!     "busy" => Verdict::Transient,
//!     _ => Verdict::Permanent,
//! });
//! let gave_up = retry.run_blocking(|_| Err::<(), _>("no such article")).unwrap_err();
//! assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::NotRetryable, 1));
//! assert_eq!(gave_up.last(), Some(&"no such article"));
//! ```
//!
//! # Which calls are repeated
//!
//! A function has no method that says whether it may be repeated: handing it to [`Retry::run`] is your word. For what must not
//! happen twice there is [`Run::only_if_unprocessed`], which repeats only what provably was not executed.
//!
//! # Where to go from here
//!
//! | for | take | feature |
//! |---|---|---|
//! | async functions | [`Retry::run`] | `tokio` (default), or a [`Timer`](timer::Timer) of your own |
//! | blocking functions | [`Retry::run_blocking`] | |
//! | tower services | `RetryLayer` | `tower` |
//! | HTTP clients that are tower services | `http::HttpRetryLayer` | `http`, and `hyper-util` to know its errors |
//! | gRPC clients that are tower services | `grpc::GrpcRetryLayer` | `grpc` |
//! | tonic | `adapter::tonic::TonicRetryLayer` | `tonic` |
//! | reqwest | `adapter::reqwest::RetryClient` | `reqwest` |
//! | reqwest with middlewares | `adapter::reqwest_middleware::RetryMiddleware` | `reqwest-middleware` |
//! | hyper-util's client | `adapter::hyper_util::build` | `hyper-util` |
//! | a fresh `Idempotency-Key` for each request | `http::HttpRetryLayer::generate_keys` | `keys` |
//! | tests without waiting | [`timer::Manual`], or tokio's paused time | |
//! | scripts, timelines and faults for tests | `testing` | `testing` |
//! | policies from a file | the crate `relent-config` | |
//! | logs and metrics | [`Retry::on_event`] | |
//! | giving up from outside | [`Run::until`], or drop the future | |
//! | a bound on all that runs inside | [`Deadline`] | |
//! | servers that keep to their callers' time | `http::DeadlineLayer` | `http` |
//! | clients that tell how much time is left | `http::SendDeadlineLayer` | `http` |
#![warn(missing_docs)]

#[cfg(any(feature = "hyper-util", feature = "reqwest", feature = "tonic"))]
pub mod adapter;
mod ambient;
mod attempt;
mod blocking;
mod budgets;
mod call;
mod circuit;
pub mod classify;
mod deadline;
mod error;
mod event;
#[cfg(feature = "grpc")]
pub mod grpc;
mod handles;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "tower")]
mod layer;
pub mod observe;
pub mod outcome;
mod random;
mod retry;
mod run;
#[cfg(feature = "testing")]
pub mod testing;
pub mod timer;

pub use ambient::{InScope, Scope};
pub use attempt::Attempt;
pub use budgets::{Budgets, BudgetsError};
pub use call::Handle;
pub use circuit::{BreakerCounts, BreakerError, BreakerOpen, BreakerPermit, CircuitBreaker};
#[cfg(feature = "tower")]
pub use circuit::{BreakerFuture, BreakerLayer, BreakerService, Judges};
pub use classify::{Boxed, Classify, ClassifyExt, Standard, Transient};
pub use deadline::{Deadline, DeadlineExceeded, Enforced, InDeadline};
pub use error::RetryError;
pub use event::Event;
pub use handles::Handles;
#[cfg(feature = "tower")]
pub use layer::{Attempts, ReadyCall, RetryLayer, RetryService};
pub use outcome::{Answer, OutcomeRetry};
pub use relent_core::{
    AdaptiveConfig, Backoff, BadGrpcCode, BadStatus, Breaker, BreakerChange, BreakerConfig, BreakerState,
    BreakerWindow, Budget, BudgetConfig, BudgetCounts, Cause, ClassicConfig, ConcurrencyConfig, CostConfig,
    Deposit, Failure, Grant, Growth, GrpcCode, Health, HedgeConfig, HedgeDelay, Hint, Hold, Instant, Jitter,
    Nested, Permit, Policy, PolicyBuilder, PolicyError, Ratio, RatioConfig, RatioError, Repeat, RepeatRule,
    RetriesOnlyConfig, RetryOn, Steps, Stop, StopReason, StopScope, ThrottleConfig, ThrottledConfig,
    TokenClass, TripReason, Used, Verdict, WaitOrigin, WindowedConfig, defaults,
};
pub use retry::Retry;
pub use run::{Operation, Run, Seeing, Until};
