//! What the tables of a policy are read with.

use super::draft::Draft;
use crate::text::{Item, Table};

pub(super) fn note(draft: &mut Draft, table: &Table<'_>, name: &str, key: &'static str) {
    if let Some(item) = table.item(name) {
        draft.note(key, item.span());
    }
}

/// Whether the field is good, or not there.
pub(super) fn field<'t>(table: &Table<'t>, name: &str, read: impl FnOnce(&Item<'t>) -> Option<()>) -> bool {
    table.item(name).is_none_or(|item| read(&item).is_some())
}
