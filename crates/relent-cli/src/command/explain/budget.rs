//! The budget's part of the report: what it is, by its kind, and how many retries it affords in an outage.

use std::time::Duration;

use relent_core::{
    Budget, BudgetConfig, CostConfig, Deposit, Instant, Policy, Ratio, ThrottleBudget, ThrottleConfig,
    defaults,
};
use serde::Serialize;

use super::report::{ms, number};
use crate::render::{length, percent};

/// The budget, by its kind.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum BudgetFacts {
    Ratio {
        #[serde(serialize_with = "number")]
        ratio: Ratio,
        #[serde(rename = "window_ms", serialize_with = "ms")]
        window: Duration,
        deposit: &'static str,
        reserve: u32,
        #[serde(serialize_with = "number")]
        reserve_per_second: Ratio,
    },
    Windowed {
        #[serde(serialize_with = "number")]
        ratio: Ratio,
        min_per_second: u32,
        #[serde(rename = "ttl_ms", serialize_with = "ms")]
        ttl: Duration,
    },
    Throttle {
        max_tokens: u32,
        #[serde(serialize_with = "number")]
        token_ratio: Ratio,
    },
    Concurrency {
        #[serde(serialize_with = "number")]
        ratio: Ratio,
        minimum: u32,
    },
    Adaptive {
        #[serde(serialize_with = "number")]
        factor: Ratio,
        #[serde(rename = "window_ms", serialize_with = "ms")]
        window: Duration,
    },
    Cost {
        capacity: u32,
        retry: u32,
        timeout: u32,
        throttled: u32,
        first_try: u32,
    },
}

impl BudgetFacts {
    /// `None` without a budget, or for a kind that is not known here.
    pub(super) fn of(policy: &Policy) -> Option<BudgetFacts> {
        Some(match *policy.budget()? {
            BudgetConfig::Ratio(budget) => BudgetFacts::Ratio {
                ratio: budget.ratio,
                window: budget.window,
                deposit: match budget.deposit {
                    Deposit::Success => "success",
                    Deposit::Request => "request",
                },
                reserve: budget.reserve_for(policy.attempts()),
                reserve_per_second: budget.reserve_per_second,
            },
            BudgetConfig::Windowed(budget) => BudgetFacts::Windowed {
                ratio: budget.ratio,
                min_per_second: budget.min_per_second,
                ttl: budget.ttl,
            },
            BudgetConfig::Throttle(ThrottleConfig { max_tokens, token_ratio }) => {
                BudgetFacts::Throttle { max_tokens, token_ratio }
            }
            BudgetConfig::Concurrency(budget) => {
                BudgetFacts::Concurrency { ratio: budget.ratio, minimum: budget.minimum }
            }
            BudgetConfig::Adaptive(budget) => {
                BudgetFacts::Adaptive { factor: budget.factor, window: budget.window }
            }
            BudgetConfig::Cost(CostConfig { capacity, retry, timeout, throttled, first_try }) => {
                BudgetFacts::Cost { capacity, retry, timeout, throttled, first_try }
            }
            _ => return None,
        })
    }

