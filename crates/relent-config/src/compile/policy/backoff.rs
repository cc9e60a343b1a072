//! `backoff = { … }`: base, cap, multiplier, jitter, floor.

use relent_core::Jitter;

use super::draft::Draft;
use crate::report::Report;
use crate::text::Item;

pub(super) const FIELDS: [&str; 5] = ["base", "cap", "multiplier", "jitter", "floor"];

const EXAMPLE: &str = "{ base = \"100ms\", cap = \"10s\" }";

const JITTERS: [(&str, Jitter); 5] = [
    ("full", Jitter::Full),
    ("none", Jitter::None),
    ("equal", Jitter::Equal),
    ("decorrelated", Jitter::Decorrelated),
    ("decorrelated-bounded", Jitter::DecorrelatedBounded),
];

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
        if read_field(draft, name, &inner, report).is_none() {
            draft.spoil(name);
        }
    }
    Some(())
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
