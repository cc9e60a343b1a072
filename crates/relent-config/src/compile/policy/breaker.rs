//! `breaker = { … }`: which kind, and its fields.

use relent_core::{BreakerConfig, BreakerWindow, ClassicConfig, PolicyError, RetriesOnlyConfig};

use super::draft::Draft;
use super::handles::{field, note};
use crate::report::Report;
use crate::text::{Item, Table};

const EXAMPLE: &str =
    "{ retries_only = { failure_rate = 0.5 } }, { classic = { failure_rate = 0.5 } } or \"none\"";

const RETRIES_ONLY_FIELDS: [&str; 3] = ["failure_rate", "window", "minimum_calls"];

const CLASSIC_FIELDS: [&str; 12] = [
    "failure_rate",
    "slow_call",
    "slow_call_rate",
    "consecutive_failures",
    "window",
    "calls",
    "minimum_calls",
    "open_for",
    "open_multiplier",
    "open_cap",
    "open_jitter",
    "probes",
];

/// Where the core's complaints about the fields of a classic breaker belong.
const CLASSIC_NOTES: [(&str, &str); 13] = [
    ("failure_rate", "failure_rate"),
    ("failure_rate", "breaker.failure_rate"),
    ("slow_call", "breaker.slow_call"),
    ("slow_call_rate", "breaker.slow_call_rate"),
    ("consecutive_failures", "breaker.consecutive_failures"),
    ("window", "breaker.window"),
    ("calls", "breaker.calls"),
    ("minimum_calls", "breaker.minimum_calls"),
    ("open_for", "breaker.open_for"),
    ("open_multiplier", "breaker.open_multiplier"),
    ("open_cap", "breaker.open_cap"),
    ("open_jitter", "breaker.open_jitter"),
    ("probes", "breaker.probes"),
];

pub(super) fn read(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    if item.as_text() == Some("none") {
        return Some(());
    }
    let kinds = item.table("breaker", EXAMPLE, report)?;
    let inner: [(&str, &[&str]); 2] = [("retries_only", &RETRIES_ONLY_FIELDS), ("classic", &CLASSIC_FIELDS)];
    kinds.refuse_unknown(&["retries_only", "classic"], &inner, report);
    match (kinds.item("retries_only"), kinds.item("classic")) {
        (Some(kind), None) => read_retries_only(draft, &kind, report),
        (None, Some(kind)) => read_classic(draft, &kind, report),
        (Some(first), Some(second)) => {
            read_retries_only(draft, &first, report);
            second.refuse("a policy has one breaker", "leave one of the two kinds out", report);
            None
        }
        (None, None) => {
            if kinds.len() == 0 {
                item.refuse("it names no kind of breaker", format!("write breaker = {EXAMPLE}"), report);
            }
            None
        }
    }
}

fn read_retries_only(draft: &mut Draft, kind: &Item<'_>, report: &mut Report) -> Option<()> {
    let table =
        kind.table("retries_only", "{ failure_rate = 0.5, window = \"10s\", minimum_calls = 20 }", report)?;
    table.refuse_unknown(&RETRIES_ONLY_FIELDS, &[], report);
    for (name, key) in
        [("failure_rate", "failure_rate"), ("window", "breaker.window"), ("minimum_calls", "minimum_calls")]
    {
        note(draft, &table, name, key);
    }
    let mut breaker = RetriesOnlyConfig::DEFAULT;
    let mut good = true;
    good &= field(&table, "failure_rate", |item| item.ratio("0.5", report).map(|v| breaker.failure_rate = v));
    good &= field(&table, "window", |item| item.length(report).map(|v| breaker.window = v));
    good &=
        field(&table, "minimum_calls", |item| item.whole("20", report).map(|v| breaker.minimum_calls = v));
    draft.set_breaker(Some(breaker.into()));
    good.then_some(())
}

fn read_classic(draft: &mut Draft, kind: &Item<'_>, report: &mut Report) -> Option<()> {
    let table =
        kind.table("classic", "{ failure_rate = 0.5, window = \"10s\", open_for = \"5s\" }", report)?;
    table.refuse_unknown(&CLASSIC_FIELDS, &[], report);
    for (name, key) in CLASSIC_NOTES {
        note(draft, &table, name, key);
    }
    let mut breaker = ClassicConfig::new();
    let mut good = read_conditions(&table, &mut breaker, report);
    good &= read_open_time(&table, &mut breaker, report);
    good &= field(&table, "probes", |item| item.whole("3", report).map(|v| breaker.probes = v));
    if let (Some(_), Some(calls)) = (table.item("window"), table.item("calls")) {
        calls.refuse("the rates are taken over a time or over calls", "leave out window or calls", report);
        good = false;
    }
    if let (Some(rate), None) = (table.item("slow_call_rate"), table.item("slow_call")) {
        rate.refuse("nothing says which call is slow", "add slow_call = \"2s\", or leave it out", report);
        good = false;
    }
    draft.set_breaker(Some(breaker.into()));
    good.then_some(())
}

