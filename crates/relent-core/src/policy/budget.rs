//! Which budget pays for a policy's retries: plain values, one for each kind, and the peers' own numbers by name.

use core::time::Duration;

use super::PolicyError;
use crate::{Ratio, defaults};

/// The description of a budget: one of six kinds. Each configuration converts into it.
///
/// *Default*: [`RatioConfig::new`] of 0.1.
///
/// ```
/// use relent_core::{BudgetConfig, Policy, ThrottleConfig};
///
/// let policy = Policy::builder().budget(ThrottleConfig::GRPC).build()?;
/// assert_eq!(policy.budget(), Some(&BudgetConfig::Throttle(ThrottleConfig::GRPC)));
/// assert_eq!(BudgetConfig::preset("grpc"), policy.budget().copied());
/// # Ok::<(), relent_core::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetConfig {
    /// A share of successful calls, and a small reserve: the default.
    Ratio(RatioConfig),
    /// A share of calls over a window, and some per second (Finagle, Linkerd, tower).
    Windowed(WindowedConfig),
    /// A bucket that failures drain, and that must be over half full (gRPC).
    Throttle(ThrottleConfig),
    /// A share of the calls in flight (Envoy).
    Concurrency(ConcurrencyConfig),
    /// A bucket, and a price for each class of retry (AWS).
    Cost(CostConfig),
    /// What the target accepts decides how many retries are refused (Google SRE, gax).
    Adaptive(AdaptiveConfig),
}

impl BudgetConfig {
    /// The peers' budgets with the numbers that they have without configuration, by the name that code and policy file share.
    pub const PRESETS: [(&'static str, BudgetConfig); 6] = [
        ("finagle", BudgetConfig::Windowed(WindowedConfig::FINAGLE)),
        ("linkerd", BudgetConfig::Windowed(WindowedConfig::LINKERD)),
        ("grpc", BudgetConfig::Throttle(ThrottleConfig::GRPC)),
        ("envoy", BudgetConfig::Concurrency(ConcurrencyConfig::ENVOY)),
        ("aws-standard", BudgetConfig::Cost(CostConfig::AWS_STANDARD)),
        ("aws-2026", BudgetConfig::Cost(CostConfig::AWS_2026)),
    ];

    /// The preset of that name; `None` if there is none (see [`PRESETS`](BudgetConfig::PRESETS)).
    #[must_use]
    pub fn preset(name: &str) -> Option<BudgetConfig> {
        BudgetConfig::PRESETS.iter().find(|(known, _)| *known == name).map(|(_, config)| *config)
    }

    /// What this kind is called in files, reports and metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            BudgetConfig::Ratio(_) => "ratio",
            BudgetConfig::Windowed(_) => "windowed",
            BudgetConfig::Throttle(_) => "throttle",
            BudgetConfig::Concurrency(_) => "concurrency",
            BudgetConfig::Cost(_) => "cost",
            BudgetConfig::Adaptive(_) => "adaptive",
        }
    }

    /// The `ratio` budget, if it is one.
    #[must_use]
    pub const fn as_ratio(&self) -> Option<&RatioConfig> {
        match self {
            BudgetConfig::Ratio(config) => Some(config),
            _ => None,
        }
    }
}

impl Default for BudgetConfig {
    fn default() -> BudgetConfig {
        BudgetConfig::Ratio(RatioConfig::new(defaults::BUDGET_RATIO))
    }
}

impl BudgetConfig {
    /// Its length of time and that field's name, or zero.
    pub(super) fn length(&self) -> (&'static str, Duration) {
        match self {
            BudgetConfig::Ratio(config) => ("budget.window", config.window),
            BudgetConfig::Windowed(config) => ("budget.ttl", config.ttl),
            BudgetConfig::Adaptive(config) => ("budget.window", config.window),
            _ => ("budget.window", Duration::ZERO),
        }
    }

