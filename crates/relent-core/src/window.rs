//! Counts over a sliding window of time, in slots fine enough that the edge hardly matters.

use alloc::boxed::Box;
use core::time::Duration;

use crate::Instant;
use crate::time::nanos;

/// The window is cut into so many slots; the edge is one slot (under 1 %) wide.
const SLOTS: u64 = 128;
/// One more than the window, so that everything younger than it is still counted while the newest slot fills.
const RING: usize = SLOTS as usize + 1;

/// The time between two turns of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    from: Instant,
    to: Instant,
}

impl Since {
    pub(crate) fn length(self) -> Duration {
        self.to.since(self.from)
    }

    /// The turn before.
    pub(crate) fn from(self) -> Instant {
        self.from
    }
}

/// `K` counts per slot, and their sums.
#[derive(Debug)]
pub(crate) struct Window<const K: usize> {
    slots: Box<[[u32; K]; RING]>,
    sums: [u64; K],
    /// The number of the newest slot since the clock's epoch.
    head: u64,
    width: u64,
    /// Up to when it has moved on.
    turned: Instant,
}

impl<const K: usize> Window<K> {
    pub(crate) fn new(length: Duration, now: Instant) -> Window<K> {
        // At least 2, so that the number after a slot's is a number, also at the end of all clocks.
        let width = (nanos(length) / SLOTS).max(2);
        let head = now.as_nanos() / width;
        Window { slots: Box::new([[0; K]; RING]), sums: [0; K], head, width, turned: now }
    }

    /// Moves on to `now`, forgetting what is too old. A clock that went back moves nothing.
    pub(crate) fn turn(&mut self, now: Instant) -> Since {
        let since = Since { from: self.turned, to: now.max(self.turned) };
        self.advance(since.to.as_nanos() / self.width);
        self.turned = since.to;
        since
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, now: Instant) {
        self.turn(now);
        self.slots.fill([0; K]);
        self.sums = [0; K];
    }

    /// Counts `n` of kind `kind` evenly over the time since the last turn.
    pub(crate) fn spread(&mut self, kind: usize, n: u64, since: Since) {
        let (from, to) = (since.from.as_nanos(), since.to.as_nanos());
        if n == 0 {
            return;
        }
        if to == from {
            self.add_to(self.head, kind, n);
            return;
        }
        let before = |end: u64| {
            let part = end.min(to).saturating_sub(from);
            (u128::from(n) * u128::from(part) / u128::from(to - from)) as u64
        };
        let oldest = (from / self.width).max(self.oldest());
        let mut done = before(oldest * self.width);
        for number in oldest..=self.head {
            let until = if number == self.head { n } else { before((number + 1) * self.width) };
            self.add_to(number, kind, until - done);
            done = until;
        }
    }

    /// Counts `n` of kind `kind` at `when`, unless that is too old by now.
    pub(crate) fn place(&mut self, kind: usize, n: u64, when: Instant) {
        let number = when.as_nanos() / self.width;
        if number >= self.oldest() {
            self.add_to(number.min(self.head), kind, n);
        }
    }

    /// Counts one in the newest slot, and answers that slot's number.
    pub(crate) fn add(&mut self, kind: usize) -> u64 {
        self.add_to(self.head, kind, 1);
        self.head
    }

    /// Takes one back from slot `number`, if it is still counted.
    pub(crate) fn take_back(&mut self, kind: usize, number: u64) {
        if number < self.oldest() {
            return;
        }
        let count = &mut self.slots[place(number)][kind];
        if *count > 0 {
            *count -= 1;
            self.sums[kind] -= 1;
        }
    }

    /// Everything that may be younger than the window: never too little.
    pub(crate) fn at_most(&self, kind: usize) -> u64 {
        self.sums[kind]
    }

    /// Only what is surely younger than the window: never too much.
    pub(crate) fn at_least(&self, kind: usize) -> u64 {
        let oldest = place(self.head + 1);
        self.sums[kind] - u64::from(self.slots[oldest][kind])
    }

    /// What of today's counts will still be in the window at `later`.
    pub(crate) fn remaining(&self, kind: usize, later: Instant) -> u64 {
        let passed = (later.as_nanos() / self.width).saturating_sub(self.head);
        let kept = SLOTS.saturating_sub(passed).min(self.head + 1);
        (0..kept).map(|age| u64::from(self.slots[place(self.head - age)][kind])).sum()
    }

