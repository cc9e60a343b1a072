//! Lengths of time, counted by fixed bounds.

use std::time::Duration;

use super::Count;

/// Upper bounds in microseconds, included; from half a millisecond to the default deadline twice over.
const BOUNDS: [u64; 15] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000,
];
/// The same in seconds, as Prometheus writes them.
pub(super) const LABELS: [&str; 15] = [
    "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5",
    "10", "30",
];

#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// Not cumulative; the last is for all that is longer.
    pub(super) buckets: [Count; BOUNDS.len() + 1],
    pub(super) nanos: Count,
}

impl Histogram {
    pub(super) fn record(&self, length: Duration) {
        let micros = u64::try_from(length.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        // Most are short: from the front it takes few looks.
        let place = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[place].one();
        self.nanos.add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    }
}