    /// What contradicts what in it. That its length is not too long is seen with all other lengths.
    pub(super) fn check(&self) -> Result<(), PolicyError> {
        match self {
            BudgetConfig::Ratio(config) => {
                above_zero("budget.window", !config.window.is_zero())?;
                share(config.ratio)
            }
            BudgetConfig::Windowed(config) => above_zero("budget.ttl", !config.ttl.is_zero()),
            BudgetConfig::Throttle(config) => config.check(),
            BudgetConfig::Concurrency(config) => share(config.ratio),
            BudgetConfig::Cost(config) => config.check(),
            BudgetConfig::Adaptive(config) => {
                above_zero("budget.window", !config.window.is_zero())?;
                let below = config.factor < Ratio::ONE;
                if below { Err(PolicyError::FactorBelowOne(config.factor)) } else { Ok(()) }
            }
        }
    }
}

impl ThrottleConfig {
    fn check(&self) -> Result<(), PolicyError> {
        if !(1..=ThrottleConfig::MOST_TOKENS).contains(&self.max_tokens) {
            return Err(PolicyError::MaxTokensOutOfRange(self.max_tokens));
        }
        above_zero("budget.token_ratio", self.token_ratio > Ratio::ZERO)?;
        if !self.token_ratio.parts_per_million().is_multiple_of(1000) {
            return Err(PolicyError::TokenRatioTooFine(self.token_ratio));
        }
        Ok(())
    }
}

impl CostConfig {
    fn check(&self) -> Result<(), PolicyError> {
        let (capacity, first_try) = (self.capacity, self.first_try);
        above_zero("budget.capacity", capacity > 0)?;
        above_zero("budget.first_try", first_try > 0)?;
        for (field, cost) in [
            ("budget.retry", self.retry),
            ("budget.timeout", self.timeout),
            ("budget.throttled", self.throttled),
        ] {
            above_zero(field, cost > 0)?;
            if cost > capacity {
                return Err(PolicyError::CostAboveCapacity { field, cost, capacity });
            }
        }
        Ok(())
    }
}

fn above_zero(field: &'static str, yes: bool) -> Result<(), PolicyError> {
    if yes { Ok(()) } else { Err(PolicyError::Zero(field)) }
}

fn share(ratio: Ratio) -> Result<(), PolicyError> {
    if ratio > Ratio::ONE { Err(PolicyError::BudgetRatioAboveOne(ratio)) } else { Ok(()) }
}

/// The `ratio` budget: retries as a share of successful calls, and a small reserve for callers of few calls.
///
/// *Defaults*: ratio 0.1 over 10 s, deposits on success, reserve max(3, attempts − 1) refilled at up to 0.1/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RatioConfig {
    /// Retries per successful call over the window; at most 1.
    pub ratio: Ratio,
    /// The sliding window.
    pub window: Duration,
    /// When a call deposits its share.
    pub deposit: Deposit,
    /// Tokens for when the share is empty; full at the start. `None`: max(3, attempts − 1).
    pub reserve: Option<u32>,
    /// How many tokens a second successful calls may put back into the reserve.
    pub reserve_per_second: Ratio,
}

impl RatioConfig {
    /// This ratio, and the defaults for the rest.
    #[must_use]
    pub const fn new(ratio: Ratio) -> RatioConfig {
        RatioConfig {
            ratio,
            window: defaults::BUDGET_WINDOW,
            deposit: Deposit::Success,
            reserve: None,
            reserve_per_second: defaults::RESERVE_PER_SECOND,
        }
    }

    /// The reserve for calls of so many attempts.
    #[must_use]
    pub const fn reserve_for(&self, attempts: u32) -> u32 {
        match self.reserve {
            Some(reserve) => reserve,
            None if attempts.saturating_sub(1) > defaults::BUDGET_RESERVE => attempts - 1,
            None => defaults::BUDGET_RESERVE,
        }
    }
}