    /// The oldest slot that is still counted.
    fn oldest(&self) -> u64 {
        self.head.saturating_sub(SLOTS)
    }

    fn advance(&mut self, head: u64) {
        let steps = head - self.head;
        for step in 1..=steps.min(RING as u64) {
            let slot = &mut self.slots[place(self.head + step)];
            for (sum, count) in self.sums.iter_mut().zip(slot.iter_mut()) {
                *sum -= u64::from(*count);
                *count = 0;
            }
        }
        self.head = head;
        // After a jump the ring's positions belong to other numbers; all of them are empty then.
    }

    fn add_to(&mut self, number: u64, kind: usize, n: u64) {
        let count = &mut self.slots[place(number)][kind];
        let after = u32::try_from(u64::from(*count) + n).unwrap_or(u32::MAX);
        self.sums[kind] += u64::from(after - *count);
        *count = after;
    }
}

/// Where slot `number` stands in the ring; taken before it is cut to a pointer's width.
fn place(number: u64) -> usize {
    (number % RING as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn window() -> Window<2> {
        Window::new(Duration::from_secs(10), Instant::ZERO)
    }

    #[test]
    fn deposits_are_spread_over_the_time_since_the_last_turn() {
        let mut w = window();
        let since = w.turn(Instant::from_nanos(20 * SECOND));
        w.spread(0, 2000, since);
        let kept = w.at_least(0);
        assert!((985..=1000).contains(&kept), "half of 20 s is in the window, got {kept}");
    }

    #[test]
    fn what_is_placed_at_a_time_is_forgotten_with_it() {
        let mut w = window();
        w.turn(Instant::from_nanos(9 * SECOND));
        w.place(0, 5, Instant::from_nanos(SECOND));
        assert_eq!((w.at_most(0), w.at_least(0)), (5, 5));
        w.turn(Instant::from_nanos(11 * SECOND));
        assert_eq!(w.at_least(0), 0);
        w.turn(Instant::from_nanos(30 * SECOND));
        w.place(0, 5, Instant::from_nanos(19 * SECOND));
        assert_eq!(w.at_most(0), 0);
    }

    #[test]
    fn nothing_outlives_the_window_and_nothing_leaves_early() {
        let mut w = window();
        w.add(1);
        w.turn(Instant::from_nanos(10 * SECOND - 1));
        assert_eq!(w.at_most(1), 1);
        w.turn(Instant::from_nanos(10 * SECOND + SECOND / 10));
        assert_eq!((w.at_most(1), w.at_least(1)), (0, 0));
    }

    #[test]
    fn a_long_idle_spell_empties_every_slot() {
        let mut w = window();
        let since = w.turn(Instant::from_nanos(SECOND));
        w.spread(0, 7, since);
        w.turn(Instant::from_nanos(u64::MAX - 1));
        assert_eq!((w.at_most(0), w.at_least(0)), (0, 0));
    }

    #[test]
    fn the_smallest_window_at_the_end_of_all_clocks() {
        let mut w = Window::<2>::new(Duration::from_nanos(1), Instant::ZERO);
        let since = w.turn(Instant::NEVER);
        w.spread(0, 9, since);
        let slot = w.add(1);
        assert_eq!((w.at_most(1), w.remaining(1, Instant::NEVER)), (1, 1));
        assert!(w.at_least(0) <= 9);
        w.take_back(1, slot);
        assert_eq!(w.at_most(1), 0);
    }

    #[test]
    fn what_is_taken_back_too_late_changes_nothing() {
        let mut w = window();
        let slot = w.add(1);
        w.turn(Instant::from_nanos(30 * SECOND));
        w.add(1);
        w.take_back(1, slot);
        assert_eq!(w.at_most(1), 1);
    }

    #[test]
    fn remaining_looks_ahead() {
        let mut w = window();
        w.add(1);
        assert_eq!(w.remaining(1, Instant::from_nanos(9 * SECOND)), 1);
        assert_eq!(w.remaining(1, Instant::from_nanos(11 * SECOND)), 0);
    }
}
