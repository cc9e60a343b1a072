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
    state: State,
}

/// What became of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Held,
    Spent,
    Succeeded,
}

impl Permit {
    /// Leave from `budget`, to be returned to it.
    pub fn new(budget: Arc<dyn Budget>, grant: Grant) -> Permit {
        let Grant { source, mark } = grant;
        Permit { budget, mark, source, state: State::Held }
    }

    /// The attempt starts: from here on the token is spent, whatever becomes of the attempt.
    pub(crate) fn spend(&mut self) {
        self.state = State::Spent;
    }

    /// The attempt that it was spent on has succeeded.
    pub(crate) fn succeed(mut self) {
        self.state = State::Succeeded;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let grant = Grant { source: self.source, mark: self.mark };
        match self.state {
            State::Held => self.budget.give_back(grant),
            State::Spent => self.budget.finished(grant),
            State::Succeeded => self.budget.succeeded(grant),
        }
    }
}

/// A call in flight, for budgets that hear when it ends.
#[derive(Debug)]
pub(crate) struct Presence(Arc<dyn Budget>);

impl Presence {
    /// A call starts: `budget` hears of it, and of its end where it wants to.
    #[inline]
    pub(crate) fn begin(budget: &Arc<dyn Budget>) -> Option<Presence> {
        budget.on_start();
        budget.hears_ends().then(|| Presence(Arc::clone(budget)))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.on_end();
    }
}
