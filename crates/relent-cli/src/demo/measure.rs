//! From what was written down to the figures of the table. Pure: records in, figures out.
//!
//! - *load factor*: attempts by calls; in the outage: attempts that begin in it by calls that begin in it.
//! - *recovery*: the first moment after the outage from which on [`WINDOW`] of calls succeed to [`RECOVERED`]; counted
//!   from the outage's end, and none if the run ends before.
//! - *calm*: everything before the outage but its last [`MARGIN`] (whose retries could fall into it), and everything
//!   after the window that showed the recovery; without recovery, only what was before.
//! - *success in calm* is that of idempotent calls (GET): a payment without a key can't be repeated by anyone who
//!   wants it executed once.
//! - *p50, p99*: time until the caller had his answer or his error, of all calls.

use std::time::Duration;

use relent::StopReason;

use super::backend::Account;
use super::lane::Lane;
use super::ledger::{CallRecord, Pages};
use super::scenario::Scenario;

/// The length of time over which calls must succeed again.
pub(crate) const WINDOW: Duration = Duration::from_secs(2);
/// The share of them that must.
pub(crate) const RECOVERED: f64 = 0.9;
/// The grid on which the moment of recovery is sought.
const STEP: Duration = Duration::from_millis(100);
/// Longer than a call of any lane takes: three attempts and two waits.
const MARGIN: Duration = Duration::from_millis(1_200);

/// The figures of one lane.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LaneReport {
    pub(crate) lane: Lane,
    pub(crate) calls: usize,
    pub(crate) success: f64,
    pub(crate) success_calm: f64,
    pub(crate) load_factor: f64,
    pub(crate) load_factor_outage: f64,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) recovery: Option<Duration>,
    /// Payments whose work was done more than once.
    pub(crate) executed_twice: usize,
    /// The share of the server's work that was done for callers who had gone.
    pub(crate) wasted: f64,
    /// Calls ended although they failed with attempts left: a retry was wanted and refused.
    pub(crate) refused: Refused,
    /// Failed payments that came back as "may have been executed".
    pub(crate) ambiguous_payments: usize,
}

/// Why retries were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) by_budget: usize,
    pub(crate) by_repeat_rule: usize,
    pub(crate) otherwise: usize,
}

impl Refused {
    pub(crate) fn total(self) -> usize {
        self.by_budget + self.by_repeat_rule + self.otherwise
    }
}

/// The figures of one lane.
pub(crate) fn measure(scenario: &Scenario, lane: Lane, pages: &Pages, account: Account) -> LaneReport {
    let calls = &pages.calls;
    let recovery = recovery(scenario, calls);
    let calm = |call: &&CallRecord| !call.payment && is_calm(scenario, recovery, call.began);
    let in_outage = calls.iter().filter(|call| scenario.in_outage(call.began)).count();
    let attempts_in_outage = pages.attempts.iter().filter(|a| scenario.in_outage(a.began)).count();
    let mut took: Vec<Duration> = calls.iter().map(|call| call.ended.saturating_sub(call.began)).collect();
    took.sort_unstable();
    LaneReport {
        lane,
        calls: calls.len(),
        success: success(calls.iter()),
        success_calm: success(calls.iter().filter(calm)),
        load_factor: quotient(pages.attempts.len(), calls.len()),
        load_factor_outage: quotient(attempts_in_outage, in_outage),
        p50: quantile(&took, 0.5),
        p99: quantile(&took, 0.99),
        recovery,
        executed_twice: account.executed_twice,
        wasted: quotient(account.wasted, account.executed),
        refused: refused(calls),
        ambiguous_payments: calls.iter().filter(|call| call.payment && call.ending.ambiguous).count(),
    }
}

/// See the top of the file.
fn recovery(scenario: &Scenario, calls: &[CallRecord]) -> Option<Duration> {
    let last = scenario.length.checked_sub(WINDOW)?.checked_sub(scenario.outage_to)?;
    let steps = last.as_millis() / STEP.as_millis();
    let candidates = (0..=steps).map(|step| STEP * step as u32);
    candidates.into_iter().find(|after| {
        let from = scenario.outage_to + *after;
        let window = || calls.iter().filter(|call| (from..from + WINDOW).contains(&call.began));
        window().next().is_some() && success(window()) >= RECOVERED
    })
}

/// See the top of the file.
fn is_calm(scenario: &Scenario, recovery: Option<Duration>, at: Duration) -> bool {
    at + MARGIN < scenario.outage_from || recovery.is_some_and(|r| at >= scenario.outage_to + r + WINDOW)
}

fn success<'a>(calls: impl Iterator<Item = &'a CallRecord>) -> f64 {
    let (good, all) = calls.fold((0, 0), |(good, all), call| (good + usize::from(call.ending.ok), all + 1));
    quotient(good, all)
}

