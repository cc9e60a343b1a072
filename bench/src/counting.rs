//! A global allocator that counts what the current thread asks of it, so that "allocates nothing" is a number.
//! The one place of the workspace with `unsafe`: the trait cannot be implemented without.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting. Install it with `#[global_allocator]`.
#[derive(Debug)]
pub(crate) struct Counting;

/// What one thread has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Calls that handed out memory; a block that grew counts once more.
    pub(crate) allocations: u64,
    /// Bytes handed out less bytes given back: negative where a thread frees what another allocated.
    pub(crate) held: i64,
}

impl Counts {
    const ZERO: Self = Self { allocations: 0, held: 0 };

    fn taken(self, bytes: usize) -> Self {
        Self { allocations: self.allocations + 1, held: self.held.saturating_add_unsigned(bytes as u64) }
    }

    fn given_back(self, bytes: usize) -> Self {
        Self { held: self.held.saturating_sub_unsigned(bytes as u64), ..self }
    }
}

thread_local! {
    // Without a destructor and with a constant start, so that reaching it never allocates.
    static COUNTS: Cell<Counts> = const { Cell::new(Counts::ZERO) };
}

fn count(change: impl FnOnce(Counts) -> Counts) {
    COUNTS.with(|counts| counts.set(change(counts.get())));
}

/// Runs `work` and says what this thread allocated in it, and still holds after it.
pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> (T, Counts) {
    let before = COUNTS.get();
    let result = work();
    let after = COUNTS.get();
    let counts =
        Counts { allocations: after.allocations - before.allocations, held: after.held - before.held };
    (result, counts)
}

// SAFETY: every call goes unchanged to the system's allocator, which keeps the contract; counting touches neither the
// pointer nor the layout, and neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|counts| counts.taken(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(|counts| counts.taken(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(|counts| counts.given_back(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(|counts| counts.given_back(layout.size()).taken(size));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_counted_and_given_back() {
        let (kept, counts) = counted(|| Vec::<u8>::with_capacity(1000));
        assert_eq!(counts, Counts { allocations: 1, held: 1000 });
        let ((), counts) = counted(|| drop(kept));
        assert_eq!(counts, Counts { allocations: 0, held: -1000 });
    }

    #[test]
    fn a_block_that_grows_counts_again() {
        let (kept, counts) = counted(|| {
            let mut bytes = Vec::<u8>::with_capacity(10);
            bytes.reserve_exact(20);
            bytes
        });
        assert_eq!(counts, Counts { allocations: 2, held: 20 });
        drop(kept);
    }

    #[test]
    fn other_threads_are_not_counted() {
        let ((), counts) = counted(|| {
            std::thread::scope(|scope| {
                // The thread itself costs its spawner something; what it allocates is its own.
                scope.spawn(|| drop(std::hint::black_box(vec![0_u8; 1 << 20])));
            });
        });
        assert!(counts.held < 1 << 20, "{counts:?}");
        assert_eq!(counted(|| std::hint::black_box(1 + 1)).1, Counts::ZERO);
    }
}
