//! What a breaker counts: attempts over a window of time, or the last so many.

use alloc::collections::VecDeque;
use core::time::Duration;

use crate::window::Window;
use crate::{BreakerWindow, Instant, Ratio};

/// What an attempt came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) bad: bool,
    pub(super) slow: bool,
}

impl Kind {
    pub(super) const GOOD: Kind = Kind { bad: false, slow: false };

    fn index(self) -> usize {
        usize::from(self.bad) + 2 * usize::from(self.slow)
    }
}

/// Sums over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) all: u64,
    pub(super) bad: u64,
    pub(super) slow: u64,
}

impl Sums {
    fn of(count: impl Fn(usize) -> u64) -> Sums {
        let by = [count(0), count(1), count(2), count(3)];
        Sums { all: by.iter().sum(), bad: by[1] + by[3], slow: by[2] + by[3] }
    }

    /// Whether `part` of all is at least that share.
    pub(super) fn reaches(&self, part: u64, share: Ratio) -> bool {
        u128::from(part) * u128::from(crate::ratio::MILLION)
            >= u128::from(self.all) * u128::from(share.parts_per_million())
    }
}

/// The window's counts.
#[derive(Debug)]
pub(super) enum Counts {
    Time(Window<4>),
    Calls(LastCalls),
}

impl Counts {
    pub(super) fn new(window: BreakerWindow, now: Instant) -> Counts {
        match window {
            BreakerWindow::Time(length) => Counts::Time(Window::new(length, now)),
            BreakerWindow::Calls(most) => Counts::Calls(LastCalls::new(most)),
        }
    }

    /// Counts so many good attempts, made since the last time that anything was counted, and then one of kind `kind`.
    pub(super) fn add(&mut self, good: u64, kind: Kind, now: Instant) -> Sums {
        match self {
            Counts::Time(window) => {
                let since = window.turn(now);
                window.spread(Kind::GOOD.index(), good, since);
                window.add(kind.index());
            }
            Counts::Calls(calls) => {
                calls.add(Kind::GOOD, good);
                calls.add(kind, 1);
            }
        }
        self.sums()
    }

    /// Counts so many good attempts alone, for whoever looks.
    pub(super) fn settle(&mut self, good: u64, now: Instant) -> Sums {
        match self {
            Counts::Time(window) => {
                let since = window.turn(now);
                window.spread(Kind::GOOD.index(), good, since);
            }
            Counts::Calls(calls) => calls.add(Kind::GOOD, good),
        }
        self.sums()
    }

    pub(super) fn clear(&mut self, now: Instant) {
        match self {
            Counts::Time(window) => window.clear(now),
            Counts::Calls(calls) => (calls.runs, calls.sums) = (VecDeque::new(), [0; 4]),
        }
    }

    fn sums(&self) -> Sums {
        match self {
            Counts::Time(window) => Sums::of(|kind| window.at_most(kind)),
            Counts::Calls(calls) => Sums::of(|kind| calls.sums[kind]),
        }
    }
}

/// The last so many attempts, as runs of the same kind: exact, and as long as there are changes.
#[derive(Debug)]
pub(super) struct LastCalls {
    most: u64,
    runs: VecDeque<(Kind, u64)>,
    sums: [u64; 4],
}

impl LastCalls {
    fn new(most: u32) -> LastCalls {
        LastCalls { most: u64::from(most), runs: VecDeque::new(), sums: [0; 4] }
    }

    fn add(&mut self, kind: Kind, n: u64) {
        let n = n.min(self.most);
        if n == 0 {
            return;
        }
        match self.runs.back_mut() {
            Some((last, length)) if *last == kind => *length += n,
            _ => self.runs.push_back((kind, n)),
        }
        self.sums[kind.index()] += n;
        let mut over = self.sums.iter().sum::<u64>().saturating_sub(self.most);
        while over > 0 {
            let Some((oldest, length)) = self.runs.front_mut() else { return };
            let gone = over.min(*length);
            *length -= gone;
            self.sums[oldest.index()] -= gone;
            over -= gone;
            if *length == 0 {
                self.runs.pop_front();
            }
        }
    }
}

/// `length` grown by `multiplier` so many times, at most `cap`.
pub(super) fn grown(length: Duration, multiplier: Ratio, times: u32, cap: Duration) -> Duration {
    let cap = crate::time::nanos(cap);
    let mut nanos = crate::time::nanos(length).min(cap);
    for _ in 0..times {
        let next = multiplier.of_nanos(nanos).min(cap);
        if next <= nanos {
            break;
        }
        nanos = next;
    }
    Duration::from_nanos(nanos)
}

#[cfg(all(test, not(relent_loom)))]
mod tests {
    use super::*;

    const BAD: Kind = Kind { bad: true, slow: false };
    const SLOW: Kind = Kind { bad: false, slow: true };

    fn sums(all: u64, bad: u64, slow: u64) -> Sums {
        Sums { all, bad, slow }
    }

    #[test]
    fn the_last_calls_are_exact_whatever_their_order() {
        let mut counts = Counts::new(BreakerWindow::Calls(10), Instant::ZERO);
        assert_eq!(counts.add(5, BAD, Instant::ZERO), sums(6, 1, 0));
        assert_eq!(counts.add(2, SLOW, Instant::ZERO), sums(9, 1, 1));
        assert_eq!(counts.add(3, BAD, Instant::ZERO), sums(10, 2, 1), "three good ones went");
        assert_eq!(counts.add(4, BAD, Instant::ZERO), sums(10, 2, 1), "the first bad one went");
        assert_eq!(counts.settle(1000, Instant::ZERO), sums(10, 0, 0));
    }

    #[test]
    fn growth_stops_at_the_cap_and_never_takes_long() {
        let grow = |times| grown(Duration::from_secs(1), Ratio::of(2, 1), times, Duration::from_secs(60));
        assert_eq!([grow(0), grow(1), grow(5)].map(|d| d.as_secs()), [1, 2, 32]);
        assert_eq!([grow(6), grow(u32::MAX)].map(|d| d.as_secs()), [60, 60]);
        let constant = grown(Duration::from_secs(1), Ratio::ONE, u32::MAX, Duration::from_secs(60));
        assert_eq!(constant, Duration::from_secs(1));
    }
}
