//! All figures of one policy, as facts; `text` says them to people, JSON is their serialized form.

use std::time::Duration;

use relent_core::{
    BreakerConfig, BreakerWindow, Cause, Growth, Jitter, Nested, Policy, Ratio, RepeatRule, RetriesOnlyConfig,
};
use serde::{Serialize, Serializer};

use super::advice;
use super::budget::BudgetFacts;
use super::laws::Waits;
use super::load::{Fleet, LoadFactor};
use super::matrix::Matrix;
use super::totals::{Ending, Outlook, Sum, attempts_granted, outlook, sum};
use crate::render::length;

/// Attempts that are listed one by one, at most.
pub(super) const ROWS: u32 = 1000;

/// What `explain` knows of a policy.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) policy: Facts,
    pub(super) attempts: Vec<Row>,
    /// All waits of a call together.
    pub(super) waits: Sum,
    pub(super) total: Total,
    pub(super) load_factor: LoadFactor,
    pub(super) retried: Matrix,
    pub(super) budget: Option<BudgetFacts>,
    pub(super) breaker: Option<BreakerFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fleet: Option<Fleet>,
    pub(super) warnings: Vec<String>,
}

/// How the wait grows.
#[derive(Debug, Serialize)]
pub(super) struct Growing {
    pub(super) law: &'static str,
    /// The waits that are listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<String>,
}

impl Growing {
    fn of(growth: Growth) -> Growing {
        let steps = match growth {
            Growth::Steps(steps) => steps.iter().map(length).collect(),
            _ => Vec::new(),
        };
        Growing { law: growth.name(), steps }
    }
}

/// The policy itself.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    /// Where it comes from, in words.
    pub(super) source: String,
    pub(super) attempts: u32,
    #[serde(rename = "base_ms", serialize_with = "ms")]
    pub(super) base: Duration,
    #[serde(rename = "cap_ms", serialize_with = "ms")]
    pub(super) cap: Duration,
    pub(super) growth: Growing,
    #[serde(serialize_with = "number")]
    pub(super) multiplier: Ratio,
    pub(super) jitter: String,
    #[serde(rename = "floor_ms", serialize_with = "ms")]
    pub(super) floor: Duration,
    #[serde(rename = "attempt_timeout_ms", serialize_with = "maybe_ms")]
    pub(super) attempt_timeout: Option<Duration>,
    #[serde(rename = "deadline_ms", serialize_with = "maybe_ms")]
    pub(super) deadline: Option<Duration>,
    #[serde(rename = "give_up_after_ms", serialize_with = "maybe_ms")]
    pub(super) give_up_after: Option<Duration>,
    pub(super) repeat: &'static str,
    pub(super) retry_on: Vec<String>,
    pub(super) nested: &'static str,
}

/// One attempt, and the wait before it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Row {
    pub(super) attempt: u32,
    /// By the curve, before jitter.
    #[serde(rename = "wait_ms", serialize_with = "ms")]
    pub(super) wait: Duration,
    #[serde(rename = "wait_min_ms", serialize_with = "ms")]
    pub(super) min: Duration,
    #[serde(rename = "wait_max_ms", serialize_with = "ms")]
    pub(super) max: Duration,
    #[serde(rename = "wait_mean_ms", serialize_with = "ms")]
    pub(super) mean: Duration,
    /// How probably the wait is the cap.
    pub(super) probability_at_cap: f64,
    /// When it starts, if waits follow the curve and attempts fail at once.
    #[serde(rename = "starts_ms", serialize_with = "ms")]
    pub(super) starts: Duration,
    /// Whether that is in time for the deadline.
    pub(super) within_deadline: bool,
    /// Whether all further rows would have the same waits.
    #[serde(skip)]
    pub(super) steady: bool,
}

/// The time of a whole call whose every attempt fails.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Total {
    pub(super) fails_at_once: Outlook,
    /// `None` without an attempt timeout: such a call has no end, or the deadline's.
    pub(super) times_out: Option<Outlook>,
}

/// The breaker.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum BreakerFacts {
    RetriesOnly {
        #[serde(serialize_with = "number")]
        failure_rate: Ratio,
        #[serde(rename = "window_ms", serialize_with = "ms")]
        window: Duration,
        minimum_calls: u32,
    },
    Classic {
        #[serde(serialize_with = "maybe_number")]
        failure_rate: Option<Ratio>,
        #[serde(rename = "slow_call_ms", serialize_with = "maybe_ms")]
        slow_call: Option<Duration>,
        #[serde(serialize_with = "number")]
        slow_call_rate: Ratio,
        consecutive_failures: Option<u32>,
        /// Of time, or else of calls.
        #[serde(rename = "window_ms", serialize_with = "maybe_ms")]
        window: Option<Duration>,
        calls: Option<u32>,
        minimum_calls: u32,
        #[serde(rename = "open_for_ms", serialize_with = "ms")]
        open_for: Duration,
        #[serde(rename = "open_cap_ms", serialize_with = "ms")]
        open_cap: Duration,
        probes: u32,
    },
}

fn maybe_number<S: Serializer>(ratio: &Option<Ratio>, to: S) -> Result<S::Ok, S::Error> {
    match ratio {
        Some(ratio) => number(ratio, to),
        None => to.serialize_none(),
    }
}

