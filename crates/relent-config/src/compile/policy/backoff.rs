//! `backoff = { … }`: base, cap, growth, multiplier, jitter, floor.

use std::time::Duration;

use relent_core::{Growth, Jitter, Steps};

use super::draft::Draft;
use crate::report::Report;
use crate::text::{Item, Table};

pub(super) const FIELDS: [&str; 6] = ["base", "cap", "growth", "multiplier", "jitter", "floor"];

const EXAMPLE: &str = "{ base = \"100ms\", cap = \"10s\" }";

const JITTERS: [(&str, Jitter); 5] = [
    ("full", Jitter::Full),
    ("none", Jitter::None),
    ("equal", Jitter::Equal),
    ("decorrelated", Jitter::Decorrelated),
    ("decorrelated-bounded", Jitter::DecorrelatedBounded),
];

const GROWTHS: [(&str, Growth); 3] =
    [("exponential", Growth::Exponential), ("linear", Growth::Linear), ("fibonacci", Growth::Fibonacci)];

const STEPS: &str = "[\"1s\", \"5s\", \"30s\"]";

/// The jitters that take a share.
const SHARES: [&str; 2] = ["proportional", "additive"];

pub(super) fn read(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    let Some(table) = item.table("backoff", EXAMPLE, report) else {
        // What the file meant by it is unknown, so nothing in it contradicts anything.
        for name in ["base", "cap"] {
            draft.note(name, item.span());
            draft.spoil(name);
        }
        return None;
    };
    table.refuse_unknown(&FIELDS, &[], report);
    for name in FIELDS {
        let Some(inner) = table.item(name) else { continue };
        draft.note(name, inner.span());
        let read = match name {
            "growth" => read_growth(draft, &inner, &table, report),
            _ => read_field(draft, name, &inner, report),
        };
        if read.is_none() {
            draft.spoil(name);
        }
    }
    Some(())
}

/// A law by its name, or the waits one by one.
fn read_growth(draft: &mut Draft, item: &Item<'_>, backoff: &Table<'_>, report: &mut Report) -> Option<()> {
    if !item.is_table() {
        if item.as_text() == Some("steps") {
            item.refuse("it takes the waits", format!("write growth = {{ steps = {STEPS} }}"), report);
            return None;
        }
        let growth = item.choice(&GROWTHS, report)?;
        draft.set(|b| b.growth(growth));
        return Some(());
    }
    let table = item.table("growth", "\"linear\"", report)?;
    table.refuse_unknown(&["steps"], &[], report);
    let listed = table.required("steps", STEPS, report)?;
    let waits: Vec<Option<Duration>> =
        listed.list(STEPS, report)?.iter().map(|wait| wait.length(report)).collect();
    let waits: Vec<Duration> = waits.into_iter().collect::<Option<_>>()?;
    if waits.is_empty() || waits.len() > Steps::MOST {
        let most = Steps::MOST;
        listed.refuse(
            format_args!("it has {} waits", waits.len()),
            format!("list 1 to {most}; the last one stands for all further retries"),
            report,
        );
        return None;
    }
    let mut good = Some(());
    for name in ["base", "multiplier"] {
        if let Some(other) = backoff.item(name) {
            other.refuse("the listed steps say it already", format!("leave {name} out"), report);
            good = None;
        }
    }
    let steps = Steps::new(&waits);
    let longest = waits.iter().max().copied().unwrap_or_default();
    let capped = backoff.item("cap").is_some();
    draft.set(|b| b.base(steps.get(1)).growth(Growth::Steps(steps)));
    draft.note("base", listed.span());
    if !capped {
        draft.set(|b| b.cap(longest));
        draft.note("cap", listed.span());
    }
    good
}

fn read_field(draft: &mut Draft, name: &str, item: &Item<'_>, report: &mut Report) -> Option<()> {
    match name {
        "base" => item.length(report).map(|v| draft.set(|b| b.base(v))),
        "cap" => item.length(report).map(|v| draft.set(|b| b.cap(v))),
        "floor" => item.length(report).map(|v| draft.set(|b| b.floor(v))),
        "multiplier" => item.ratio("2", report).map(|v| draft.set(|b| b.multiplier(v))),
        _ => read_jitter(item, report).map(|v| draft.set(|b| b.jitter(v))),
    }
}

fn read_jitter(item: &Item<'_>, report: &mut Report) -> Option<Jitter> {
    if let Some(name) = item.as_text().filter(|text| SHARES.contains(text)) {
        item.refuse("it takes a share", format!("write jitter = {{ {name} = 0.2 }}"), report);
        return None;
    }
    if !item.is_table() {
        return item.choice(&JITTERS, report);
    }
    let table = item.table("jitter", "\"full\"", report)?;
    table.refuse_unknown(&SHARES, &[], report);
    let (proportional, additive) = (table.item(SHARES[0]), table.item(SHARES[1]));
    match (proportional, additive) {
        (Some(share), None) => share.ratio("0.2", report).map(Jitter::Proportional),
        (None, Some(share)) => share.ratio("0.2", report).map(Jitter::Additive),
        (Some(_), Some(_)) => {
            item.refuse("it can't be both proportional and additive", "keep one of them", report);
            None
        }
        (None, None) if table.len() > 0 => None,
        (None, None) => {
            item.refuse("it is empty", "write jitter = { proportional = 0.2 }, or jitter = \"full\"", report);
            None
        }
    }
}