/// Nothing of nothing is nothing.
fn quotient(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Of sorted values, the smallest with at least a share `q` at or under it.
fn quantile(sorted: &[Duration], q: f64) -> Duration {
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// Calls that ended although a retry was wanted and attempts were left, by who said no.
fn refused(calls: &[CallRecord]) -> Refused {
    let mut refused = Refused::default();
    for call in calls {
        match call.ending.stop {
            Some(StopReason::BudgetExhausted) => refused.by_budget += 1,
            Some(StopReason::UnsafeToRepeat) => refused.by_repeat_rule += 1,
            None
            | Some(StopReason::Succeeded | StopReason::NotRetryable | StopReason::AttemptsExhausted)
            | Some(StopReason::Cancelled) => {}
            Some(_) => refused.otherwise += 1,
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::lane::Ending;
    use crate::demo::ledger::{AttemptRecord, Saw};

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const OK: Ending = Ending { ok: true, stop: None, ambiguous: false };

    fn stopped(stop: StopReason) -> Ending {
        Ending { ok: false, stop: Some(stop), ambiguous: false }
    }

    /// One call every 10 ms, each of 20 ms; those that begin in `bad` fail.
    fn calls(scenario: &Scenario, bad: std::ops::Range<Duration>) -> Vec<CallRecord> {
        let ids = 0..(scenario.length.as_millis() / 10) as u32;
        let call = |id: u32| {
            let began = MS(u64::from(id) * 10);
            let ending = if bad.contains(&began) { stopped(StopReason::BudgetExhausted) } else { OK };
            CallRecord { id, payment: false, began, ended: began + MS(20), ending }
        };
        ids.map(call).collect()
    }

    fn once_each(calls: &[CallRecord]) -> Vec<AttemptRecord> {
        let attempt = |call: &CallRecord| AttemptRecord {
            call: call.id,
            number: 1,
            began: call.began,
            ended: call.ended,
            saw: Saw::Status(200),
        };
        calls.iter().map(attempt).collect()
    }

    #[test]
    fn recovery_is_the_first_window_that_is_good_enough() {
        let shown = Scenario::shown(1);
        let recovered = |bad_to| recovery(&shown, &calls(&shown, MS(10_000)..bad_to));
        assert_eq!(recovered(MS(20_000)), Some(Duration::ZERO));
        // A tenth of the window may be bad: 200 of its 2000 ms.
        assert_eq!(recovered(MS(27_500)), Some(MS(7_300)));
        assert_eq!(recovered(MS(38_200)), Some(MS(18_000)));
        assert_eq!(recovered(MS(38_210)), None);
        assert_eq!(recovered(MS(40_000)), None);
        assert_eq!(recovery(&shown, &[]), None);
    }

    #[test]
    fn calm_leaves_out_the_outage_the_recovery_and_their_edges() {
        let shown = Scenario::shown(1);
        let recovered = |at| is_calm(&shown, Some(MS(7_300)), at);
        assert!(recovered(MS(8_799)) && !recovered(MS(8_800)));
        assert!(!recovered(MS(15_000)) && !recovered(MS(29_299)) && recovered(MS(29_300)));
        assert!(is_calm(&shown, None, MS(0)) && !is_calm(&shown, None, MS(39_999)));
    }

    #[test]
    fn figures_of_a_lane_that_recovers() {
        let shown = Scenario::shown(1);
        let mut pages = Pages { calls: calls(&shown, MS(10_000)..MS(25_000)), ..Pages::default() };
        pages.attempts = once_each(&pages.calls);
        // A tenth more attempts in the outage, and none elsewhere.
        let extra: Vec<AttemptRecord> = pages.attempts[1000..2000].iter().step_by(10).cloned().collect();
        pages.attempts.extend(extra);
        // A payment that fails in calm is not what success in calm speaks of.
        pages.calls[5] = CallRecord {
            payment: true,
            ending: Ending { ambiguous: true, ..stopped(StopReason::UnsafeToRepeat) },
            ..pages.calls[5].clone()
        };
        let account = Account { executed_twice: 0, executed: 4000, wasted: 1000 };
        let report = measure(&shown, Lane::Relent, &pages, account);
        assert_eq!(report.success, 2499.0 / 4000.0);
        assert_eq!(report.success_calm, 1.0);
        assert_eq!(report.load_factor, 1.025);
        assert_eq!(report.load_factor_outage, 1.1);
        assert_eq!((report.p50, report.p99), (MS(20), MS(20)));
        assert_eq!(report.recovery, Some(MS(4_800)));
        assert_eq!(report.refused, Refused { by_budget: 1500, by_repeat_rule: 1, otherwise: 0 });
        assert_eq!((report.wasted, report.ambiguous_payments), (0.25, 1));
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<Duration> = (1..=100).map(MS).collect();
        assert_eq!(quantile(&values, 0.5), MS(50));
        assert_eq!(quantile(&values, 0.99), MS(99));
        assert_eq!(quantile(&values[..1], 0.99), MS(1));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }
}
