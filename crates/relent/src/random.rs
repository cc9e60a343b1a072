//! A generator per thread, each with a sequence of its own.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use relent_core::{Random, Rng};

thread_local! {
    static RNG: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The calling thread's generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerThread;

impl Random for PerThread {
    fn next_u64(&self) -> u64 {
        let state = RNG.get().unwrap_or_else(fresh_seed);
        let mut rng = Rng::seeded(state);
        let bits = rng.next();
        RNG.set(Some(rng.into_seed()));
        bits
    }
}

/// The operating system's entropy (what std seeds its hash maps with), and a count: two threads start at the same
/// point of the sequence only by a chance of one in 2^64.
#[cold]
#[allow(clippy::disallowed_methods, reason = "the one place where the library seeds a generator")]
fn fresh_seed() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    RandomState::new().hash_one(THREADS.fetch_add(1, Ordering::Relaxed))
}
