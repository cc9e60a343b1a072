//! Where atomics come from (the real ones, or loom's when interleavings are explored), and the lock that the engine
//! is lent: it is `no_std` and has none of its own.

use core::array;
use core::fmt::Debug;
#[cfg(not(relent_loom))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(relent_loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A mutual exclusion around plain state, brought by the driver (a `std::sync::Mutex` in `relent`).
///
/// It is only taken after a failure, or tried at a success that finds the window old; never waited for on a success.
pub trait Lock<T>: Send + Sync {
    /// A lock around `value`.
    fn new(value: T) -> Self
    where
        Self: Sized;

    /// Runs `work` alone.
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R;

    /// Runs `work` alone, or not at all if somebody else is at it.
    fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R>;
}

/// A kind of [`Lock`], around whatever it is asked for: so that one call makes a budget of any kind.
///
/// ```
/// use std::fmt::Debug;
/// use std::sync::{Mutex, PoisonError};
/// use relent_core::{BudgetConfig, Instant, Lock, Locks};
///
/// #[derive(Debug)]
/// struct Guarded<T>(Mutex<T>);
///
/// impl<T: Send> Lock<T> for Guarded<T> {
///     fn new(value: T) -> Self {
///         Guarded(Mutex::new(value))
///     }
///     fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
///         work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
///     }
///     fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
///         self.0.try_lock().ok().map(|mut value| work(&mut value))
///     }
/// }
///
/// struct Mutexes;
///
/// impl Locks for Mutexes {
///     type Of<T: Debug + Send + 'static> = Guarded<T>;
/// }
///
/// let config = BudgetConfig::default();
/// let budget = config.build::<Mutexes>(3, Instant::ZERO);
/// assert_eq!(budget.balance(Instant::ZERO), 3);
/// ```
pub trait Locks {
    /// The lock around such a value.
    type Of<T: Debug + Send + 'static>: Lock<T> + Debug + 'static;
}

/// `K` counters that threads can add to without meeting: one relaxed add on a line of its own.
#[derive(Debug)]
pub(crate) struct Tally<const K: usize>([Lane<K>; LANES]);

#[cfg(not(relent_loom))]
const LANES: usize = 8;
#[cfg(relent_loom)]
const LANES: usize = 1;

/// Two cache lines, since neighbours are fetched in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Lane<const K: usize>([AtomicU64; K]);

impl<const K: usize> Tally<K> {
    pub(crate) fn new() -> Tally<K> {
        Tally(array::from_fn(|_| Lane(array::from_fn(|_| AtomicU64::new(0)))))
    }

    /// Counts one of kind `kind`.
    #[inline]
    pub(crate) fn add_one(&self, kind: usize) {
        self.0[lane()].0[kind].fetch_add(1, Ordering::Relaxed);
    }

    /// All that was ever added, where nobody takes it; a lower kind is never read after a higher one.
    pub(crate) fn totals(&self) -> [u64; K] {
        array::from_fn(|kind| self.0.iter().map(|lane| lane.0[kind].load(Ordering::Relaxed)).sum())
    }

    /// Takes what was added so far.
    pub(crate) fn collect(&self) -> [u64; K] {
        array::from_fn(|kind| self.0.iter().map(|lane| lane.0[kind].swap(0, Ordering::Relaxed)).sum())
    }
}

/// Which lane this thread adds to. Stacks lie megabytes apart, so the address of a local tells threads from each other
/// without thread-local storage, which a `no_std` crate does not have. A clash costs time, never a count.
#[cfg(not(relent_loom))]
#[inline]
fn lane() -> usize {
    let here = 0_u8;
    let stack = (&raw const here).addr() as u64 >> 21;
    (stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61) as usize % LANES
}

/// One for all, so that the threads of a model meet.
#[cfg(relent_loom)]
fn lane() -> usize {
    0
}

/// The lock of the tests that explore interleavings.
#[cfg(all(test, relent_loom))]
pub(crate) mod loom_lock {
    use core::fmt;

    use super::Lock;

    pub(crate) struct LoomLock<T>(loom::sync::Mutex<T>);

    impl<T: Send> Lock<T> for LoomLock<T> {
        fn new(value: T) -> Self {
            LoomLock(loom::sync::Mutex::new(value))
        }

        fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
            work(&mut self.0.lock().expect("no test panics under the lock"))
        }

        fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
            self.0.try_lock().ok().map(|mut value| work(&mut value))
        }
    }

    impl<T> fmt::Debug for LoomLock<T> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("LoomLock")
        }
    }
}
