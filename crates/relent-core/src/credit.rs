//! Attempt credit: several layers that retry share one allowance, so that their attempts never multiply.
//!
//! The outermost layer that can retry opens the allowance with its own attempts. Each layer tells the one below how many
//! further attempts it may make (`left`) and keeps one back; the layer nearest to the failure, where a repeat is
//! cheapest, spends first and answers what it `used`. So three layers of three make 3 requests at a dead leaf, not 27.

use core::cell::Cell;

/// What the layers above still grant: further attempts to take from, and to give back to.
pub trait Credit {
    /// How many further attempts are granted; `None` if no layer above said anything.
    fn left(&self) -> Option<u32>;

    /// Takes up to `n` and answers how many there were. Without a layer above, nothing is there to take.
    fn take(&self, n: u32) -> u32;

    /// Puts `n` back that were taken.
    fn give(&self, n: u32);
}

/// No layer above.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCredit;

impl Credit for NoCredit {
    fn left(&self) -> Option<u32> {
        None
    }

    fn take(&self, _n: u32) -> u32 {
        0
    }

    fn give(&self, _n: u32) {}
}

/// A layer above that granted the number in the cell.
impl Credit for Cell<u32> {
    fn left(&self) -> Option<u32> {
        Some(self.get())
    }

    fn take(&self, n: u32) -> u32 {
        let taken = n.min(self.get());
        self.set(self.get() - taken);
        taken
    }

    fn give(&self, n: u32) {
        self.set(self.get().saturating_add(n));
    }
}
