//! Stands for the kinds of budget that are described but not built yet: it pays for nothing.

use alloc::sync::Arc;

use super::{Budget, Grant, Permit, TokenClass};
use crate::{Health, Instant, Verdict};

/// A budget that grants no retry.
#[derive(Debug)]
pub(super) struct Refusing;

impl Budget for Refusing {
    fn on_start(&self) {}

    fn hears_starts(&self) -> bool {
        false
    }

    fn on_success(&self, _attempts: u32, _now: Option<Instant>) {}

    fn on_failure(&self, _verdict: Verdict, _health: Health, _now: Instant) {}

    fn withdraw(self: Arc<Self>, _class: TokenClass, _now: Instant) -> Option<Permit> {
        None
    }

    fn give_back(&self, _grant: Grant) {}

    fn balance(&self, _now: Instant) -> u64 {
        0
    }
}
