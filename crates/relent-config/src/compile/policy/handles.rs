//! `breaker = { … }`: whether the target is well enough.

use relent_core::RetriesOnlyConfig;

use super::draft::Draft;
use crate::report::Report;
use crate::text::{Item, Table};

const BREAKER_FIELDS: [&str; 3] = ["failure_rate", "window", "minimum_calls"];

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
