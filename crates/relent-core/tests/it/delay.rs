//! The wait before each retry: its law, its bounds, its extremes, and what many calls together make of it.

mod extremes;
mod growth;
mod herd;
mod laws;
mod walk;

use std::time::Duration;

use relent_core::{Backoff, Jitter, PolicyBuilder, Ratio};

/// The attempt numbers at which somebody's arithmetic has broken: shifts of 32 and 64 bits, floats beyond 2^1024.
pub(super) const EXTREMES: [u32; 14] = [0, 1, 2, 31, 32, 33, 34, 53, 63, 64, 65, 66, 1023, u32::MAX];
pub(super) const EXTREMES_OF_FLOATS: [u32; 3] = [1024, 1025, 1026];

pub(super) fn every_jitter() -> [Jitter; 9] {
    [
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
        Jitter::DecorrelatedBounded,
        Jitter::Proportional(Ratio::percent(50)),
        Jitter::Proportional(Ratio::ONE),
        Jitter::Additive(Ratio::percent(50)),
        Jitter::Additive(Ratio::ONE),
    ]
}

/// A backoff as a policy holds it: checked.
pub(super) fn backoff(base: Duration, cap: Duration, multiplier: Ratio, jitter: Jitter) -> Backoff {
    let builder = PolicyBuilder::default().base(base).cap(cap).multiplier(multiplier).jitter(jitter);
    *builder.no_deadline().build().unwrap().backoff()
}
