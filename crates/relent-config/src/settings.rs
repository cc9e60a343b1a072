//! A policy written out, field by field, each with where it comes from.

use std::collections::BTreeMap;
use std::fmt;

use relent_core::{
    BreakerConfig, BreakerWindow, BudgetConfig, Cause, ClassicConfig, Deposit, Growth, HedgeDelay, Hold,
    Jitter, Nested, Policy, RepeatRule,
};

use crate::{format_duration, format_size};

/// A field of a policy in force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Setting {
    /// The field, as in `backoff.base`.
    pub name: &'static str,
    /// Its value, as a policy file would write it, without quotes.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The default.
    Default,
    /// A place in a file: name, line and column.
    File(String),
    /// The program that made the configuration: its flags, say. What equals the default counts as that.
    Program,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File(place) => f.write_str(place),
            Origin::Program => f.write_str("program"),
        }
    }
}

/// All fields, with the key by which a file's places know them.
pub(crate) fn of(policy: &Policy, origins: &BTreeMap<&'static str, String>, from_file: bool) -> Vec<Setting> {
    let defaults = values(&Policy::default());
    let value = values(policy).into_iter().zip(defaults);
    value
        .map(|((name, keys, value), (_, _, default))| {
            let place = keys.iter().find_map(|key| origins.get(key));
            let origin = match place {
                Some(place) => Origin::File(place.clone()),
                None if from_file || value == default => Origin::Default,
                None => Origin::Program,
            };
            Setting { name, value, origin }
        })
        .collect()
}

