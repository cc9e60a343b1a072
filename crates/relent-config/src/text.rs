//! The file as it is written: TOML with the place of every key and value, read by hand.
//!
//! Not by derived readers: those stop at the first fault, and know neither the nearest name nor the mend.

mod item;
mod syntax;
mod table;

pub(crate) use item::Item;
pub(crate) use table::Table;

use toml::de::DeTable;

use crate::report::Report;
use crate::source::Source;

/// Parses the document. `None` if its faults leave nothing that is worth a further look.
pub(crate) fn parse<'s>(source: &Source<'s>, report: &mut Report) -> Option<DeTable<'s>> {
    let (root, errors) = DeTable::parse_recoverable(source.text());
    let root = root.into_inner();
    let faults = syntax::faults(source, &root, errors);
    let readable = faults.iter().all(|fault| fault.recovered);
    faults.into_iter().for_each(|fault| report.add(fault.fault));
    readable.then_some(root)
}