fn read_conditions(table: &Table<'_>, breaker: &mut ClassicConfig, report: &mut Report) -> bool {
    let mut good = true;
    good &= field(table, "failure_rate", |item| {
        if item.as_text() == Some("none") {
            breaker.failure_rate = None;
            return Some(());
        }
        item.ratio("0.5", report).map(|v| breaker.failure_rate = Some(v))
    });
    good &= field(table, "slow_call", |item| item.length(report).map(|v| breaker.slow_call = Some(v)));
    good &=
        field(table, "slow_call_rate", |item| item.ratio("0.8", report).map(|v| breaker.slow_call_rate = v));
    good &= field(table, "consecutive_failures", |item| {
        item.whole("5", report).map(|v| breaker.consecutive_failures = Some(v))
    });
    good &=
        field(table, "window", |item| item.length(report).map(|v| breaker.window = BreakerWindow::Time(v)));
    good &= field(table, "calls", |item| {
        item.whole("100", report).map(|v| breaker.window = BreakerWindow::Calls(v))
    });
    good &= field(table, "minimum_calls", |item| item.whole("20", report).map(|v| breaker.minimum_calls = v));
    good
}

fn read_open_time(table: &Table<'_>, breaker: &mut ClassicConfig, report: &mut Report) -> bool {
    let mut good = true;
    good &= field(table, "open_for", |item| item.length(report).map(|v| breaker.open_for = v));
    good &=
        field(table, "open_multiplier", |item| item.ratio("2", report).map(|v| breaker.open_multiplier = v));
    // A longer open time is its own cap, unless the file says one.
    breaker.open_cap = breaker.open_cap.max(breaker.open_for);
    good &= field(table, "open_cap", |item| item.length(report).map(|v| breaker.open_cap = v));
    good &= field(table, "open_jitter", |item| item.ratio("0.1", report).map(|v| breaker.open_jitter = v));
    good
}

/// Sets right what the core complains of, and nothing else, so that the next fault is told too.
pub(super) fn set_right(error: &PolicyError, draft: &mut Draft) {
    let good = match draft.breaker() {
        Some(BreakerConfig::RetriesOnly(breaker)) => retries_only_right(error, breaker).into(),
        Some(BreakerConfig::Classic(breaker)) => classic_right(error, breaker).into(),
        _ => return draft.set_breaker(None),
    };
    draft.set_breaker(Some(good));
}

fn retries_only_right(error: &PolicyError, mut breaker: RetriesOnlyConfig) -> RetriesOnlyConfig {
    let usual = RetriesOnlyConfig::DEFAULT;
    match error.field() {
        "minimum_calls" => breaker.minimum_calls = usual.minimum_calls,
        "failure_rate" => breaker.failure_rate = usual.failure_rate,
        _ => breaker.window = usual.window,
    }
    breaker
}

fn classic_right(error: &PolicyError, mut breaker: ClassicConfig) -> ClassicConfig {
    let usual = ClassicConfig::new();
    match error.field() {
        "failure_rate" | "breaker.failure_rate" => breaker.failure_rate = usual.failure_rate,
        "breaker.slow_call" => breaker.slow_call = Some(usual.open_for),
        "breaker.slow_call_rate" => breaker.slow_call_rate = usual.slow_call_rate,
        "breaker.consecutive_failures" => breaker.consecutive_failures = Some(1),
        "breaker.window" | "breaker.calls" => breaker.window = usual.window,
        "breaker.minimum_calls" => breaker.minimum_calls = 1,
        "breaker.open_for" => breaker.open_for = usual.open_for.min(breaker.open_cap),
        "breaker.open_multiplier" => breaker.open_multiplier = usual.open_multiplier,
        "breaker.open_cap" => breaker.open_cap = usual.open_cap.max(breaker.open_for),
        "breaker.open_jitter" => breaker.open_jitter = usual.open_jitter,
        "breaker.probes" => breaker.probes = usual.probes,
        _ => breaker = usual,
    }
    if breaker.open_for.is_zero() {
        breaker.open_for = usual.open_for;
    }
    breaker
}