type Row = (&'static str, &'static [&'static str], String);

fn values(policy: &Policy) -> Vec<Row> {
    let backoff = policy.backoff();
    let bound = |length: Option<_>| length.map_or("none".to_owned(), format_duration);
    let mut rows: Vec<Row> = vec![
        ("attempts", &["attempts"], policy.attempts().to_string()),
        ("backoff.base", &["base"], format_duration(backoff.base())),
        ("backoff.cap", &["cap"], format_duration(backoff.cap())),
        ("backoff.growth", &["growth"], growth(backoff.growth())),
        ("backoff.multiplier", &["multiplier"], backoff.multiplier().to_string()),
        ("backoff.jitter", &["jitter"], jitter(backoff.jitter())),
        ("backoff.floor", &["floor"], format_duration(backoff.floor())),
        ("attempt_timeout", &["attempt_timeout"], bound(policy.attempt_timeout())),
        ("deadline", &["deadline"], bound(policy.deadline())),
        ("give_up_after", &["give_up_after"], bound(policy.give_up_after())),
        ("min_attempt_time", &["min_attempt_time"], format_duration(policy.min_attempt_time())),
        ("throttled_base", &["throttled_base"], format_duration(policy.throttled_base())),
        ("throttled.cap", &["throttled.cap"], throttled_cap(policy)),
        ("throttled.attempts", &["throttled.attempts"], throttled_attempts(policy)),
        ("attempts_on", &["attempts_on"], attempts_on(policy)),
        ("max_hint", &["max_hint"], format_duration(policy.max_hint())),
        ("max_waiting", &["max_waiting"], policy.max_waiting().to_string()),
        ("repeat", &["repeat"], repeat(policy.repeat()).to_owned()),
        ("retry_on", &["retry_on"], retry_on(policy)),
        ("nested", &["nested"], nested(policy.nested()).to_owned()),
        ("replay_limit", &["replay_limit"], format_size(policy.replay_limit())),
        ("replay_total", &["replay_total"], format_size(policy.replay_total())),
    ];
    rows.push(("budget", &["budget"], budget(policy)));
    rows.push(("breaker", &["breaker"], breaker(policy)));
    rows.push(("hedge", &["hedge"], hedge(policy)));
    rows.push(("hold", &["hold"], hold(policy)));
    rows
}

fn growth(growth: &Growth) -> String {
    match growth {
        Growth::Steps(steps) => {
            let waits: Vec<_> = steps.iter().map(|wait| format!("\"{}\"", format_duration(wait))).collect();
            format!("{{ steps = [{}] }}", waits.join(", "))
        }
        named => named.name().to_owned(),
    }
}

fn budget(policy: &Policy) -> String {
    match policy.budget() {
        None => "none".to_owned(),
        Some(BudgetConfig::Ratio(budget)) => {
            let deposit = if budget.deposit == Deposit::Request { "request" } else { "success" };
            format!(
                "{{ ratio = {}, window = \"{}\", deposit = \"{deposit}\", reserve = {}, reserve_per_second = {} }}",
                budget.ratio,
                format_duration(budget.window),
                budget.reserve_for(policy.attempts()),
                budget.reserve_per_second
            )
        }
        Some(BudgetConfig::Windowed(budget)) => format!(
            "{{ windowed = {{ ratio = {}, min_per_second = {}, ttl = \"{}\" }} }}",
            budget.ratio,
            budget.min_per_second,
            format_duration(budget.ttl)
        ),
        Some(BudgetConfig::Throttle(budget)) => format!(
            "{{ throttle = {{ max_tokens = {}, token_ratio = {} }} }}",
            budget.max_tokens, budget.token_ratio
        ),
        Some(BudgetConfig::Concurrency(budget)) => {
            format!("{{ concurrency = {{ ratio = {}, minimum = {} }} }}", budget.ratio, budget.minimum)
        }
        Some(BudgetConfig::Cost(budget)) => format!(
            "{{ cost = {{ capacity = {}, retry = {}, timeout = {}, throttled = {}, first_try = {} }} }}",
            budget.capacity, budget.retry, budget.timeout, budget.throttled, budget.first_try
        ),
        Some(BudgetConfig::Adaptive(budget)) => format!(
            "{{ adaptive = {{ factor = {}, window = \"{}\" }} }}",
            budget.factor,
            format_duration(budget.window)
        ),
        Some(other) => format!("{other:?}"),
    }
}

fn breaker(policy: &Policy) -> String {
    match policy.breaker() {
        Some(BreakerConfig::RetriesOnly(breaker)) => format!(
            "{{ retries_only = {{ failure_rate = {}, window = \"{}\", minimum_calls = {} }} }}",
            breaker.failure_rate,
            format_duration(breaker.window),
            breaker.minimum_calls
        ),
        Some(BreakerConfig::Classic(breaker)) => classic(breaker),
        Some(other) => format!("{other:?}"),
        None => "none".to_owned(),
    }
}

fn classic(breaker: &ClassicConfig) -> String {
    let mut fields = vec![match breaker.failure_rate {
        Some(rate) => format!("failure_rate = {rate}"),
        None => "failure_rate = \"none\"".to_owned(),
    }];
    if let Some(limit) = breaker.slow_call {
        let (limit, rate) = (format_duration(limit), breaker.slow_call_rate);
        fields.push(format!("slow_call = \"{limit}\", slow_call_rate = {rate}"));
    }
    if let Some(failures) = breaker.consecutive_failures {
        fields.push(format!("consecutive_failures = {failures}"));
    }
    fields.push(match breaker.window {
        BreakerWindow::Calls(calls) => format!("calls = {calls}"),
        BreakerWindow::Time(length) => format!("window = \"{}\"", format_duration(length)),
        other => format!("window = {other:?}"),
    });
    fields.push(format!("minimum_calls = {}", breaker.minimum_calls));
    let (open_for, cap) = (format_duration(breaker.open_for), format_duration(breaker.open_cap));
    fields.push(format!(
        "open_for = \"{open_for}\", open_multiplier = {}, open_cap = \"{cap}\"",
        breaker.open_multiplier
    ));
    fields.push(format!("open_jitter = {}, probes = {}", breaker.open_jitter, breaker.probes));
    format!("{{ classic = {{ {} }} }}", fields.join(", "))
}

fn hedge(policy: &Policy) -> String {
    match policy.hedge().map(|hedge| (hedge.delay, hedge.most)) {
        Some((HedgeDelay::After(delay), most)) => {
            format!("{{ delay = \"{}\", most = {most} }}", format_duration(delay))
        }
        Some((HedgeDelay::Quantile { quantile, least }, most)) => {
            format!("{{ quantile = {quantile}, least = \"{}\", most = {most} }}", format_duration(least))
        }
        Some((other, _)) => format!("{other:?}"),
        None => "none".to_owned(),
    }
}

fn hold(policy: &Policy) -> String {
    match policy.hold() {
        Hold::Target => "target",
        _ => "call",
    }
    .to_owned()
}

fn throttled_cap(policy: &Policy) -> String {
    policy.throttled().cap.map_or("none".to_owned(), format_duration)
}

fn throttled_attempts(policy: &Policy) -> String {
    policy.throttled().attempts.unwrap_or(policy.attempts()).to_string()
}

fn attempts_on(policy: &Policy) -> String {
    let limits: Vec<String> =
        policy.attempt_limits().map(|(cause, attempts)| format!("{cause} = {attempts}")).collect();
    if limits.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", limits.join(", ")) }
}

fn jitter(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => "none".to_owned(),
        Jitter::Full => "full".to_owned(),
        Jitter::Equal => "equal".to_owned(),
        Jitter::Decorrelated => "decorrelated".to_owned(),
        Jitter::DecorrelatedBounded => "decorrelated-bounded".to_owned(),
        Jitter::Proportional(x) => format!("{{ proportional = {x} }}"),
        Jitter::Additive(x) => format!("{{ additive = {x} }}"),
        other => format!("{other:?}"),
    }
}

fn repeat(rule: RepeatRule) -> &'static str {
    match rule {
        RepeatRule::Never => "never",
        RepeatRule::KeyHonoured => "key-honoured",
        RepeatRule::Always => "always",
        _ => "idempotent-methods",
    }
}

fn nested(nested: Nested) -> &'static str {
    match nested {
        Nested::PassThrough => "pass-through",
        Nested::Allow => "allow",
        _ => "credit",
    }
}

fn retry_on(policy: &Policy) -> String {
    let set = policy.retry_on();
    let words = [("connect", Cause::Connect), ("reset", Cause::Reset), ("timeout", Cause::Timeout)];
    let words =
        words.into_iter().filter(|(_, cause)| set.contains(*cause)).map(|(word, _)| format!("\"{word}\""));
    let codes = set.grpc_codes().map(|code| format!("\"{code}\""));
    let all: Vec<String> =
        words.chain(set.statuses().map(|status| status.to_string())).chain(codes).collect();
    format!("[{}]", all.join(", "))
}
