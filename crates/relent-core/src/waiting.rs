//! Bounds that many calls share besides the budget: how many wait, and how many repeat for free.

use alloc::sync::Arc;
use core::time::Duration;

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use crate::time::nanos;
use crate::{Instant, defaults};

/// Counts the calls in backoff for one target.
#[derive(Debug, Default)]
pub struct WaitingRoom(AtomicU32);

/// One call's place in a [`WaitingRoom`]; dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Seat(Arc<WaitingRoom>);

impl WaitingRoom {
    /// An empty room.
    #[must_use]
    pub fn new() -> WaitingRoom {
        WaitingRoom(AtomicU32::new(0))
    }

    /// How many calls wait.
    pub fn waiting(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn enter(self: &Arc<Self>, most: u32) -> Option<Seat> {
        let room = |waiting: u32| (waiting < most).then(|| waiting + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        Some(Seat(Arc::clone(self)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The rate cap on free repeats of one pool: a virtual schedule (GCRA, ITU-T I.371) in one word.
///
/// *Defaults*: 100 at once, 10 per second after that.
#[derive(Debug)]
pub struct FreeRepeats {
    interval: u64,
    burst: u64,
    /// When the next one is due if all keep to the rate.
    due: AtomicU64,
}

impl FreeRepeats {
    /// A cap of so many per second, so many of them at once; none at all if either is 0.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> FreeRepeats {
        let interval = nanos(Duration::from_secs(1)) / u64::from(per_second.max(1));
        let burst = if per_second == 0 { 0 } else { burst };
        FreeRepeats { interval, burst: interval.saturating_mul(u64::from(burst)), due: AtomicU64::new(0) }
    }

    pub(crate) fn admits(&self, now: Instant) -> bool {
        let now = now.as_nanos();
        let next = |due: u64| {
            let due = due.max(now).saturating_add(self.interval);
            (due - now <= self.burst).then_some(due)
        };
        self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

impl Default for FreeRepeats {
    fn default() -> FreeRepeats {
        FreeRepeats::new(defaults::FREE_REPEATS_PER_SECOND, defaults::FREE_REPEATS_BURST)
    }
}

#[cfg(all(test, relent_loom))]
mod loom_tests {
    use loom::thread;

    use super::*;

    #[test]
    fn loom_a_room_never_holds_more_than_its_most() {
        let mut three = loom::model::Builder::new();
        three.preemption_bound = Some(2);
        three.check(|| {
            let room = Arc::new(WaitingRoom::new());
            let others = [0, 1].map(|_| {
                let room = Arc::clone(&room);
                thread::spawn(move || {
                    let seat = room.enter(1);
                    assert!(room.waiting() <= 1);
                    seat.is_some()
                })
            });
            let seat = room.enter(1);
            assert!(room.waiting() <= 1);
            let entered = others.map(|other| other.join().expect("it does not panic"));
            assert!(seat.is_some() || entered.contains(&true), "somebody gets in");
            drop(seat);
            assert_eq!(room.waiting(), 0);
        });
    }

    #[test]
    fn loom_two_that_want_the_last_seat_and_keep_it() {
        loom::model(|| {
            let room = Arc::new(WaitingRoom::new());
            let other = Arc::clone(&room);
            let there = thread::spawn(move || other.enter(1));
            let here = room.enter(1);
            let there = there.join().expect("it does not panic");
            assert!(here.is_some() != there.is_some());
            assert_eq!(room.waiting(), 1);
        });
    }

    #[test]
    fn loom_free_repeats_keep_to_their_burst() {
        let mut three = loom::model::Builder::new();
        three.preemption_bound = Some(3);
        three.check(|| {
            let cap = Arc::new(FreeRepeats::new(10, 2));
            let now = Instant::from_nanos(1_000);
            let others = [0, 1].map(|_| {
                let cap = Arc::clone(&cap);
                thread::spawn(move || cap.admits(now))
            });
            let mut admitted = u32::from(cap.admits(now));
            for other in others {
                admitted += u32::from(other.join().expect("it does not panic"));
            }
            assert_eq!(admitted, 2);
            assert!(!cap.admits(now));
        });
    }
}
