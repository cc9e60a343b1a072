//! What a script saw of the attempts that were made.

use std::time::Duration;

/// One attempt that a [`Script`](super::Script) was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// Its number within its call as an operation; as a service the count of calls, from 1.
    pub attempt: u32,
    /// When it began, from the script's making.
    pub at: Duration,
    /// How long it might take, as its driver said; a service is told of no bound.
    pub time_left: Option<Duration>,
}

/// What was seen, up to a bound: a test that goes on for ever fills no memory.
#[derive(Debug)]
pub(super) struct Log<S>(Vec<S>);

/// As much as anybody looks at.
const MOST: usize = 100_000;

impl<S> Log<S> {
    pub(super) fn new() -> Log<S> {
        Log(Vec::new())
    }

    pub(super) fn add(&mut self, seen: S) {
        if self.0.len() < MOST {
            self.0.push(seen);
        }
    }
}

impl<S: Clone> Log<S> {
    pub(super) fn all(&self) -> Vec<S> {
        self.0.clone()
    }
}
