//! What one lane did, written down as it happens: every call, every attempt, and the sums by second for the picture.
//!
//! Bounded by the schedule: a fixed number of calls, at most three attempts each.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::clock::Clock;
use super::lane::Ending;

/// One call, from the user's side.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallRecord {
    pub(crate) id: u32,
    pub(crate) payment: bool,
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
    pub(crate) ending: Ending,
}

/// One attempt, as it went over the wire.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AttemptRecord {
    pub(crate) call: u32,
    /// From 1.
    pub(crate) number: u32,
    pub(crate) began: Duration,
    pub(crate) ended: Duration,
    pub(crate) saw: Saw,
}

/// What an attempt saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saw {
    /// A response.
    Status(u16),
    /// The connection broke, or never came about.
    NoAnswer,
    /// Nothing, until the lane gave it up.
    CutOff,
}

/// The sums of one second: a column of the picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Second {
    /// Attempts that began.
    pub(crate) offered: u32,
    /// Those of them that were not a call's first.
    pub(crate) retries: u32,
    /// Calls that ended well.
    pub(crate) good: u32,
}

/// A lane's book.
#[derive(Debug)]
pub(crate) struct Ledger {
    clock: Clock,
    /// By call: attempts so far.
    attempts: Vec<AtomicU32>,
    pages: Mutex<Pages>,
}

/// The pages of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    pub(crate) calls: Vec<CallRecord>,
    pub(crate) attempts: Vec<AttemptRecord>,
    pub(crate) seconds: Vec<Second>,
}

impl Ledger {
    pub(crate) fn new(calls: usize, seconds: usize, clock: Clock) -> Ledger {
        let attempts = (0..calls).map(|_| AtomicU32::new(0)).collect();
        let pages = Pages { seconds: vec![Second::default(); seconds], ..Pages::default() };
        Ledger { clock, attempts, pages: Mutex::new(pages) }
    }

    /// An attempt begins. Dropped unfinished, it is written down as cut off.
    pub(crate) fn attempt(self: &Arc<Self>, call: u32) -> OpenAttempt {
        let began = self.clock.now();
        let number =
            self.attempts.get(call as usize).map_or(1, |before| 1 + before.fetch_add(1, Ordering::Relaxed));
        let mut pages = self.pages();
        if let Some(second) = pages.seconds.get_mut(began.as_secs() as usize) {
            second.offered += 1;
            second.retries += u32::from(number > 1);
        }
        OpenAttempt { ledger: Arc::clone(self), call, number, began, saw: Saw::CutOff }
    }

    /// A call ended.
    pub(crate) fn call_ended(&self, id: u32, payment: bool, began: Duration, ending: Ending) {
        let ended = self.clock.now();
        let mut pages = self.pages();
        if ending.ok
            && let Some(second) = pages.seconds.get_mut(ended.as_secs() as usize)
        {
            second.good += 1;
        }
        pages.calls.push(CallRecord { id, payment, began, ended, ending });
    }

    /// The sums by second so far.
    pub(crate) fn seconds(&self) -> Vec<Second> {
        self.pages().seconds.clone()
    }

    /// All that is written so far.
    pub(crate) fn read(&self) -> Pages {
        self.pages().clone()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        // Every writer leaves it whole, so a panic elsewhere spoils nothing.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt under way.
#[derive(Debug)]
pub(crate) struct OpenAttempt {
    ledger: Arc<Ledger>,
    call: u32,
    number: u32,
    began: Duration,
    saw: Saw,
}

impl OpenAttempt {
    /// It ended by itself.
    pub(crate) fn end(mut self, saw: Saw) {
        self.saw = saw;
    }
}

impl Drop for OpenAttempt {
    fn drop(&mut self) {
        let OpenAttempt { call, number, began, saw, .. } = *self;
        let ended = self.ledger.clock.now();
        self.ledger.pages().attempts.push(AttemptRecord { call, number, began, ended, saw });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_numbered_by_call_and_cut_off_unless_ended() {
        let ledger = Arc::new(Ledger::new(2, 3600, Clock::start()));
        ledger.attempt(1).end(Saw::Status(503));
        drop(ledger.attempt(1));
        ledger.attempt(0).end(Saw::NoAnswer);
        ledger.call_ended(0, false, Duration::ZERO, Ending { ok: true, stop: None, ambiguous: false });
        ledger.call_ended(1, true, Duration::ZERO, Ending { ok: false, stop: None, ambiguous: true });
        let pages = ledger.read();
        let seen: Vec<_> = pages.attempts.iter().map(|a| (a.call, a.number, a.saw)).collect();
        assert_eq!(seen, [(1, 1, Saw::Status(503)), (1, 2, Saw::CutOff), (0, 1, Saw::NoAnswer)]);
        let sum = |of: fn(&Second) -> u32| pages.seconds.iter().map(of).sum::<u32>();
        assert_eq!((sum(|s| s.offered), sum(|s| s.retries), sum(|s| s.good)), (3, 1, 1));
        assert_eq!(pages.calls.len(), 2);
    }
}
