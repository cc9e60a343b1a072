//! A call's account of attempt credit: its own further attempts, and what it took from the layers above.

use crate::{Credit, Nested, Policy, Used};

#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Extra attempts made at and below this call.
    used: u32,
    /// Told to the attempt in flight.
    told: u32,
    /// Of `told`, taken from the layers above and withheld from siblings until the attempt reports.
    lent: u32,
    /// Taken from the layers above for good, unless the call succeeds.
    taken: u32,
}

/// What the attempt was told of attempt credit, and how much of that the layers above lent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    pub(super) left: Option<u32>,
    pub(super) lent: u32,
}

/// What to tell an attempt that starts now. A layer that can retry keeps one attempt back; one that can't hands on what it
/// was granted. What may still be spent on `hedges` is not told either. What is told is taken from the layers above, if
/// they granted anything.
#[inline]
pub(super) fn tell<C: Credit + ?Sized>(
    nested: Nested,
    can_retry: bool,
    further: u32,
    hedges: u32,
    credit: &C,
) -> Told {
    let granted = credit.left();
    let left = match nested {
        Nested::Allow => None,
        Nested::PassThrough => Some(0),
        Nested::Credit if can_retry => {
            let left = further.min(granted.unwrap_or(u32::MAX));
            Some(left.saturating_sub(hedges.saturating_add(1)))
        }
        Nested::Credit => granted,
    };
    let lent = match (granted, left) {
        (Some(_), Some(left)) => credit.take(left),
        _ => 0,
    };
    Told { left, lent }
}

/// How many extra attempts a report stands for, clamped to what was told.
#[inline]
fn below(used: Used, told: u32) -> u32 {
    match used {
        Used::Reported(n) => n.min(told),
        Used::Missing => told,
        Used::Unsaid => 0,
    }
}

impl Ledger {
    /// Further attempts this call may still make, of so many by its policy: retries here and extra attempts below both
    /// count.
    fn further(&self, attempts: u32) -> u32 {
        attempts.saturating_sub(1).saturating_sub(self.used)
    }

    /// Tells the next attempt.
    pub(super) fn tell<C: Credit + ?Sized>(
        &mut self,
        policy: &Policy,
        can_retry: bool,
        hedges: u32,
        credit: &C,
    ) -> Option<u32> {
        let told = tell(policy.nested(), can_retry, self.further(policy.attempts()), hedges, credit);
        self.remember(told);
        told.left
    }

    /// Tells a hedge: no further attempts, since the others may spend them.
    pub(super) fn tell_hedge(&mut self, nested: Nested) -> Option<u32> {
        let left = (nested != Nested::Allow).then_some(0);
        self.remember(Told { left, lent: 0 });
        left
    }

    /// What the attempt in flight was told, for when it is taken up again.
    pub(super) fn lay_aside(&mut self) -> Told {
        let told = Told { left: Some(self.told), lent: self.lent };
        self.remember(Told::default());
        told
    }

    pub(super) fn remember(&mut self, told: Told) {
        self.told = told.left.unwrap_or(0);
        self.lent = told.lent;
    }

    /// The attempt in flight has ended and reported, or not.
    #[inline]
    pub(super) fn settle<C: Credit + ?Sized>(&mut self, used: Used, credit: &C) {
        let below = below(used, self.told);
        self.used = self.used.saturating_add(below);
        let spent = below.min(self.lent);
        self.taken += spent;
        if self.lent > spent {
            credit.give(self.lent - spent);
        }
        self.told = 0;
        self.lent = 0;
    }

    /// Whether policy (and what was spent below) and the layers above leave an attempt.
    pub(super) fn affords<C: Credit + ?Sized>(&self, attempts: u32, credit: &C) -> bool {
        self.further(attempts) > 0 && credit.left().is_none_or(|left| left > 0)
    }

    /// One further attempt is decided.
    pub(super) fn retry<C: Credit + ?Sized>(&mut self, credit: &C) {
        self.used += 1;
        self.taken += credit.take(1);
    }

    /// ... and is not made after all.
    pub(super) fn unretry<C: Credit + ?Sized>(&mut self, credit: &C) {
        self.used -= 1;
        if self.taken > 0 {
            self.taken -= 1;
            credit.give(1);
        }
    }

    /// The call succeeded: what it spent of the layers' above is theirs again, for its siblings.
    #[inline]
    pub(super) fn refund<C: Credit + ?Sized>(&mut self, credit: &C) {
        if self.taken > 0 {
            credit.give(self.taken);
            self.taken = 0;
        }
    }

    pub(super) fn told(&self) -> u32 {
        self.told
    }

    pub(super) fn used(&self) -> u32 {
        self.used
    }
}