    /// What it says, in sentences.
    pub(super) fn lines(&self) -> Vec<String> {
        match *self {
            BudgetFacts::Ratio { ratio, window, deposit, reserve, reserve_per_second } => {
                let calls = if deposit == "success" { "calls that succeeded" } else { "calls that were made" };
                vec![
                    format!(
                        "  Share: retries up to {} of the {calls} in the last {}.",
                        percent(share(ratio)),
                        length(window)
                    ),
                    format!(
                        "  Reserve: {reserve} more for when the share is empty, full at the start; a successful call puts one back, at most \
                         {reserve_per_second} a second."
                    ),
                ]
            }
            BudgetFacts::Windowed { ratio, min_per_second, ttl } => vec![
                format!(
                    "  Retries up to {} of the calls that were made in the last {}, and {min_per_second} a second more;",
                    percent(share(ratio)),
                    length(ttl)
                ),
                format!("  those of {} may come at once. Finagle, Linkerd and tower have it so.", length(ttl)),
            ],
            BudgetFacts::Throttle { max_tokens, token_ratio } => vec![
                format!("  A bucket of {max_tokens}: each failure that is retried takes 1, each success puts back {token_ratio};"),
                "  retries only while more than half of it is left. gRPC has it so.".into(),
            ],
            BudgetFacts::Concurrency { ratio, minimum } => vec![
                format!(
                    "  Retries that wait or run: up to {} of the calls in flight, and {minimum} in any case.",
                    percent(share(ratio))
                ),
                "  It bounds retries at once, not per second: where attempts fail fast, many follow one another.".into(),
            ],
            BudgetFacts::Adaptive { factor, window } => vec![
                format!("  Of the last {}: up to {factor} requests for each that was accepted; beyond that the", length(window)),
                "  larger part of the retries is refused, the more the fewer are accepted. Google's SRE book has it so.".into(),
            ],
            BudgetFacts::Cost { capacity, retry, timeout, throttled, first_try } => vec![
                format!(
                    "  A bucket of {capacity}: a retry costs {retry}, {timeout} after a timeout, {throttled} after a throttling answer;"
                ),
                format!(
                    "  a retry that succeeds gets its price back, a first try that succeeds puts in {first_try}. The AWS SDKs have it so."
                ),
            ],
        }
    }
}

pub(super) fn share(ratio: Ratio) -> f64 {
    f64::from(ratio.parts_per_million()) / 1e6
}

/// How a budget bounds the retries of an outage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// Nothing does but the attempts.
    Nothing,
    /// So many at once, and so no number per call or second.
    Concurrency,
    /// By tokens.
    Tokens(Tokens),
}

/// What a budget by tokens affords.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tokens {
    /// Retries per call that calls pay for as long as they succeed in the end.
    pub(super) sustained: f64,
    /// Of these, retries per call that go on in an outage.
    pub(super) per_call: f64,
    /// Retries a second that go on in an outage, whatever the number of calls.
    pub(super) per_second: f64,
    /// The share of the calls of one window that is saved up when an outage begins.
    pub(super) saved: f64,
    /// Retries that are there besides.
    pub(super) reserve: u32,
    /// The time over which it counts, or that is looked at where it does not count over a time.
    pub(super) window: Duration,
}

impl Bound {
    pub(super) fn of(policy: &Policy) -> Bound {
        let bucket = |sustained, reserve| Tokens {
            sustained,
            per_call: 0.0,
            per_second: 0.0,
            saved: 0.0,
            reserve,
            window: defaults::BUDGET_WINDOW,
        };
        let Some(budget) = policy.budget() else { return Bound::Nothing };
        Bound::Tokens(match budget {
            BudgetConfig::Ratio(budget) => Tokens {
                sustained: share(budget.ratio),
                per_call: if budget.deposit == Deposit::Request { share(budget.ratio) } else { 0.0 },
                per_second: 0.0,
                saved: share(budget.ratio),
                reserve: budget.reserve_for(policy.attempts()),
                window: budget.window,
            },
            BudgetConfig::Windowed(budget) => {
                let reserve = f64::from(budget.min_per_second) * budget.ttl.as_secs_f64();
                Tokens {
                    sustained: share(budget.ratio),
                    per_call: share(budget.ratio),
                    per_second: f64::from(budget.min_per_second),
                    saved: share(budget.ratio),
                    // As far as a u32 goes: more than any fleet asks for.
                    reserve: reserve as u32,
                    window: budget.ttl,
                }
            }
            BudgetConfig::Throttle(budget) => {
                let full = ThrottleBudget::new(budget).balance(Instant::ZERO);
                bucket(share(budget.token_ratio), u32::try_from(full).unwrap_or(u32::MAX))
            }
            // What was accepted in the last window lets so many requests more be made before any is refused.
            BudgetConfig::Adaptive(budget) => {
                let more = share(budget.factor) - 1.0;
                let window = budget.window;
                Tokens { sustained: more, per_call: 0.0, per_second: 0.0, saved: more, reserve: 1, window }
            }
            // Each call may pay for one retry that succeeds, since that one costs nothing in the end.
            BudgetConfig::Cost(budget) => bucket(1.0, budget.capacity / budget.retry.max(1)),
            _ => return Bound::Concurrency,
        })
    }
}
