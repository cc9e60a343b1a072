//! What retries add to the load: of one call, of many, and of a fleet in an outage.
//!
//! A load factor is requests sent per call wanted. Budgets are per process, so over a fleet the share and the reserve of
//! each process add up: a reserve that is nothing to one busy process is a wave when a thousand idle ones have it.

use std::time::Duration;

use relent_core::{BudgetConfig, Deposit, Policy, RatioConfig};

use serde::Serialize;

use super::report::maybe_ms;
use super::totals::{Ending, attempts_granted};

/// Requests per call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct LoadFactor {
    /// When every call fails and the budget, if there is one, still pays.
    pub(super) worst: f64,
    /// The most that a busy caller comes to while its calls succeed in the end.
    pub(super) sustained: f64,
    /// In an outage of everything, once share and reserve are spent.
    pub(super) outage: f64,
}

impl LoadFactor {
    pub(super) fn of(policy: &Policy) -> LoadFactor {
        let most = f64::from(attempts_granted(policy, Ending::AtOnce));
        let Some(budget) = policy.budget().and_then(BudgetConfig::as_ratio) else {
            return LoadFactor { worst: most, sustained: most, outage: most };
        };
        let share = share_of(budget);
        let broke = share == 0.0 && budget.reserve_for(policy.attempts()) == 0;
        let outage = match budget.deposit {
            Deposit::Success => 1.0,
            Deposit::Request => most.min(1.0 + share),
        };
        LoadFactor { worst: if broke { 1.0 } else { most }, sustained: most.min(1.0 + share), outage }
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
    pub(super) fn of(policy: &Policy, processes: u32, rps: f64) -> Fleet {
        let wanted = f64::from(attempts_granted(policy, Ending::AtOnce) - 1);
        let load = |retries_per_call: f64| Load {
            retries_per_second: retries_per_call * rps * f64::from(processes),
            factor: 1.0 + retries_per_call,
        };
        let Some(budget) = policy.budget().and_then(BudgetConfig::as_ratio) else {
            let all = load(wanted);
            let (share, reserve) = (0, 0);
            return Fleet {
                processes,
                rps,
                share,
                reserve,
                peak_second: all,
                first_window: all,
                after: all,
                spent_after: None,
            };
        };
        let window = budget.window.as_secs_f64();
        // ⌊ratio × calls of one window⌋, in one piece when the outage begins.
        let share = (share_of(budget) * rps * window + 1e-9).floor();
        let reserve = budget.reserve_for(policy.attempts());
        let tokens = share + f64::from(reserve);
        // With deposits per request the share comes in as the calls do, in an outage, too.
        let kept = match budget.deposit {
            Deposit::Success => 0.0,
            Deposit::Request => share_of(budget).min(wanted),
        };
        let over = |seconds: f64| load(wanted.min(tokens / (rps * seconds)).max(kept));
        let demand = (wanted - kept) * rps;
        // Within its window a budget may hold tokens back, since it never grants one too many: they come at its end.
        let spent_after = if demand > 0.0 && tokens > 0.0 { window.max(tokens / demand) } else { 0.0 };
        Fleet {
            processes,
            rps,
            share: share as u64,
            reserve,
            peak_second: over(1.0),
            first_window: over(window),
            after: load(kept),
            spent_after: Duration::try_from_secs_f64(spent_after).ok(),
        }
    }

    /// Retries that the whole fleet's shares and reserves pay for.
    pub(super) fn tokens_in_all(&self) -> (u64, u64) {
        let processes = u64::from(self.processes);
        (self.share.saturating_mul(processes), u64::from(self.reserve).saturating_mul(processes))
    }
}

fn share_of(budget: &RatioConfig) -> f64 {
    f64::from(budget.ratio.parts_per_million()) / 1e6
}

#[cfg(test)]
mod tests;
