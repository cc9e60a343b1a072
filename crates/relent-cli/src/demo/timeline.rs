//! One call of the relent lane, as it was recorded: attempts, waits, and why it stopped.

use std::time::Duration;

use relent::StopReason;

use super::ledger::{AttemptRecord, CallRecord, Pages, Saw};

/// The most telling call's timeline, if a call says why it stopped.
pub(crate) fn timeline(pages: &Pages) -> Option<String> {
    let (call, stop) = most_telling(pages)?;
    let mut attempts: Vec<&AttemptRecord> = pages.attempts.iter().filter(|a| a.call == call.id).collect();
    attempts.sort_by_key(|attempt| attempt.number);
    let (verb, kind) = if call.payment { ("POST", "payments") } else { ("GET", "orders") };
    let mut text =
        format!("{verb} /{kind}/{}, at second {:.2} of the run:\n", call.id, call.began.as_secs_f64());
    let mut idle_since = None;
    for attempt in attempts {
        if let Some(since) = idle_since {
            let wait = millis(attempt.began.saturating_sub(since));
            text.push_str(&line(call, since, "wait", &format!("{wait}, full jitter")));
        }
        text.push_str(&line(call, attempt.began, &format!("attempt {}", attempt.number), &saw(attempt)));
        idle_since = Some(attempt.ended);
    }
    text.push_str(&line(call, call.ended, "stop", &format!("{}: {}", stop.name(), stop.describe())));
    Some(text)
}

/// The first of the best: a retry that was made and another that the budget refused; a refusal by the budget; any call
/// that was retried; any at all.
fn most_telling(pages: &Pages) -> Option<(&CallRecord, StopReason)> {
    let retried = |call: &CallRecord| pages.attempts.iter().any(|a| a.call == call.id && a.number > 1);
    let stopped = || pages.calls.iter().filter_map(|call| Some((call, call.ending.stop?)));
    let by_budget = |stop| stop == StopReason::BudgetExhausted;
    stopped()
        .find(|(call, stop)| by_budget(*stop) && retried(call))
        .or_else(|| stopped().find(|(_, stop)| by_budget(*stop)))
        .or_else(|| stopped().find(|(call, _)| retried(call)))
        .or_else(|| stopped().next())
}

fn line(call: &CallRecord, at: Duration, what: &str, text: &str) -> String {
    format!("  {:>7}  {what:<10} {text}\n", millis(at.saturating_sub(call.began)))
}

fn saw(attempt: &AttemptRecord) -> String {
    let took = millis(attempt.ended.saturating_sub(attempt.began));
    match attempt.saw {
        Saw::Status(status) => format!("{status} after {took}"),
        Saw::NoAnswer => format!("connection closed without an answer after {took}"),
        Saw::CutOff => format!("no answer; given up after {took}, by the attempt timeout"),
    }
}

fn millis(length: Duration) -> String {
    format!("{:.0} ms", length.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::lane::Ending;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn call(id: u32, began: u64, ended: u64, stop: StopReason) -> CallRecord {
        let ending = Ending { ok: false, stop: Some(stop), ambiguous: true };
        CallRecord { id, payment: false, began: MS(began), ended: MS(ended), ending }
    }

    fn attempt(call: u32, number: u32, began: u64, ended: u64, saw: Saw) -> AttemptRecord {
        AttemptRecord { call, number, began: MS(began), ended: MS(ended), saw }
    }

    #[test]
    fn a_retry_and_a_refusal() {
        let pages = Pages {
            calls: vec![
                call(6, 9_000, 9_250, StopReason::NotRetryable),
                call(7, 10_310, 10_560, StopReason::BudgetExhausted),
                call(8, 10_320, 10_883, StopReason::BudgetExhausted),
            ],
            attempts: vec![
                attempt(7, 1, 10_310, 10_560, Saw::CutOff),
                attempt(8, 2, 10_633, 10_883, Saw::CutOff),
                attempt(8, 1, 10_320, 10_570, Saw::CutOff),
            ],
            ..Pages::default()
        };
        assert_eq!(
            timeline(&pages).unwrap(),
            "GET /orders/8, at second 10.32 of the run:
     0 ms  attempt 1  no answer; given up after 250 ms, by the attempt timeout
   250 ms  wait       63 ms, full jitter
   313 ms  attempt 2  no answer; given up after 250 ms, by the attempt timeout
   563 ms  stop       BudgetExhausted: the retry budget is spent
"
        );
    }

    #[test]
    fn a_refusal_is_better_than_nothing_and_nothing_is_no_timeline() {
        let pages = Pages { calls: vec![call(6, 0, 3, StopReason::NotRetryable)], ..Pages::default() };
        let text = timeline(&pages).unwrap();
        assert!(text.contains("     3 ms  stop       NotRetryable"), "{text}");
        assert_eq!(timeline(&Pages::default()), None);
    }
}
