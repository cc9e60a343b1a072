//! The `policy` section: `key = value` lines on top of the product's defaults, less the jitter.

use std::time::Duration;

use relent_core::{
    BreakerConfig, BreakerWindow, Cause, ClassicConfig, Deposit, Jitter, Nested, Policy, PolicyBuilder,
    Ratio, RatioConfig, RetriesOnlyConfig, RetryOn, ThrottledConfig,
};

use super::value::{Wrong, length, number, one_of, pairs};

/// What a policy section is read into.
pub(super) struct Wishes(PolicyBuilder);

impl Wishes {
    /// The product's defaults, but without jitter, so that times are exact.
    pub(super) fn new() -> Wishes {
        Wishes(Policy::builder().jitter(Jitter::None))
    }

    pub(super) fn build(self) -> Result<Policy, Wrong> {
        self.0.build().map_err(|error| error.to_string())
    }

    /// Takes one line's wish.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), Wrong> {
        let b = self.0.clone();
        self.0 = match key {
            "attempts" => b.attempts(number(value)?),
            "base" => b.base(length(value)?),
            "cap" => b.cap(length(value)?),
            "multiplier" => b.multiplier(number(value)?),
            "jitter" => b.jitter(jitter(value)?),
            "floor" => b.floor(length(value)?),
            "attempt_timeout" => {
                or_none(b, value, PolicyBuilder::attempt_timeout, PolicyBuilder::no_attempt_timeout)?
            }
            "deadline" => or_none(b, value, PolicyBuilder::deadline, PolicyBuilder::no_deadline)?,
            "give_up_after" => b.give_up_after(length(value)?),
            "min_attempt_time" => b.min_attempt_time(length(value)?),
            "throttled_base" => b.throttled_base(length(value)?),
            "throttled" => b.throttled(throttled(value)?),
            "attempts_on" => attempts_on(b, value)?,
            "max_hint" => b.max_hint(length(value)?),
            "max_waiting" => b.max_waiting(number(value)?),
            "nested" => b.nested(one_of(&NESTED, value)?),
            "retry_on" => b.retry_on(retry_on(value)?),
            "budget" if value == "none" => b.no_budget(),
            "budget" => b.budget(budget(value)?),
            "breaker" => b.breaker(breaker(value)?),
            _ => return Err(format!("`{key}` is nothing that a policy has")),
        };
        Ok(())
    }
}

const NESTED: [(&str, Nested); 3] =
    [("credit", Nested::Credit), ("pass-through", Nested::PassThrough), ("allow", Nested::Allow)];

const DEPOSIT: [(&str, Deposit); 2] = [("success", Deposit::Success), ("request", Deposit::Request)];

fn or_none(
    builder: PolicyBuilder,
    value: &str,
    some: fn(PolicyBuilder, Duration) -> PolicyBuilder,
    none: fn(PolicyBuilder) -> PolicyBuilder,
) -> Result<PolicyBuilder, Wrong> {
    if value == "none" { Ok(none(builder)) } else { Ok(some(builder, length(value)?)) }
}

fn throttled(value: &str) -> Result<ThrottledConfig, Wrong> {
    let mut config = ThrottledConfig::default();
    for pair in pairs(value) {
        config = match pair? {
            ("base", value) => {
                config.base = length(value)?;
                config
            }
            ("cap", value) => config.cap(length(value)?),
            ("attempts", value) => config.attempts(number(value)?),
            (key, _) => return Err(format!("`{key}` is nothing that throttled failures have")),
        };
    }
    Ok(config)
}

fn attempts_on(builder: PolicyBuilder, value: &str) -> Result<PolicyBuilder, Wrong> {
    pairs(value).try_fold(builder, |builder, pair| {
        let (kind, attempts) = pair?;
        Ok(builder.attempts_on(cause(kind)?, number(attempts)?))
    })
}

