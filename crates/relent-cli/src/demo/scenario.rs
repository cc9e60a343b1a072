//! What happens in the demo, as plain numbers: the load, the servers, the faults and the outage.
//!
//! The sizes follow from four wishes: half load (so that three tries a call are more than the servers can do), an
//! attempt timeout of ten service times, a run under 50 s, and so little work that two busy cores measure the policies
//! and not themselves: 100 calls a second and lane, served in tens of milliseconds, are timed well by timers of 1 ms.

use std::time::Duration;

/// All sizes of one run. Points in time are counted from its start.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scenario {
    /// Where arrivals, faults, service times and the textbook lane's jitter come from.
    pub(crate) seed: u64,
    /// Calls that arrive per second, in each lane.
    pub(crate) rate: f64,
    /// The share of them that are payments: POST, without an idempotency key.
    pub(crate) payments: f64,
    /// How long calls arrive.
    pub(crate) length: Duration,
    /// When the outage begins.
    pub(crate) outage_from: Duration,
    /// When it ends.
    pub(crate) outage_to: Duration,
    /// What is left of the servers' capacity meanwhile.
    pub(crate) outage_capacity: f64,
    /// Requests that one server works on at once; the others queue.
    pub(crate) workers: usize,
    /// Mean work of one request (exponentially distributed).
    pub(crate) service: Duration,
    /// What every lane grants one attempt.
    pub(crate) attempt_timeout: Duration,
    /// The share of requests answered with 503 at the door, always.
    pub(crate) refused: f64,
    /// The share whose answer is lost after the work was done, always.
    pub(crate) lost: f64,
    /// The same share while the outage lasts.
    pub(crate) lost_in_outage: f64,
}

impl Scenario {
    /// The demo as it is shown: 40 s, of which the second ten are an outage.
    pub(crate) fn shown(seed: u64) -> Scenario {
        Scenario {
            seed,
            rate: 100.0,
            payments: 0.1,
            length: Duration::from_secs(40),
            outage_from: Duration::from_secs(10),
            outage_to: Duration::from_secs(20),
            outage_capacity: 0.1,
            workers: 5,
            service: Duration::from_millis(25),
            attempt_timeout: Duration::from_millis(250),
            refused: 0.015,
            lost: 0.005,
            lost_in_outage: 0.05,
        }
    }

    /// The share of the servers' capacity that the calls alone take.
    pub(crate) fn utilisation(&self) -> f64 {
        self.rate * self.service.as_secs_f64() / self.workers as f64
    }

    /// Whether `at` lies in the outage.
    pub(crate) fn in_outage(&self, at: Duration) -> bool {
        (self.outage_from..self.outage_to).contains(&at)
    }

    /// When work that a worker begins at `start` is done, by the capacity of the seconds it falls in.
    pub(crate) fn done_at(&self, start: Duration, work: Duration) -> Duration {
        let spans = [(self.outage_from, 1.0), (self.outage_to, self.outage_capacity)];
        let (mut at, mut left) = (start, work);
        for (until, speed) in spans {
            let room = until.saturating_sub(at).mul_f64(speed);
            if left <= room {
                return at + left.div_f64(speed);
            }
            left -= room;
            at = at.max(until);
        }
        at + left
    }

    /// Whole seconds of the run: the columns of the picture.
    pub(crate) fn seconds(&self) -> usize {
        self.length.as_secs_f64().ceil() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_demo_runs_at_half_load_with_timeouts_of_ten_service_times() {
        let shown = Scenario::shown(1);
        assert_eq!(shown.utilisation(), 0.5);
        assert_eq!(shown.attempt_timeout, shown.service * 10);
        assert!((shown.refused + shown.lost - 0.02).abs() < 1e-9);
        assert!(shown.length < Duration::from_secs(48));
    }

    #[test]
    fn work_is_slow_for_the_part_that_falls_into_the_outage() {
        let shown = Scenario::shown(1);
        assert_eq!(shown.done_at(MS(1_000), MS(25)), MS(1_025));
        assert_eq!(shown.done_at(MS(12_000), MS(25)), MS(12_250));
        assert_eq!(shown.done_at(MS(9_990), MS(25)), MS(10_150));
        assert_eq!(shown.done_at(MS(19_900), MS(25)), MS(20_015));
        assert_eq!(shown.done_at(MS(9_990), MS(1_025)), MS(20_015));
        assert_eq!(shown.done_at(MS(20_000), MS(25)), MS(20_025));
    }
}
