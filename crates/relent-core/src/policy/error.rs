//! Why a policy can't be built.

use core::fmt;
use core::time::Duration;

use crate::{Cause, Ratio};

/// Why a policy can't be built: what contradicts what.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// `attempts` is 0; it counts the first one.
    NoAttempts,
    /// `cap` is below `base`.
    CapBelowBase {
        /// The cap.
        cap: Duration,
        /// The base.
        base: Duration,
    },
    /// `floor` is above `base`.
    FloorAboveBase {
        /// The floor.
        floor: Duration,
        /// The base.
        base: Duration,
    },
    /// `multiplier` is below 1: the wait would shrink.
    MultiplierBelowOne(Ratio),
    /// A list of waits is empty, or longer than [`Steps::MOST`](crate::Steps::MOST).
    StepsOutOfRange(usize),
    /// `base` is not the first of the listed waits.
    BaseNotFirstStep {
        /// The base.
        base: Duration,
        /// The first wait of the list.
        first: Duration,
    },
    /// `multiplier` has no effect on a curve that is not exponential.
    MultiplierUnused(Ratio),
    /// The growth of this name has no effect on a jitter that grows from the last wait.
    GrowthUnused(&'static str),
    /// The adaptive budget's `factor` is below 1: it would refuse retries of a target that accepts everything.
    FactorBelowOne(Ratio),
    /// The jitter's x is above 1: the wait could be negative.
    JitterAboveOne(Ratio),
    /// `attempt_timeout` is not below `deadline`: no second attempt could follow a timeout.
    AttemptTimeoutNotBelowDeadline {
        /// The attempt timeout.
        attempt_timeout: Duration,
        /// The deadline.
        deadline: Duration,
    },
    /// A field that must be above zero is zero.
    Zero(&'static str),
    /// A length over 365 days.
    TooLong {
        /// The field.
        field: &'static str,
        /// Its value.
        value: Duration,
    },
    /// `attempts` is over 1, and nothing is retried.
    NothingToRetryOn,
    /// The first wait ends after the deadline: no second attempt could ever start.
    FirstWaitBeyondDeadline {
        /// The first wait, before jitter.
        base: Duration,
        /// The deadline.
        deadline: Duration,
    },
    /// `give_up_after` is not below `deadline`, which always comes first then.
    GiveUpNotBelowDeadline {
        /// The time since the first failure.
        give_up_after: Duration,
        /// The deadline.
        deadline: Duration,
    },
    /// The first wait is longer than `give_up_after`: no second attempt could ever start.
    FirstWaitBeyondGiveUp {
        /// The first wait, before jitter.
        base: Duration,
        /// The time since the first failure.
        give_up_after: Duration,
    },
    /// `min_attempt_time` is not below the deadline or the attempt timeout.
    MinAttemptTimeTooLong {
        /// The least useful time of an attempt.
        min_attempt_time: Duration,
        /// The bound that it does not fit into.
        bound: Duration,
    },
    /// Hedges are attempts: there must be fewer than those in all.
    HedgesNotBelowAttempts {
        /// `hedge.most`.
        hedges: u32,
        /// `attempts`.
        attempts: u32,
    },
    /// A measured delay's share is 0, or 1 and more.
    HedgeQuantileOutOfRange(Ratio),
    /// A hedge would start after the attempt's end, and so never.
    HedgeDelayTooLong {
        /// The hedge's delay.
        delay: Duration,
        /// The attempt timeout, or the deadline.
        bound: Duration,
    },
    /// `throttled_base` is above `max_hint`: every throttled answer without a hint would end the call.
    ThrottledBaseAboveMaxHint {
        /// The hint that stands for none.
        throttled_base: Duration,
        /// The longest hint that is waited out.
        max_hint: Duration,
    },
    /// `throttled.cap` is below its base.
    ThrottledCapBelowBase {
        /// The cap.
        cap: Duration,
        /// The base.
        base: Duration,
    },
    /// `throttled.cap` is above `max_hint`: a wait that grows to it would end the call.
    ThrottledCapAboveMaxHint {
        /// The cap.
        cap: Duration,
        /// The longest hint that is waited out.
        max_hint: Duration,
    },
    /// A limit for one class of failures is above `attempts`, which goes before it.
    LimitAboveAttempts {
        /// `throttled.attempts` or `attempts_on`.
        field: &'static str,
        /// The limit.
        limit: u32,
        /// `attempts`.
        attempts: u32,
    },
    /// `attempts_on` names a cause that `retry_on` does not.
    LimitOnNotRetried(Cause),
    /// One call may keep more than all calls together.
    ReplayLimitAboveTotal {
        /// `replay_limit`, in bytes.
        limit: u64,
        /// `replay_total`, in bytes.
        total: u64,
    },
    /// The budget's ratio is above 1: more retries than successes.
    BudgetRatioAboveOne(Ratio),
    /// `max_tokens` of a `throttle` budget is not from 1 to 1000.
    MaxTokensOutOfRange(u32),
    /// `token_ratio` of a `throttle` budget has more than three decimal places.
    TokenRatioTooFine(Ratio),
    /// A price of a `cost` budget that even its full bucket can't pay.
    CostAboveCapacity {
        /// Which price: `budget.retry`, `budget.timeout` or `budget.throttled`.
        field: &'static str,
        /// The price.
        cost: u32,
        /// The bucket's size.
        capacity: u32,
    },
    /// The breaker's failure rate is above 1, which nothing reaches.
    FailureRateAboveOne(Ratio),
    /// The breaker's window has more calls than it may keep.
    TooManyCalls(u32),
    /// The breaker's rate of slow calls is above 1, which nothing reaches.
    SlowCallRateAboveOne(Ratio),
    /// The breaker's open time would shrink from one opening to the next.
    OpenMultiplierBelowOne(Ratio),
    /// More than the breaker's whole open time would be added at random.
    OpenJitterAboveOne(Ratio),
    /// The breaker has no condition on which to open.
    BreakerNeverOpens,
    /// The breaker's open time is longer than what it may grow to.
    OpenCapBelowOpenFor {
        /// `open_cap`.
        cap: Duration,
        /// `open_for`.
        open_for: Duration,
    },
    /// The breaker's window of calls never holds as many as its rates need.
    MinimumCallsAboveWindow {
        /// `minimum_calls`.
        minimum_calls: u32,
        /// The window.
        calls: u32,
    },
}

impl PolicyError {
    /// The field to mend, by the name that code and policy file share.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            PolicyError::NoAttempts => "attempts",
            PolicyError::CapBelowBase { .. } => "cap",
            PolicyError::FloorAboveBase { .. } => "floor",
            PolicyError::MultiplierBelowOne(_) | PolicyError::MultiplierUnused(_) => "multiplier",
            PolicyError::StepsOutOfRange(_) => "steps",
            PolicyError::BaseNotFirstStep { .. } => "base",
            PolicyError::GrowthUnused(_) => "growth",
            PolicyError::FactorBelowOne(_) => "budget.factor",
            PolicyError::JitterAboveOne(_) => "jitter",
            PolicyError::AttemptTimeoutNotBelowDeadline { .. } => "attempt_timeout",
            PolicyError::Zero(field) | PolicyError::TooLong { field, .. } => field,
            PolicyError::NothingToRetryOn => "retry_on",
            PolicyError::FirstWaitBeyondDeadline { .. } | PolicyError::FirstWaitBeyondGiveUp { .. } => "base",
            PolicyError::GiveUpNotBelowDeadline { .. } => "give_up_after",
            PolicyError::MinAttemptTimeTooLong { .. } => "min_attempt_time",
            PolicyError::HedgesNotBelowAttempts { .. } => "hedge.most",
            PolicyError::HedgeQuantileOutOfRange(_) => "hedge.quantile",
            PolicyError::HedgeDelayTooLong { .. } => "hedge.delay",
            PolicyError::ThrottledBaseAboveMaxHint { .. } => "throttled_base",
            PolicyError::ThrottledCapBelowBase { .. } | PolicyError::ThrottledCapAboveMaxHint { .. } => {
                "throttled.cap"
            }
            PolicyError::LimitAboveAttempts { field, .. } => field,
            PolicyError::LimitOnNotRetried(_) => "attempts_on",
            PolicyError::ReplayLimitAboveTotal { .. } => "replay_limit",
            PolicyError::BudgetRatioAboveOne(_) => "ratio",
            PolicyError::MaxTokensOutOfRange(_) => "budget.max_tokens",
            PolicyError::TokenRatioTooFine(_) => "budget.token_ratio",
            PolicyError::CostAboveCapacity { field, .. } => field,
            PolicyError::FailureRateAboveOne(_) => "failure_rate",
            PolicyError::TooManyCalls(_) => "breaker.calls",
            PolicyError::SlowCallRateAboveOne(_) => "breaker.slow_call_rate",
            PolicyError::OpenMultiplierBelowOne(_) => "breaker.open_multiplier",
            PolicyError::OpenJitterAboveOne(_) => "breaker.open_jitter",
            PolicyError::BreakerNeverOpens => "breaker.failure_rate",
            PolicyError::OpenCapBelowOpenFor { .. } => "breaker.open_cap",
            PolicyError::MinimumCallsAboveWindow { .. } => "breaker.minimum_calls",
        }
    }

    /// How to mend it.
    #[must_use]
    pub const fn mend(&self) -> &'static str {
        match self {
            PolicyError::NoAttempts => "1 means: no retry",
            PolicyError::CapBelowBase { .. } => "raise the cap or lower the base",
            PolicyError::FloorAboveBase { .. } => "lower the floor or raise the base",
            PolicyError::MultiplierBelowOne(_) => "1 keeps the wait constant",
            PolicyError::StepsOutOfRange(_) => {
                "list 1 to 16 waits; the last one stands for all further retries"
            }
            PolicyError::BaseNotFirstStep { .. } => "leave base out",
            PolicyError::MultiplierUnused(_) => "leave it out, or let the wait grow exponentially",
            PolicyError::FactorBelowOne(_) => "take 1 or more, such as 2",
            PolicyError::GrowthUnused(_) => "take another jitter, or leave growth out",
            PolicyError::JitterAboveOne(_) => "take a share from 0 to 1",
            PolicyError::AttemptTimeoutNotBelowDeadline { .. } => {
                "lower attempt_timeout, raise deadline, or say that there is no attempt timeout"
            }
            PolicyError::Zero(_) => "give it a value above zero, or say that there is none",
            PolicyError::TooLong { .. } => "say that there is none, or give at most 365 days",
            PolicyError::NothingToRetryOn => "name what to retry on, or set attempts to 1",
            PolicyError::FirstWaitBeyondDeadline { .. } => "lower base or raise deadline",
            PolicyError::GiveUpNotBelowDeadline { .. } => {
                "lower give_up_after, raise deadline, or say that there is no deadline"
            }
            PolicyError::FirstWaitBeyondGiveUp { .. } => "lower base or raise give_up_after",
            PolicyError::MinAttemptTimeTooLong { .. } => "lower min_attempt_time",
            PolicyError::HedgesNotBelowAttempts { .. } => "lower hedge.most or raise attempts",
            PolicyError::HedgeQuantileOutOfRange(_) => "take a share between 0 and 1, such as 0.95",
            PolicyError::HedgeDelayTooLong { .. } => "lower hedge.delay",
            PolicyError::ThrottledBaseAboveMaxHint { .. } => "lower throttled_base or raise max_hint",
            PolicyError::ThrottledCapBelowBase { .. } => "raise throttled.cap or lower its base",
            PolicyError::ThrottledCapAboveMaxHint { .. } => "lower throttled.cap or raise max_hint",
            PolicyError::LimitAboveAttempts { .. } => "lower it or raise attempts",
            PolicyError::LimitOnNotRetried(_) => "leave it out, or add the cause to retry_on",
            PolicyError::ReplayLimitAboveTotal { .. } => "lower replay_limit or raise replay_total",
            PolicyError::BudgetRatioAboveOne(_) => "take a share from 0 to 1, such as 0.1",
            PolicyError::MaxTokensOutOfRange(_) => "take 1 to 1000, as gRPC does",
            PolicyError::TokenRatioTooFine(_) => "round it to three decimal places, as gRPC does",
            PolicyError::CostAboveCapacity { .. } => "lower the price or raise the capacity",
            PolicyError::FailureRateAboveOne(_) => "take a share from 0 to 1, such as 0.5",
            PolicyError::TooManyCalls(_) => "take at most 100000, or a window of time",
            PolicyError::SlowCallRateAboveOne(_) => "take a share from 0 to 1, such as 0.8",
            PolicyError::OpenMultiplierBelowOne(_) => "1 keeps the open time constant",
            PolicyError::OpenJitterAboveOne(_) => "take a share from 0 to 1",
            PolicyError::BreakerNeverOpens => "name a failure rate, slow calls or consecutive failures",
            PolicyError::OpenCapBelowOpenFor { .. } => "raise open_cap or lower open_for",
            PolicyError::MinimumCallsAboveWindow { .. } => "lower minimum_calls or raise the window",
        }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::NoAttempts => f.write_str("attempts is 0, and it counts the first one"),
            PolicyError::CapBelowBase { cap, base } => write!(f, "cap {cap:?} is below base {base:?}"),
            PolicyError::FloorAboveBase { floor, base } => {
                write!(f, "floor {floor:?} is above base {base:?}")
            }
            PolicyError::MultiplierBelowOne(m) => write!(f, "multiplier {m} is below 1"),
            PolicyError::JitterAboveOne(x) => write!(f, "jitter {x} is above 1"),
            PolicyError::AttemptTimeoutNotBelowDeadline { attempt_timeout, deadline } => {
                write!(f, "attempt_timeout {attempt_timeout:?} is not below deadline {deadline:?}")
            }
            PolicyError::Zero(field) => write!(f, "{field} is zero"),
            PolicyError::TooLong { field, value } => write!(f, "{field} {value:?} is over 365 days"),
            PolicyError::NothingToRetryOn => f.write_str("attempts is above 1, and retry_on is empty"),
            PolicyError::FirstWaitBeyondDeadline { base, deadline } => {
                write!(f, "the first wait of {base:?} does not fit before the deadline of {deadline:?}")
            }
            PolicyError::GiveUpNotBelowDeadline { give_up_after, deadline } => {
                write!(f, "give_up_after {give_up_after:?} is not below deadline {deadline:?}")
            }
            PolicyError::FirstWaitBeyondGiveUp { base, give_up_after } => {
                write!(f, "the first wait of {base:?} does not fit into give_up_after {give_up_after:?}")
            }
            PolicyError::MinAttemptTimeTooLong { min_attempt_time, bound } => {
                write!(f, "min_attempt_time {min_attempt_time:?} does not fit into {bound:?}")
            }
            PolicyError::ThrottledBaseAboveMaxHint { throttled_base, max_hint } => {
                write!(f, "throttled_base {throttled_base:?} is above max_hint {max_hint:?}")
            }
            PolicyError::ThrottledCapBelowBase { cap, base } => {
                write!(f, "throttled.cap {cap:?} is below throttled_base {base:?}")
            }
            PolicyError::ThrottledCapAboveMaxHint { cap, max_hint } => {
                write!(f, "throttled.cap {cap:?} is above max_hint {max_hint:?}")
            }
            PolicyError::LimitAboveAttempts { field, limit, attempts } => {
                write!(f, "{field} {limit} is above attempts {attempts}")
            }
            PolicyError::LimitOnNotRetried(cause) => {
                write!(f, "attempts_on limits {cause}, which retry_on does not list")
            }
            PolicyError::ReplayLimitAboveTotal { limit, total } => {
                write!(
                    f,
                    "replay_limit of {limit} bytes for one call is above replay_total of {total} bytes for all of them"
                )
            }
            _ => self.of_handles(f),
        }?;
        write!(f, ": {}", self.mend())
    }
}

