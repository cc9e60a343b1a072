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
    grant: Grant,
    spent: bool,
}

impl Permit {
    /// Leave from `budget`, to be returned to it.
    pub fn new(budget: Arc<dyn Budget>, grant: Grant) -> Permit {
        Permit { budget, grant, spent: false }
    }

    /// The attempt starts: from here on the token is spent, whatever becomes of the attempt.
    pub(crate) fn spend(&mut self) {
        self.spent = true;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.spent {
            self.budget.finished(self.grant);
        } else {
            self.budget.give_back(self.grant);
        }
    }
}