/// When a call deposits its share into a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deposit {
    /// Once it succeeded, however many attempts that took: in a total outage the load falls to that of no retries.
    Success,
    /// When it starts (Finagle): in a total outage the load stays at 1 + ratio, which can hold a system down.
    Request,
}

/// The `windowed` budget: retries ≤ ratio × calls of the last `ttl`, and `min_per_second` × `ttl` more in any such time.
///
/// As Finagle's `RetryBudget`, Linkerd's `retryBudget` and tower's `TpsBudget` have it, each call deposits when it starts;
/// unlike theirs the ratio is exact (tower takes 1/⌊1/ratio⌋, and so grants every call a retry at 0.6). In a total outage
/// the load stays at 1 + ratio and more: [`RatioConfig`] falls to 1.
///
/// *Defaults*: Finagle's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedConfig {
    /// Retries per call. Over 1 it says that calls may be retried more than once.
    pub ratio: Ratio,
    /// Retries a second that are granted whatever the number of calls; those of a whole `ttl` may come at once.
    pub min_per_second: u32,
    /// How long a deposit and a withdrawal count.
    pub ttl: Duration,
}

impl WindowedConfig {
    /// Finagle's: 20 % of the calls of 10 s, and 10 a second.
    pub const FINAGLE: WindowedConfig =
        WindowedConfig { ratio: Ratio::percent(20), min_per_second: 10, ttl: Duration::from_secs(10) };
    /// Linkerd's, of a service profile that says nothing: 20 % of the calls of 10 s, and 10 a second.
    pub const LINKERD: WindowedConfig = WindowedConfig::FINAGLE;

    /// This ratio, and Finagle's numbers for the rest.
    #[must_use]
    pub const fn new(ratio: Ratio) -> WindowedConfig {
        WindowedConfig { ratio, ..WindowedConfig::FINAGLE }
    }
}

impl Default for WindowedConfig {
    fn default() -> WindowedConfig {
        WindowedConfig::FINAGLE
    }
}

/// The `throttle` budget of gRPC (gRFC A6): a bucket that starts full; each retryable failure takes a token, whether it is
/// retried or not, each success puts back `token_ratio`; retries are granted while more than half of it is left.
///
/// *Defaults*: those of A6's example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleConfig {
    /// The bucket's size: 1 to 1000.
    pub max_tokens: u32,
    /// What a success puts back: above 0, with at most three decimal places.
    pub token_ratio: Ratio,
}

impl ThrottleConfig {
    /// The numbers of A6's example: 10 tokens, 0.1 for a success. Without a service config gRPC does not throttle at all.
    pub const GRPC: ThrottleConfig = ThrottleConfig { max_tokens: 10, token_ratio: Ratio::percent(10) };
    /// The largest `max_tokens` (gRFC A6).
    pub const MOST_TOKENS: u32 = 1000;
}

impl Default for ThrottleConfig {
    fn default() -> ThrottleConfig {
        ThrottleConfig::GRPC
    }
}

/// The `concurrency` budget of Envoy: at any moment, retries ≤ max(minimum, ⌊ratio × calls in flight⌋).
///
/// A retry counts from the decision to the end of its attempt, its wait included. A call is in flight from its start to its
/// end, also while it waits, so that the bound does not shrink in an outage.
///
/// *Defaults*: Envoy's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencyConfig {
    /// The share of calls in flight that may be in a retry; at most 1.
    pub ratio: Ratio,
    /// Retries that are granted however few calls are in flight.
    pub minimum: u32,
}

impl ConcurrencyConfig {
    /// Envoy's `retry_budget`: 20 % of the calls in flight, and never fewer than 3.
    pub const ENVOY: ConcurrencyConfig = ConcurrencyConfig { ratio: Ratio::percent(20), minimum: 3 };