fn jitter(value: &str) -> Result<Jitter, Wrong> {
    let (law, spread) = value.split_once(' ').unwrap_or((value, ""));
    Ok(match law {
        "proportional" => Jitter::Proportional(number(spread)?),
        "additive" => Jitter::Additive(number(spread)?),
        _ => one_of(
            &[
                ("none", Jitter::None),
                ("full", Jitter::Full),
                ("equal", Jitter::Equal),
                ("decorrelated", Jitter::Decorrelated),
                ("decorrelated-bounded", Jitter::DecorrelatedBounded),
            ],
            value,
        )?,
    })
}

fn retry_on(value: &str) -> Result<RetryOn, Wrong> {
    value.split_whitespace().try_fold(RetryOn::nothing(), |kinds, kind| match cause(kind)? {
        Cause::Connect => Ok(kinds.connect()),
        Cause::Reset => Ok(kinds.reset()),
        Cause::Timeout => Ok(kinds.timeout()),
        Cause::Status(code) => kinds.status(code).map_err(|error| error.to_string()),
        _ => Err(format!("`{kind}` has no entry in retry_on")),
    })
}

/// `connect`, `reset`, `timeout`, `other`, or a status.
pub(super) fn cause(text: &str) -> Result<Cause, Wrong> {
    if let Ok(status) = text.parse() {
        return Ok(Cause::Status(status));
    }
    let words = [Cause::Connect, Cause::Reset, Cause::Timeout, Cause::Other];
    let word = words.into_iter().find(|cause| cause.to_string() == text);
    word.ok_or_else(|| format!("`{text}` is not connect, reset, timeout, other or a status"))
}

fn budget(value: &str) -> Result<RatioConfig, Wrong> {
    let mut config = RatioConfig::new(Ratio::ZERO);
    for pair in pairs(value) {
        match pair? {
            ("ratio", value) => config.ratio = number(value)?,
            ("window", value) => config.window = length(value)?,
            ("reserve", value) => config.reserve = Some(number(value)?),
            ("refill", value) => config.reserve_per_second = number(value)?,
            ("deposit", value) => config.deposit = one_of(&DEPOSIT, value)?,
            (key, _) => return Err(format!("`{key}` is nothing that a budget has")),
        }
    }
    Ok(config)
}

/// `rate=0.5 window=10s minimum=20`, or `classic in_a_row=2 open=1s probes=1`.
fn breaker(value: &str) -> Result<BreakerConfig, Wrong> {
    match value.split_once(' ').unwrap_or((value, "")) {
        ("classic", fields) => classic(fields).map(BreakerConfig::Classic),
        _ => retries_only(value).map(BreakerConfig::RetriesOnly),
    }
}

fn classic(value: &str) -> Result<ClassicConfig, Wrong> {
    // Without jitter, as all of a script's policy.
    let mut config = ClassicConfig::new().open_jitter(Ratio::ZERO);
    for pair in pairs(value) {
        match pair? {
            ("rate", value) => config.failure_rate = Some(number(value)?),
            ("slow", value) => config.slow_call = Some(length(value)?),
            ("slow_rate", value) => config.slow_call_rate = number(value)?,
            ("in_a_row", value) => config.consecutive_failures = Some(number(value)?),
            ("window", value) => config.window = BreakerWindow::Time(length(value)?),
            ("calls", value) => config.window = BreakerWindow::Calls(number(value)?),
            ("minimum", value) => config.minimum_calls = number(value)?,
            ("open", value) => config.open_for = length(value)?,
            ("growth", value) => config.open_multiplier = number(value)?,
            ("cap", value) => config.open_cap = length(value)?,
            ("jitter", value) => config.open_jitter = number(value)?,
            ("probes", value) => config.probes = number(value)?,
            (key, _) => return Err(format!("`{key}` is nothing that a classic breaker has")),
        }
    }
    Ok(config)
}

fn retries_only(value: &str) -> Result<RetriesOnlyConfig, Wrong> {
    let mut config = RetriesOnlyConfig::DEFAULT;
    for pair in pairs(value) {
        match pair? {
            ("rate", value) => config.failure_rate = number(value)?,
            ("window", value) => config.window = length(value)?,
            ("minimum", value) => config.minimum_calls = number(value)?,
            (key, _) => return Err(format!("`{key}` is nothing that a breaker has")),
        }
    }
    Ok(config)
}
