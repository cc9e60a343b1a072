//! A handle's counts since it was made.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use relent_core::{BreakerState, BudgetCounts, StopReason};

use crate::event::Event;

const REASONS: usize = StopReason::ALL.len();

/// Counts of what was not silent: written where something failed, never on the way of a first try that succeeds.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    failed: AtomicU64,
    waits: AtomicU64,
    recovered: AtomicU64,
    hedges: AtomicU64,
    hedges_refused: AtomicU64,
    ambiguous: AtomicU64,
    stopped: [AtomicU64; REASONS],
}

impl Counts {
    pub(crate) fn note(&self, event: &Event) {
        let counter = match event {
            Event::Failed { .. } => &self.failed,
            Event::Waiting { .. } => &self.waits,
            Event::Recovered { .. } => &self.recovered,
            Event::Hedged { .. } => &self.hedges,
            Event::HedgeRefused { .. } => &self.hedges_refused,
            Event::Stopped(stop) => {
                if stop.ambiguous {
                    self.ambiguous.fetch_add(1, Ordering::Relaxed);
                }
                let place = StopReason::ALL.iter().position(|reason| *reason == stop.reason);
                match place.and_then(|place| self.stopped.get(place)) {
                    Some(counter) => counter,
                    None => return,
                }
            }
            Event::Breaker(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let stops = StopReason::ALL.iter().zip(&self.stopped).map(|(reason, n)| (*reason, count(n)));
        Snapshot {
            name: None,
            failed_attempts: count(&self.failed),
            retries: count(&self.waits),
            recovered: count(&self.recovered),
            hedges: count(&self.hedges),
            hedges_refused: count(&self.hedges_refused),
            ambiguous: count(&self.ambiguous),
            stops: stops.filter(|(_, n)| *n > 0).collect(),
            waiting: 0,
            budget_balance: None,
            budget: None,
            breaker: None,
        }
    }
}

/// What a handle's calls came to since it was made: see [`Retry::snapshot`](crate::Retry::snapshot).
///
/// The numbers are read one after another, while calls go on. First tries that succeed aren't counted: that would cost
/// something on every one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The handle's [name](crate::Retry::named).
    pub name: Option<Arc<str>>,
    /// Attempts that failed.
    pub failed_attempts: u64,
    /// Retries that were decided on, free repeats aside.
    pub retries: u64,
    /// Calls that succeeded after more than one attempt.
    pub recovered: u64,
    /// Hedges made.
    pub hedges: u64,
    /// Hedges that were due and were refused.
    pub hedges_refused: u64,
    /// Calls that gave up and may have taken effect.
    pub ambiguous: u64,
    /// Calls that gave up, by reason; only reasons that came up.
    pub stops: Vec<(StopReason, u64)>,
    /// Calls in backoff now.
    pub waiting: u32,
    /// What the budget would grant now; `None` without a budget.
    pub budget_balance: Option<u64>,
    /// What the budget granted and refused, where it counts that.
    pub budget: Option<BudgetCounts>,
    /// The breaker's state, where it has one to tell.
    pub breaker: Option<BreakerState>,
}

impl fmt::Display for Snapshot {
    /// A short table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<24}{}", "handle", self.name.as_deref().unwrap_or("-"))?;
        for (name, count) in [
            ("failed attempts", self.failed_attempts),
            ("retries", self.retries),
            ("recovered", self.recovered),
            ("hedges", self.hedges),
            ("hedges refused", self.hedges_refused),
            ("ambiguous", self.ambiguous),
            ("waiting", u64::from(self.waiting)),
        ] {
            writeln!(f, "{name:<24}{count}")?;
        }
        for (reason, count) in &self.stops {
            writeln!(f, "stop {:<19}{count}", reason.name())?;
        }
        if let Some(balance) = self.budget_balance {
            writeln!(f, "{:<24}{balance}", "budget balance")?;
        }
        if let Some(counts) = &self.budget {
            writeln!(f, "{:<24}{}", "budget granted", counts.granted)?;
            writeln!(f, "{:<24}{}", "budget refused", counts.refused)?;
        }
        match self.breaker {
            Some(state) => writeln!(f, "{:<24}{state}", "breaker"),
            None => Ok(()),
        }
    }
}
