//! How long something took, for whoever reads the table, and for the limit on an example. Reads the real clock: xtask
//! waits for other processes, which own their time.

#![expect(clippy::disallowed_methods, reason = "the one place of xtask that reads a clock")]

use std::time::{Duration, Instant};

#[derive(Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn read(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Between two looks at another process.
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