    /// This share, and Envoy's minimum.
    #[must_use]
    pub const fn new(ratio: Ratio) -> ConcurrencyConfig {
        ConcurrencyConfig { ratio, ..ConcurrencyConfig::ENVOY }
    }
}

impl Default for ConcurrencyConfig {
    fn default() -> ConcurrencyConfig {
        ConcurrencyConfig::ENVOY
    }
}

/// The `cost` budget of the AWS SDKs: a bucket that starts full, and a price for each class of retry. A call that succeeds
/// after a retry gets the price of its last retry back, one that succeeds at its first try puts in `first_try`.
///
/// *Defaults*: those of the standard retry mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostConfig {
    /// The bucket's size; no price may be above it.
    pub capacity: u32,
    /// The price of a retry after a transient failure; above 0.
    pub retry: u32,
    /// The price of a retry after a timeout; above 0.
    pub timeout: u32,
    /// The price of a retry after a throttling answer; above 0.
    pub throttled: u32,
    /// What a call that succeeds at its first try puts in; above 0, or an empty bucket might stay empty.
    pub first_try: u32,
}

impl CostConfig {
    /// The standard retry mode of the AWS SDKs: 500 tokens; 5 for a retry, 10 after a timeout; 1 back for a first try.
    pub const AWS_STANDARD: CostConfig =
        CostConfig { capacity: 500, retry: 5, timeout: 10, throttled: 5, first_try: 1 };
    /// The standard mode as of 2026 (`AWS_NEW_RETRIES_2026`): 14 for any transient failure, timeouts no longer apart, and 5
    /// after throttling.
    pub const AWS_2026: CostConfig =
        CostConfig { capacity: 500, retry: 14, timeout: 14, throttled: 5, first_try: 1 };
}

impl Default for CostConfig {
    fn default() -> CostConfig {
        CostConfig::AWS_STANDARD
    }
}

/// The `adaptive` budget: of the retries that are asked for, the share max(0, (requests − factor × accepted) / (requests + 1))
/// is refused, as Google's SRE book has it for clients, and gax for Rust for retries.
///
/// While the target accepts one request of `factor` or more, none is refused; in a total outage nearly all are, once a
/// window's worth of successes is forgotten. First tries always go. The less the factor, the sooner it refuses.
///
/// *Defaults*: factor 2, window two minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveConfig {
    /// How many requests there may be for one that is accepted: at least 1.
    pub factor: Ratio,
    /// How long a request counts.
    pub window: Duration,
}

impl AdaptiveConfig {
    /// The SRE book's numbers: twice what is accepted, over two minutes.
    pub const SRE: AdaptiveConfig =
        AdaptiveConfig { factor: Ratio::of(2, 1), window: Duration::from_secs(120) };
}

impl Default for AdaptiveConfig {
    fn default() -> AdaptiveConfig {
        AdaptiveConfig::SRE
    }
}

impl From<AdaptiveConfig> for BudgetConfig {
    fn from(config: AdaptiveConfig) -> BudgetConfig {
        BudgetConfig::Adaptive(config)
    }
}

impl From<RatioConfig> for BudgetConfig {
    fn from(config: RatioConfig) -> BudgetConfig {
        BudgetConfig::Ratio(config)
    }
}

impl From<WindowedConfig> for BudgetConfig {
    fn from(config: WindowedConfig) -> BudgetConfig {
        BudgetConfig::Windowed(config)
    }
}

impl From<ThrottleConfig> for BudgetConfig {
    fn from(config: ThrottleConfig) -> BudgetConfig {
        BudgetConfig::Throttle(config)
    }
}

impl From<ConcurrencyConfig> for BudgetConfig {
    fn from(config: ConcurrencyConfig) -> BudgetConfig {
        BudgetConfig::Concurrency(config)
    }
}

impl From<CostConfig> for BudgetConfig {
    fn from(config: CostConfig) -> BudgetConfig {
        BudgetConfig::Cost(config)
    }
}
