//! The file as it is written: TOML with the place of every key and value, read by hand.
//!
//! Not by derived readers: those stop at the first fault, and know neither the nearest name nor the mend.

mod item;
mod syntax;
mod table;

pub(crate) use item::Item;
pub(crate) use table::Table;

use toml::de::DeTable;

use crate::report::{Fault, Report};
use crate::source::Source;

use syntax::{Faults, Kind};

/// A document, as far as it could be parsed.
#[derive(Debug)]
pub(crate) struct Document<'s> {
    /// Its tables; `None` if its faults leave nothing that is worth a further look.
    pub(crate) root: Option<DeTable<'s>>,
    /// Faults that hold only where the value is right otherwise: for `10%` without quotes, the mend of the field that
    /// wants a number is better than quotes.
    pub(crate) weak: Vec<Fault>,
}

/// Parses the document, as far as that goes.
pub(crate) fn parse<'s>(source: &Source<'s>, report: &mut Report) -> Document<'s> {
    let (root, errors) = DeTable::parse_recoverable(source.text());
    let root = root.into_inner();
    let mut weak = Vec::new();
    let mut whole = true;
    let Faults { faults, more } = syntax::faults(source, &root, errors);
    report.add_unseen(more);
    for (kind, fault) in faults {
        match kind {
            Kind::Unquoted => weak.push(fault),
            Kind::Twice => report.add(fault),
            Kind::Lost => {
                report.add(fault);
                whole = false;
            }
        }
    }
    if !whole {
        weak.drain(..).for_each(|fault| report.add(fault));
    }
    Document { root: whole.then_some(root), weak }
}
