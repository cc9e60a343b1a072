//! A token on its way: it gives itself back unless it was spent.

use alloc::sync::Arc;

use super::Budget;

/// Where a token came from; only the budget that granted it reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Which of the budget's sources.
    pub source: u8,
    /// When, in the budget's own count.
    pub mark: u64,
}

/// Leave for one extra attempt.
#[derive(Debug)]
#[must_use = "dropped unspent, a permit gives its token back"]
pub struct Permit {
    budget: Arc<dyn Budget>,
    /// A grant, its parts apart: a call in backoff holds one, and there may be a million.
    mark: u64,
    source: u8,
    spent: bool,
}

impl Permit {
    /// Leave from `budget`, to be returned to it.
    pub fn new(budget: Arc<dyn Budget>, grant: Grant) -> Permit {
        let Grant { source, mark } = grant;
        Permit { budget, mark, source, spent: false }
    }

    /// The attempt starts: from here on the token is spent, whatever becomes of the attempt.
    pub(crate) fn spend(&mut self) {
        self.spent = true;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let grant = Grant { source: self.source, mark: self.mark };
        if self.spent {
            self.budget.finished(grant);
        } else {
            self.budget.give_back(grant);
        }
    }
}
