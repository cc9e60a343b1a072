//! What a budget did so far, counted where tokens are asked for: never on a success.

use crate::sync::{AtomicU64, Ordering};

/// How often a budget was asked for a token, and with what answer, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BudgetCounts {
    /// Tokens granted, those that came back included.
    pub granted: u64,
    /// Retries refused.
    pub refused: u64,
    /// Tokens that came back unspent: their call ended before the retry was launched.
    pub returned: u64,
}

/// Counts for [`BudgetCounts`].
#[derive(Debug)]
pub(super) struct Meter {
    granted: AtomicU64,
    refused: AtomicU64,
    returned: AtomicU64,
}

impl Meter {
    pub(super) fn new() -> Meter {
        Meter { granted: AtomicU64::new(0), refused: AtomicU64::new(0), returned: AtomicU64::new(0) }
    }

    /// Somebody asked, and got this.
    pub(super) fn answered<G>(&self, grant: Option<G>) -> Option<G> {
        let counter = if grant.is_some() { &self.granted } else { &self.refused };
        counter.fetch_add(1, Ordering::Relaxed);
        grant
    }

    pub(super) fn returned(&self) {
        self.returned.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> BudgetCounts {
        BudgetCounts {
            granted: self.granted.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            returned: self.returned.load(Ordering::Relaxed),
        }
    }
}