impl Report {
    /// Works it all out. `fleet`: processes, and calls per second of each.
    pub(super) fn of(policy: &Policy, source: String, fleet: Option<(u32, f64)>) -> Report {
        let granted = attempts_granted(policy, Ending::AtOnce);
        Report {
            policy: Facts::of(policy, source),
            attempts: rows(policy),
            waits: sum(policy, granted),
            total: Total {
                fails_at_once: outlook(policy, Ending::AtOnce),
                times_out: policy.attempt_timeout().map(|timeout| outlook(policy, Ending::TimedOut(timeout))),
            },
            load_factor: LoadFactor::of(policy),
            retried: Matrix::of(policy),
            budget: BudgetFacts::of(policy),
            breaker: policy.breaker().and_then(BreakerFacts::of),
            fleet: fleet.and_then(|(processes, rps)| Fleet::of(policy, processes, rps)),
            warnings: advice::warnings(policy),
        }
    }
}

impl Facts {
    fn of(policy: &Policy, source: String) -> Facts {
        let backoff = policy.backoff();
        let on = policy.retry_on();
        let kinds = [(Cause::Connect, "connect"), (Cause::Reset, "reset"), (Cause::Timeout, "timeout")];
        let kinds =
            kinds.into_iter().filter(|(cause, _)| on.contains(*cause)).map(|(_, name)| name.to_owned());
        Facts {
            source,
            attempts: policy.attempts(),
            base: backoff.base(),
            cap: backoff.cap(),
            growth: Growing::of(*backoff.growth()),
            multiplier: backoff.multiplier(),
            jitter: jitter_name(backoff.jitter()),
            floor: backoff.floor(),
            attempt_timeout: policy.attempt_timeout(),
            deadline: policy.deadline(),
            give_up_after: policy.give_up_after(),
            repeat: repeat_name(policy.repeat()),
            retry_on: kinds.chain(on.statuses().map(|code| code.to_string())).collect(),
            nested: nested_name(policy.nested()),
        }
    }
}

impl BreakerFacts {
    /// `None`: a kind that is not known here.
    fn of(breaker: &BreakerConfig) -> Option<BreakerFacts> {
        match *breaker {
            BreakerConfig::RetriesOnly(RetriesOnlyConfig { failure_rate, window, minimum_calls }) => {
                Some(BreakerFacts::RetriesOnly { failure_rate, window, minimum_calls })
            }
            BreakerConfig::Classic(config) => Some(BreakerFacts::Classic {
                failure_rate: config.failure_rate,
                slow_call: config.slow_call,
                slow_call_rate: config.slow_call_rate,
                consecutive_failures: config.consecutive_failures,
                window: if let BreakerWindow::Time(length) = config.window { Some(length) } else { None },
                calls: if let BreakerWindow::Calls(calls) = config.window { Some(calls) } else { None },
                minimum_calls: config.minimum_calls,
                open_for: config.open_for,
                open_cap: config.open_cap,
                probes: config.probes,
            }),
            _ => None,
        }
    }
}

fn rows(policy: &Policy) -> Vec<Row> {
    let in_time = |starts: Duration| match policy.deadline() {
        Some(deadline) => starts.saturating_add(policy.min_attempt_time()) < deadline,
        None => true,
    };
    let none = Duration::ZERO;
    let first = Row {
        attempt: 1,
        wait: none,
        min: none,
        max: none,
        mean: none,
        probability_at_cap: 0.0,
        starts: none,
        within_deadline: true,
        steady: false,
    };
    let mut rows = vec![first];
    let mut waits = Waits::new(policy.backoff());
    let mut starts = Duration::ZERO;
    for attempt in 2..=policy.attempts().min(ROWS) {
        let Some(wait) = waits.next() else { break };
        starts = starts.saturating_add(wait.unjittered);
        rows.push(Row {
            attempt,
            wait: wait.unjittered,
            min: wait.min,
            max: wait.max,
            mean: Duration::from_nanos(wait.mean.round() as u64),
            probability_at_cap: wait.at_cap,
            starts,
            within_deadline: in_time(starts),
            steady: waits.is_steady(),
        });
    }
    rows
}

/// As a flag has it.
fn jitter_name(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => "none".into(),
        Jitter::Full => "full".into(),
        Jitter::Equal => "equal".into(),
        Jitter::Decorrelated => "decorrelated".into(),
        Jitter::DecorrelatedBounded => "decorrelated-bounded".into(),
        Jitter::Proportional(x) => format!("proportional={x}"),
        Jitter::Additive(x) => format!("additive={x}"),
        other => format!("{other:?}"),
    }
}

/// As the policy file has it.
fn repeat_name(rule: RepeatRule) -> &'static str {
    match rule {
        RepeatRule::Never => "never",
        RepeatRule::KeyHonoured => "key-honoured",
        RepeatRule::Always => "always",
        _ => "idempotent-methods",
    }
}

/// As the policy file has it.
fn nested_name(nested: Nested) -> &'static str {
    match nested {
        Nested::PassThrough => "pass-through",
        Nested::Allow => "allow",
        _ => "credit",
    }
}

/// Milliseconds, as a whole number where they are one.
pub(super) fn ms<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let nanos = length.as_nanos();
    match u64::try_from(nanos / 1_000_000) {
        Ok(whole) if nanos.is_multiple_of(1_000_000) => serializer.serialize_u64(whole),
        _ => serializer.serialize_f64(nanos as f64 / 1e6),
    }
}

/// The same, or null.
pub(super) fn maybe_ms<S: Serializer>(length: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match length {
        Some(length) => ms(length, serializer),
        None => serializer.serialize_none(),
    }
}

pub(super) fn number<S: Serializer>(ratio: &Ratio, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(f64::from(ratio.parts_per_million()) / 1e6)
}
