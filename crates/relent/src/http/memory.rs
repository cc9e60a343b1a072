//! One bound over all bytes that calls keep for later: request bodies for a repeat, failed responses over a wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes kept by all calls of a handle, and how many there may be.
///
/// ```
/// use relent::http::ReplayMemory;
///
/// let memory = ReplayMemory::new(64 * 1024 * 1024);
/// assert_eq!(memory.used(), 0);
/// ```
#[derive(Debug)]
pub struct ReplayMemory {
    limit: u64,
    used: AtomicU64,
}

/// What one call has taken of a [`ReplayMemory`]; dropped, it is free again.
#[derive(Debug)]
pub(super) struct Share {
    memory: Arc<ReplayMemory>,
    bytes: u64,
}

impl ReplayMemory {
    /// Room for `limit` bytes.
    #[must_use]
    pub fn new(limit: u64) -> ReplayMemory {
        ReplayMemory { limit, used: AtomicU64::new(0) }
    }

    /// Bytes kept now.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn share(self: &Arc<Self>) -> Share {
        Share { memory: Arc::clone(self), bytes: 0 }
    }
}

impl Share {
    /// Takes room for `more` bytes, or none at all.
    pub(super) fn grow(&mut self, more: u64) -> bool {
        let limit = self.memory.limit;
        let grown = |used: u64| used.checked_add(more).filter(|sum| *sum <= limit);
        let granted = self.memory.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok();
        if granted {
            self.bytes += more;
        }
        granted
    }

    /// Gives everything back.
    pub(super) fn release(&mut self) {
        if self.bytes > 0 {
            self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
            self.bytes = 0;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_take_what_is_there_and_give_it_back() {
        let memory = Arc::new(ReplayMemory::new(10));
        let (mut a, mut b) = (memory.share(), memory.share());
        assert!(a.grow(6) && b.grow(4));
        assert!(!b.grow(1) && !b.grow(u64::MAX));
        assert_eq!(memory.used(), 10);
        a.release();
        assert!(b.grow(6));
        drop((a, b));
        assert_eq!(memory.used(), 0);
    }
}
