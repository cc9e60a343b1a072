//! What retries add to the load: of one call, of many, and of a fleet in an outage.
//!
//! A load factor is requests sent per call wanted. Budgets are per process, so over a fleet the share and the reserve of
//! each process add up: a reserve that is nothing to one busy process is a wave when a thousand idle ones have it.

use std::time::Duration;

use relent_core::{BudgetConfig, Policy};

use serde::Serialize;

use super::budget::Bound;
use super::report::maybe_ms;
use super::totals::{Ending, attempts_granted};

/// Requests per call; `None`: no number can be given, since the budget bounds retries at once and not per call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct LoadFactor {
    /// When every call fails and the budget, if there is one, still pays.
    pub(super) worst: f64,
    /// The most that a busy caller comes to while its calls succeed in the end.
    pub(super) sustained: Option<f64>,
    /// In an outage of everything, once what was saved up is spent; of a busy caller.
    pub(super) outage: Option<f64>,
}

impl LoadFactor {
    pub(super) fn of(policy: &Policy) -> LoadFactor {
        let most = f64::from(attempts_granted(policy, Ending::AtOnce));
        match Bound::of(policy) {
            Bound::Nothing => LoadFactor { worst: most, sustained: Some(most), outage: Some(most) },
            Bound::Concurrency => LoadFactor { worst: most, sustained: None, outage: None },
            Bound::Tokens(tokens) => {
                let broke = tokens.sustained == 0.0 && tokens.reserve == 0;
                // A bucket that is never over half full grants nothing, whatever successes put in.
                let idle = matches!(policy.budget(), Some(BudgetConfig::Throttle(_))) && tokens.reserve == 0;
                let worst = if broke || idle { 1.0 } else { most };
                let sustained = if idle { 1.0 } else { worst.min(1.0 + tokens.sustained) };
                LoadFactor {
                    worst,
                    sustained: Some(sustained),
                    outage: Some(most.min(1.0 + tokens.per_call)),
                }
            }
        }
    }
}

/// A fleet of processes, each with a budget of its own, when everything it calls goes down for good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Fleet {
    pub(super) processes: u32,
    pub(super) rps: f64,
    /// Tokens that the share of one process holds when the outage begins.
    #[serde(rename = "share_per_process")]
    pub(super) share: u64,
    /// Tokens in the reserve of one process.
    #[serde(rename = "reserve_per_process")]
    pub(super) reserve: u32,
    /// The time that `first_window` is about; `None` without a budget.
    #[serde(skip)]
    pub(super) window: Option<Duration>,
    /// The worst second, if a call's retries come within it: longer waits spread them.
    pub(super) peak_second: Load,
    /// From the beginning of the outage to the end of the budget's first window.
    pub(super) first_window: Load,
    /// Once share and reserve are spent.
    pub(super) after: Load,
    /// When they are spent at the latest, if every call takes what it may; `None`: never, nothing bounds the retries.
    #[serde(rename = "spent_after_ms", serialize_with = "maybe_ms")]
    pub(super) spent_after: Option<Duration>,
}

/// Load on the target of a whole fleet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Load {
    /// Retries per second.
    pub(super) retries_per_second: f64,
    /// Requests per call.
    #[serde(rename = "load_factor")]
    pub(super) factor: f64,
}

impl Fleet {
    /// `None`: no number can be given.
    pub(super) fn of(policy: &Policy, processes: u32, rps: f64) -> Option<Fleet> {
        let wanted = f64::from(attempts_granted(policy, Ending::AtOnce) - 1);
        let load = |retries_per_call: f64| Load {
            retries_per_second: retries_per_call * rps * f64::from(processes),
            factor: 1.0 + retries_per_call,
        };
        let tokens = match Bound::of(policy) {
            Bound::Tokens(tokens) => tokens,
            Bound::Concurrency => return None,
            Bound::Nothing => {
                let all = load(wanted);
                return Some(Fleet {
                    processes,
                    rps,
                    share: 0,
                    reserve: 0,
                    window: None,
                    peak_second: all,
                    first_window: all,
                    after: all,
                    spent_after: None,
                });
            }
        };
        let window = tokens.window.as_secs_f64();
        // ⌊ratio × calls of one window⌋, in one piece when the outage begins.
        let share = (tokens.saved * rps * window + 1e-9).floor();
        let saved = share + f64::from(tokens.reserve);
        // With deposits per request the share comes in as the calls do, in an outage, too.
        let kept = (tokens.per_call + tokens.per_second / rps).min(wanted);
        let over = |seconds: f64| load(wanted.min(saved / (rps * seconds)).max(kept));
        let demand = (wanted - kept) * rps;
        // Within its window a budget may hold tokens back, since it never grants one too many: they come at its end.
        let spent_after = if demand > 0.0 && saved > 0.0 { window.max(saved / demand) } else { 0.0 };
        Some(Fleet {
            processes,
            rps,
            share: share as u64,
            reserve: tokens.reserve,
            window: Some(tokens.window),
            peak_second: over(1.0),
            first_window: over(window),
            after: load(kept),
            spent_after: Duration::try_from_secs_f64(spent_after).ok(),
        })
    }

    /// Retries that the whole fleet's shares and reserves pay for.
    pub(super) fn tokens_in_all(&self) -> (u64, u64) {
        let processes = u64::from(self.processes);
        (self.share.saturating_mul(processes), u64::from(self.reserve).saturating_mul(processes))
    }
}

#[cfg(test)]
mod tests;
