//! A call that is alone in the world: what a session has around it when nobody shares its handles.

use std::sync::Arc;

use relent_core::{Context, FreeRepeats, NoCredit, Policy, Random, WaitingRoom};

/// The handles of that call: nobody waits beside it, and no budget or breaker stands in its way.
pub(super) struct Alone {
    waiting: Arc<WaitingRoom>,
    free_repeats: FreeRepeats,
}

impl Alone {
    pub(super) fn new() -> Alone {
        Alone { waiting: Arc::new(WaitingRoom::new()), free_repeats: FreeRepeats::default() }
    }

    /// What its session decides by.
    pub(super) fn context<'a>(&'a self, policy: &'a Policy, random: &'a dyn Random) -> Context<'a, NoCredit> {
        Context {
            policy,
            budget: None,
            breaker: None,
            waiting: &self.waiting,
            free_repeats: &self.free_repeats,
            credit: &NoCredit,
            hold: None,
            latencies: None,
            random,
        }
    }
}
