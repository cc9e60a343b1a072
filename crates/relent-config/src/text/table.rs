//! A table of the file: its fields by name, and what is none of them.

use std::ops::Range;

use toml::de::DeTable;

use super::Item;
use crate::nearest;
use crate::quoted::{named, quoted};
use crate::report::{Fault, Report};

/// What other systems call a thing, and what it is called here.
const ELSEWHERE: [(&str, &str); 16] = [
    ("max_attempts", "attempts"),
    ("max_tries", "attempts"),
    ("tries", "attempts"),
    ("retries", "attempts"),
    ("max_retries", "attempts"),
    ("num_retries", "attempts"),
    ("timeout", "attempt_timeout"),
    ("per_try_timeout", "attempt_timeout"),
    ("total_timeout", "deadline"),
    ("initial", "base"),
    ("delay", "base"),
    ("max", "cap"),
    ("max_delay", "cap"),
    ("max_interval", "cap"),
    ("factor", "multiplier"),
    ("prefix", "path"),
];

/// Of those, the names that leave the first attempt out.
const EXTRA: [&str; 3] = ["retries", "max_retries", "num_retries"];

/// A table, and how messages call it.
#[derive(Debug)]
pub(crate) struct Table<'t> {
    entries: &'t DeTable<'t>,
    span: Range<usize>,
    title: String,
}

impl<'t> Table<'t> {
    pub(crate) fn new(entries: &'t DeTable<'t>, span: Range<usize>, title: impl Into<String>) -> Table<'t> {
        Table { entries, span, title: title.into() }
    }

    /// Its header, or all of it if it is inline.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The field of this name.
    pub(crate) fn item(&self, name: &str) -> Option<Item<'t>> {
        self.entries.get_key_value(name).map(|(key, value)| Item::of(key, value))
    }

    /// The field of this name; a fault if there is none.
    pub(crate) fn required(&self, name: &str, example: &str, report: &mut Report) -> Option<Item<'t>> {
        let item = self.item(name);
        if item.is_none() {
            let message = format!("{} is missing in {}", named(name), self.title);
            report.add(Fault::new(self.span(), message).mend(format!("add {name} = {example}")));
        }
        item
    }

    /// All fields, in no particular order.
    pub(crate) fn items(&self) -> impl Iterator<Item = Item<'t>> + use<'t> {
        self.entries.iter().map(|(key, value)| Item::of(key, value))
    }

    /// Faults for all fields that aren't among `known`. `inner` are the fields of its inner tables, for those who wrote
    /// one a level too high.
    pub(crate) fn refuse_unknown(&self, known: &[&str], inner: &[(&str, &[&str])], report: &mut Report) {
        let mut unknown: Vec<_> = self.items().filter(|item| !known.contains(&item.name())).collect();
        unknown.sort_by_key(|item| item.key_span().start);
        for item in unknown {
            report.add_shown(item.key_span(), |span| {
                let message = format!("{} is no field of {}", named(item.name()), self.title);
                Fault::new(span, message).mend(self.mend(item.name(), known, inner))
            });
        }
    }

    fn mend(&self, name: &str, known: &[&str], inner: &[(&str, &[&str])]) -> String {
        let folded = name.to_ascii_lowercase().replace('-', "_");
        if let Some((_, here)) =
            ELSEWHERE.iter().find(|(there, here)| *there == folded && known.contains(here))
        {
            let extra =
                if EXTRA.contains(&folded.as_str()) { ", which counts the first one too" } else { "" };
            return format!("here it is called `{here}`{extra}");
        }
        if let Some(near) = nearest(name, known.iter().copied()) {
            return format!("did you mean `{near}`?");
        }
        if let Some((table, _)) = inner.iter().find(|(_, fields)| fields.contains(&name)) {
            return format!("it belongs into {table} = {{ {name} = … }}");
        }
        if let [only] = known {
            return format!("its only field is `{only}`");
        }
        let all: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
        format!("its fields are {}", all.join(", "))
    }

    /// A fault unless `name`, the key of a named table, can be used in metrics, logs and flags as it is.
    pub(crate) fn check_name(item: &Item<'_>, report: &mut Report) -> Option<()> {
        let name = item.name();
        let good = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if !name.is_empty() && name.chars().count() <= 64 && name.chars().all(good) {
            return Some(());
        }
        let fault = Fault::new(item.key_span(), format!("{} is no name", quoted(name)));
        report.add(fault.mend("take 1 to 64 letters, digits, `-`, `_` and `.`"));
        None
    }
}
