//! `budget = { … }` and `breaker = { … }`: what all calls of a handle share.

use relent_core::{Deposit, RatioConfig, RetriesOnlyConfig, defaults};

use super::draft::Draft;
use crate::report::Report;
use crate::text::{Item, Table};

pub(super) const BUDGET_FIELDS: [&str; 5] = ["ratio", "window", "deposit", "reserve", "reserve_per_second"];

const BREAKER_FIELDS: [&str; 3] = ["failure_rate", "window", "minimum_calls"];

const DEPOSITS: [(&str, Deposit); 2] = [("success", Deposit::Success), ("request", Deposit::Request)];

pub(super) fn read_budget(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    if item.as_text() == Some("none") {
        draft.set_budget(None);
        return Some(());
    }
    let table = item.table("budget", "{ ratio = 0.1, window = \"10s\" } or \"none\"", report)?;
    table.refuse_unknown(&BUDGET_FIELDS, &[], report);
    let mut budget = RatioConfig::new(defaults::BUDGET_RATIO);
    for (name, key) in [("ratio", "ratio"), ("window", "budget.window")] {
        note(draft, &table, name, key);
    }
    // Every field is read, also after one that was refused.
    let mut good = true;
    good &= field(&table, "ratio", |item| item.ratio("0.1", report).map(|v| budget.ratio = v));
    good &= field(&table, "window", |item| item.length(report).map(|v| budget.window = v));
    good &= field(&table, "deposit", |item| item.choice(&DEPOSITS, report).map(|v| budget.deposit = v));
    good &= field(&table, "reserve", |item| item.whole("3", report).map(|v| budget.reserve = Some(v)));
    let rate = |item: &Item<'_>| item.ratio("0.1", report).map(|v| budget.reserve_per_second = v);
    good &= field(&table, "reserve_per_second", rate);
    draft.set_budget(Some(budget.into()));
    good.then_some(())
}

pub(super) fn read_breaker(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    const EXAMPLE: &str = "{ retries_only = { failure_rate = 0.5 } } or \"none\"";
    if item.as_text() == Some("none") {
        return Some(());
    }
    let kinds = item.table("breaker", EXAMPLE, report)?;
    kinds.refuse_unknown(&["retries_only"], &[("retries_only", &BREAKER_FIELDS)], report);
    let Some(kind) = kinds.item("retries_only") else {
        if kinds.len() == 0 {
            item.refuse("it names no kind of breaker", format!("write breaker = {EXAMPLE}"), report);
        }
        return None;
    };
    let table =
        kind.table("retries_only", "{ failure_rate = 0.5, window = \"10s\", minimum_calls = 20 }", report)?;
    table.refuse_unknown(&BREAKER_FIELDS, &[], report);
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
    draft.set_breaker(breaker);
    good.then_some(())
}

fn note(draft: &mut Draft, table: &Table<'_>, name: &str, key: &'static str) {
    if let Some(item) = table.item(name) {
        draft.note(key, item.span());
    }
}

/// Whether the field is good, or not there.
fn field<'t>(table: &Table<'t>, name: &str, read: impl FnOnce(&Item<'t>) -> Option<()>) -> bool {
    table.item(name).is_none_or(|item| read(&item).is_some())
}