impl PolicyError {
    /// What is wrong with a budget, a breaker or hedges, in words.
    fn of_handles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::HedgesNotBelowAttempts { hedges, attempts } => {
                write!(f, "{hedges} hedges do not fit into {attempts} attempts, the first included")
            }
            PolicyError::HedgeQuantileOutOfRange(quantile) => {
                write!(f, "the hedge's quantile {quantile} is not between 0 and 1")
            }
            PolicyError::HedgeDelayTooLong { delay, bound } => {
                write!(f, "a hedge after {delay:?} does not come within {bound:?}")
            }
            PolicyError::BudgetRatioAboveOne(ratio) => write!(f, "budget ratio {ratio} is above 1"),
            PolicyError::MaxTokensOutOfRange(tokens) => {
                write!(
                    f,
                    "budget.max_tokens {tokens} is not from 1 to {}",
                    super::ThrottleConfig::MOST_TOKENS
                )
            }
            PolicyError::TokenRatioTooFine(ratio) => {
                write!(f, "budget.token_ratio {ratio} has more than three decimal places")
            }
            PolicyError::CostAboveCapacity { field, cost, capacity } => {
                write!(
                    f,
                    "{field} {cost} is above the capacity of {capacity}, so no such retry could ever be paid"
                )
            }
            PolicyError::FailureRateAboveOne(rate) => write!(f, "failure rate {rate} is above 1"),
            PolicyError::TooManyCalls(calls) => write!(f, "a window of {calls} calls is above 100000"),
            PolicyError::SlowCallRateAboveOne(rate) => write!(f, "slow_call_rate {rate} is above 1"),
            PolicyError::OpenMultiplierBelowOne(m) => write!(f, "open_multiplier {m} is below 1"),
            PolicyError::OpenJitterAboveOne(x) => write!(f, "open_jitter {x} is above 1"),
            PolicyError::BreakerNeverOpens => f.write_str("the breaker has nothing to open on"),
            PolicyError::OpenCapBelowOpenFor { cap, open_for } => {
                write!(f, "open_cap {cap:?} is below open_for {open_for:?}")
            }
            PolicyError::MinimumCallsAboveWindow { minimum_calls, calls } => {
                write!(f, "minimum_calls {minimum_calls} is above the window of {calls} calls")
            }
            _ => self.of_growth(f),
        }
    }
}

impl PolicyError {
    /// What is wrong with the curve, in words.
    fn of_growth(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::StepsOutOfRange(given) => write!(f, "steps has {given} waits"),
            PolicyError::BaseNotFirstStep { base, first } => {
                write!(f, "base {base:?} is not the first of steps, {first:?}")
            }
            PolicyError::FactorBelowOne(factor) => write!(f, "budget.factor {factor} is below 1"),
            PolicyError::MultiplierUnused(m) => write!(f, "multiplier {m} has no effect on this growth"),
            PolicyError::GrowthUnused(name) => {
                write!(f, "a decorrelated wait grows from the last one, so growth {name} has no effect")
            }
            // All others have their words above.
            _ => write!(f, "{} contradicts the rest", self.field()),
        }
    }
}

impl core::error::Error for PolicyError {}
