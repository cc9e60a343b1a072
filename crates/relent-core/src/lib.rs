//! The pure retry engine of relent: outcomes and time in, decisions out.
//!
//! For authors of drivers, proxies and simulators. Users of functions and HTTP calls want the crate `relent`, which drives
//! this one and re-exports its values.
//!
//! One [`Session`] per call; see there for the driving loop. What calls share are handles: a [`Budget`], a [`Breaker`],
//! a [`WaitingRoom`]. How calls are retried is a plain value, the [`Policy`].
//!
//! Nothing here sleeps, reads a clock, or draws from a global random source, and `no_std` keeps it so: the same code
//! decides in the library, on the wire and in the simulator. Integer nanoseconds throughout; no dependency.
#![no_std]
#![warn(missing_docs)]

extern crate alloc;

mod backoff;
mod breaker;
mod budget;
mod credit;
pub mod defaults;
mod grpc_code;
mod hold;
mod latency;
mod outcome;
mod policy;
mod ratio;
mod rng;
mod session;
mod sync;
mod time;
mod waiting;
mod window;

pub use backoff::{Backoff, Growth, Jitter, Steps};
pub use breaker::{
    Admission, Breaker, BreakerChange, BreakerState, Classic, ClassicState, RetriesOnly, RetriesOnlyState,
    TripReason,
};
pub use budget::{
    AdaptiveBudget, AdaptiveState, Budget, BudgetCounts, ConcurrencyBudget, CostBudget, Grant, Permit,
    RatioBudget, RatioState, ThrottleBudget, TokenClass, WindowedBudget, WindowedState,
};
pub use credit::{Credit, NoCredit};
pub use grpc_code::GrpcCode;
pub use hold::{Holds, TargetHold};
pub use latency::Latencies;
pub use outcome::{Cause, Failure, Health, Hint, StopScope, Used, Verdict};
pub use policy::{
    AdaptiveConfig, BadGrpcCode, BadStatus, BreakerConfig, BreakerWindow, BudgetConfig, ClassicConfig,
    ConcurrencyConfig, CostConfig, Deposit, HedgeConfig, HedgeDelay, Hold, Nested, Policy, PolicyBuilder,
    PolicyError, RatioConfig, Repeat, RepeatRule, RetriesOnlyConfig, RetryOn, ThrottleConfig,
    ThrottledConfig, WindowedConfig,
};
pub use ratio::{Ratio, RatioError};
pub use rng::{Random, Rng};
pub use session::{
    AttemptId, Context, Hedge, Launch, Opening, Past, Session, Step, Stop, StopReason, WaitOrigin,
};
pub use sync::{Lock, Locks};
pub use time::Instant;
pub use waiting::{FreeRepeats, WaitingRoom};
