//! What is counted: by each worker for itself, added up when somebody asks.
//!
//! A counter has one writer, its worker's thread, so a plain load and store count exactly, without a locked instruction.
//! Readers see each counter as it was a moment ago.

mod histogram;
mod page;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use relent::timer::{Clock, SystemTimer};
use relent_core::{Cause, StopReason};

use crate::facts::{self, Outcome};
use histogram::Histogram;

/// How a target is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetNames {
    pub(crate) upstream: String,
    pub(crate) policy: String,
}

/// What others know at the moment.
pub(crate) trait Gauges {
    fn budget_balance(&self, target: usize) -> Option<u64>;
    fn waiting(&self, target: usize) -> u32;
    fn replay_bytes(&self, target: usize) -> u64;
    fn requests_in_flight(&self) -> u32;
    fn access_log_dropped(&self) -> u64;
}

/// All that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    targets: Vec<TargetNames>,
    shards: Vec<Arc<Shard>>,
    started: SystemTime,
}

impl Metrics {
    pub(crate) fn new(targets: Vec<TargetNames>, workers: usize) -> Metrics {
        let shards = (0..workers).map(|_| Arc::new(Shard::new(targets.len()))).collect();
        Metrics { targets, shards, started: SystemTimer.wall() }
    }

    /// The counters of one worker, whose thread alone may count on them.
    pub(crate) fn shard(&self, worker: usize) -> Arc<Shard> {
        Arc::clone(&self.shards[worker])
    }

    /// In Prometheus' text format, version 0.0.4.
    pub(crate) fn render(&self, gauges: &dyn Gauges) -> String {
        page::render(self, gauges)
    }

    /// A counter over all workers.
    fn sum(&self, count: impl Fn(&Shard) -> &Count) -> u64 {
        self.shards.iter().map(|shard| count(shard).get()).sum()
    }
}

/// A number that one thread counts up.
#[derive(Debug, Default)]
struct Count(AtomicU64);

impl Count {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Ordering::Relaxed);
    }

    fn one(&self) {
        self.add(1);
    }
}

/// The counters of one worker.
#[derive(Debug)]
pub(crate) struct Shard {
    targets: Vec<Target>,
    refused: [Count; REFUSED.len() + 1],
    connections_opened: Count,
    connections_closed: Count,
}

/// Answers to what never found a route.
const REFUSED: [u16; 6] = [400, 404, 431, 499, 501, 503];
/// What a call ended with for its client; the client that left before is apart.
const STATUSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "gone"];
/// What an attempt came to.
const OUTCOMES: [&str; 10] =
    ["1xx", "2xx", "3xx", "4xx", "5xx", "connect", "reset", "timeout", "cancelled", "other"];
/// Why there was a retry.
const CAUSES: [&str; 10] =
    ["connect", "reset", "timeout", "429", "500", "502", "503", "504", "status", "other"];
/// Why there was no further attempt.
const STOPS: [StopReason; 14] = [
    StopReason::Succeeded,
    StopReason::NotRetryable,
    StopReason::StoppedByPeer,
    StopReason::UnsafeToRepeat,
    StopReason::NotReplayable,
    StopReason::AttemptsExhausted,
    StopReason::CreditExhausted,
    StopReason::HintTooLong,
    StopReason::DeadlineTooClose,
    StopReason::TooManyWaiting,
    StopReason::BreakerOpen,
    StopReason::BudgetExhausted,
    StopReason::DeadlineExceeded,
    StopReason::Cancelled,
];

/// The counters of one target.
#[derive(Debug, Default)]
struct Target {
    calls: [Count; STATUSES.len()],
    attempts: [Count; OUTCOMES.len()],
    retries: [Count; CAUSES.len()],
    free_repeats: Count,
    stops: [Count; STOPS.len()],
    ambiguous: Count,
    broken: Count,
    call_time: Histogram,
    attempt_time: Histogram,
}

impl Shard {
    fn new(targets: usize) -> Shard {
        Shard {
            targets: (0..targets).map(|_| Target::default()).collect(),
            refused: Default::default(),
            connections_opened: Count::default(),
            connections_closed: Count::default(),
        }
    }

    pub(crate) fn call_ended(&self, call: &facts::Call) {
        let Some(target) = call.target.and_then(|place| self.targets.get(place)) else {
            self.refused(call.status);
            return;
        };
        target.calls[place_of_call(call.status)].one();
        if let Some(place) = call.stop.and_then(|stop| STOPS.iter().position(|own| *own == stop)) {
            target.stops[place].one();
        }
        if call.ambiguous {
            target.ambiguous.one();
        }
        if call.broken {
            target.broken.one();
        }
        target.call_time.record(call.took);
    }

    pub(crate) fn attempt_ended(&self, target: usize, attempt: &facts::Attempt) {
        if let Some(target) = self.targets.get(target) {
            target.attempts[place_of_outcome(attempt.outcome)].one();
            target.attempt_time.record(attempt.took);
        }
    }

    /// A retry is launched, because of this.
    pub(crate) fn retry(&self, target: usize, cause: Cause) {
        if let Some(target) = self.targets.get(target) {
            target.retries[place_of_cause(cause)].one();
        }
    }

    /// A request is repeated that provably reached nobody.
    pub(crate) fn free_repeat(&self, target: usize) {
        if let Some(target) = self.targets.get(target) {
            target.free_repeats.one();
        }
    }

    /// Something was answered that never found a route.
    pub(crate) fn refused(&self, status: u16) {
        let place = REFUSED.iter().position(|own| *own == status).unwrap_or(REFUSED.len());
        self.refused[place].one();
    }

    pub(crate) fn connection_opened(&self) {
        self.connections_opened.one();
    }

    pub(crate) fn connection_closed(&self) {
        self.connections_closed.one();
    }
}

fn place_of_call(status: u16) -> usize {
    match status {
        499 => 5,
        status => class(status),
    }
}

/// 0 for 1xx to 4 for 5xx.
fn class(status: u16) -> usize {
    usize::from(status / 100).clamp(1, 5) - 1
}

fn place_of_outcome(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Status(status) => class(status),
        Outcome::Failed(Cause::Connect) => 5,
        Outcome::Failed(Cause::Reset) => 6,
        Outcome::Failed(Cause::Timeout) => 7,
        Outcome::GivenUp => 8,
        Outcome::Failed(_) => 9,
    }
}

fn place_of_cause(cause: Cause) -> usize {
    match cause {
        Cause::Connect => 0,
        Cause::Reset => 1,
        Cause::Timeout => 2,
        Cause::Status(429) => 3,
        Cause::Status(500) => 4,
        Cause::Status(502) => 5,
        Cause::Status(503) => 6,
        Cause::Status(504) => 7,
        Cause::Status(_) => 8,
        _ => 9,
    }
}
