//! What contradicts what in a policy, in the words of the file.
//!
//! The core judges, and names the first contradiction it meets. To name them all, the draft is set right at that point
//! and judged again.

use std::ops::Range;
use std::time::Duration;

use relent_core::{Jitter, Policy, PolicyError, Ratio, RetryOn};

use super::breaker;
use super::budget;
use super::draft::Draft;
use crate::report::{Fault, Report};
use crate::text::Table;
use crate::{format_duration, format_size};

/// More contradictions than a policy can have at once.
const MOST: usize = 32;

/// Builds the policy, with a fault for every contradiction in it. What comes out is set right where there was one.
pub(super) fn build(draft: &mut Draft, table: &Table<'_>, report: &mut Report) -> Option<Policy> {
    for _ in 0..MOST {
        let error = match draft.builder().build() {
            Ok(policy) => return Some(policy),
            Err(error) => error,
        };
        let fields = fields(&error, draft);
        if draft.is_good(&fields) {
            report.add(fault(&error, &fields, draft, table.span()));
        }
        if !set_right(&error, draft) {
            return None;
        }
    }
    None
}

/// The fields that take part, the one to mend first.
fn fields(error: &PolicyError, draft: &Draft) -> Vec<&'static str> {
    match error {
        PolicyError::CapBelowBase { .. } => vec!["cap", "base"],
        PolicyError::FloorAboveBase { .. } => vec!["floor", "base"],
        PolicyError::MultiplierUnused(_) => vec!["multiplier", "growth"],
        PolicyError::GrowthUnused(_) => vec!["growth", "jitter"],
        PolicyError::AttemptTimeoutNotBelowDeadline { .. } => vec!["attempt_timeout", "deadline"],
        PolicyError::NothingToRetryOn => vec!["retry_on", "attempts"],
        PolicyError::FirstWaitBeyondDeadline { base, deadline } if base < deadline => {
            vec!["base", "deadline", "min_attempt_time"]
        }
        PolicyError::FirstWaitBeyondDeadline { .. } => vec!["base", "deadline"],
        PolicyError::GiveUpNotBelowDeadline { .. } => vec!["give_up_after", "deadline"],
        PolicyError::FirstWaitBeyondGiveUp { base, give_up_after } if base < give_up_after => {
            vec!["base", "give_up_after", "min_attempt_time"]
        }
        PolicyError::FirstWaitBeyondGiveUp { .. } => vec!["base", "give_up_after"],
        PolicyError::MinAttemptTimeTooLong { .. } => {
            let without_deadline = draft.builder().no_deadline().build();
            let bound = if without_deadline.as_ref() == Err(error) { "attempt_timeout" } else { "deadline" };
            vec!["min_attempt_time", bound]
        }
        PolicyError::ThrottledBaseAboveMaxHint { .. } => vec!["throttled_base", "max_hint"],
        PolicyError::ReplayLimitAboveTotal { .. } => vec!["replay_limit", "replay_total"],
        PolicyError::ThrottledCapBelowBase { .. } => vec!["throttled.cap", "throttled_base"],
        PolicyError::ThrottledCapAboveMaxHint { .. } => vec!["throttled.cap", "max_hint"],
        PolicyError::HedgesNotBelowAttempts { .. } => vec!["hedge.most", "attempts"],
        PolicyError::HedgeDelayTooLong { .. } => {
            let of_attempt = draft.builder().no_attempt_timeout().build().as_ref() != Err(error);
            vec!["hedge.delay", if of_attempt { "attempt_timeout" } else { "deadline" }]
        }
        PolicyError::OpenCapBelowOpenFor { .. } => vec!["breaker.open_cap", "breaker.open_for"],
        PolicyError::MinimumCallsAboveWindow { .. } => vec!["breaker.minimum_calls", "breaker.calls"],
        PolicyError::LimitAboveAttempts { field, .. } => vec![field, "attempts"],
        PolicyError::LimitOnNotRetried(_) => vec!["attempts_on", "retry_on"],
        PolicyError::CostAboveCapacity { field, .. } => vec![field, "budget.capacity"],
        other => vec![other.field()],
    }
}

fn fault(error: &PolicyError, fields: &[&'static str], draft: &Draft, header: Range<usize>) -> Fault {
    let text = match error {
        PolicyError::ReplayLimitAboveTotal { limit, total } => {
            let (limit, total) = (format_size(*limit), format_size(*total));
            format!("replay_limit {limit} for one call is above replay_total {total} for all of them")
        }
        _ => error.to_string(),
    };
    let core_mend = error.mend();
    let message = text.strip_suffix(core_mend).and_then(|text| text.strip_suffix(": ")).unwrap_or(&text);
    let mend = mend(error, draft).unwrap_or_else(|| core_mend.to_owned());
    let fault = Fault::new(draft.span(fields).unwrap_or(header), message).mend(mend);
    draft.with_defaults(fault, fields)
}

/// How to mend it, where the file has its own words for that.
fn mend(error: &PolicyError, draft: &Draft) -> Option<String> {
    let mend = match error {
        PolicyError::AttemptTimeoutNotBelowDeadline { attempt_timeout, deadline } => {
            let (timeout, deadline) = (format_duration(*attempt_timeout), format_duration(*deadline));
            match (draft.is_set("attempt_timeout"), draft.is_set("deadline")) {
                (false, _) => format!(
                    "set attempt_timeout below {deadline}, or to \"none\", or raise deadline above {timeout}"
                ),
                (true, false) => format!(
                    "lower attempt_timeout below {deadline}, or set deadline above {timeout}, or to \"none\""
                ),
                (true, true) => {
                    "lower attempt_timeout, raise deadline, or set attempt_timeout to \"none\"".to_owned()
                }
            }
        }
        PolicyError::GiveUpNotBelowDeadline { .. } => {
            "lower give_up_after, raise deadline, or set deadline to \"none\"".to_owned()
        }
        PolicyError::Zero(field @ ("attempt_timeout" | "deadline" | "give_up_after")) => {
            format!("write {field} = \"none\" for no bound, or a length above zero")
        }
        PolicyError::Zero("minimum_calls") => "1 judges by a single attempt; 20 is the default".to_owned(),
        PolicyError::Zero("breaker.slow_call_rate") => "take a share above 0, such as 0.8".to_owned(),
        PolicyError::Zero("failure_rate" | "breaker.failure_rate") => {
            "take a share above 0, such as 0.5".to_owned()
        }
        PolicyError::Zero(field @ ("throttled.attempts" | "attempts_on")) => {
            format!("{field} counts the first attempt: 1 means no retry")
        }
        PolicyError::Zero("budget.token_ratio") => "write a number above zero, such as 0.1".to_owned(),
        PolicyError::Zero(
            field @ ("budget.capacity" | "budget.retry" | "budget.timeout" | "budget.throttled"
            | "budget.first_try"),
        ) => format!("give {field} a whole number above zero"),
        PolicyError::Zero(
            field @ ("hedge.most"
            | "breaker.probes"
            | "breaker.calls"
            | "breaker.minimum_calls"
            | "breaker.consecutive_failures"),
        ) => {
            format!("give {field} at least 1")
        }
        PolicyError::Zero(field) => format!("give {field} a length above zero"),
        PolicyError::TooLong {
            field: field @ ("attempt_timeout" | "deadline" | "give_up_after"), ..
        } => {
            format!("write {field} = \"none\" for no bound, or at most \"8760h\"")
        }
        PolicyError::TooLong { .. } => "write at most \"8760h\"".to_owned(),
        _ => return None,
    };
    Some(mend)
}

/// Sets the draft right at this point, in a way that contradicts nothing else. `false`: the error is not known here.
fn set_right(error: &PolicyError, draft: &mut Draft) -> bool {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    if budget::set_right(error, draft) {
        return true;
    }
    match *error {
        PolicyError::NoAttempts => draft.set(|b| b.attempts(1)),
        PolicyError::CapBelowBase { base, .. } => draft.set(|b| b.cap(base)),
        PolicyError::FloorAboveBase { .. } => draft.set(|b| b.floor(Duration::ZERO)),
        PolicyError::MultiplierBelowOne(_) => draft.set(|b| b.multiplier(Ratio::ONE)),
        PolicyError::MultiplierUnused(_) => draft.set(|b| b.multiplier(Ratio::of(2, 1))),
        PolicyError::GrowthUnused(_) | PolicyError::JitterAboveOne(_) => {
            draft.set(|b| b.jitter(Jitter::Full))
        }
        PolicyError::AttemptTimeoutNotBelowDeadline { .. } => draft.set(|b| b.no_attempt_timeout()),
        PolicyError::NothingToRetryOn => draft.set(|b| b.retry_on(RetryOn::default())),
        PolicyError::FirstWaitBeyondDeadline { .. } => draft.set(|b| b.no_deadline()),
        PolicyError::GiveUpNotBelowDeadline { .. } | PolicyError::FirstWaitBeyondGiveUp { .. } => {
            draft.set(|b| b.no_give_up_after())
        }
        PolicyError::MinAttemptTimeTooLong { .. } => draft.set(|b| b.min_attempt_time(Duration::ZERO)),
        PolicyError::ThrottledBaseAboveMaxHint { .. } => draft.throttled.base = Duration::ZERO,
        PolicyError::ThrottledCapBelowBase { .. } | PolicyError::ThrottledCapAboveMaxHint { .. } => {
            draft.throttled.cap = None;
        }
        PolicyError::LimitAboveAttempts { field: "throttled.attempts", .. } => {
            draft.throttled.attempts = None
        }
        PolicyError::LimitAboveAttempts { .. } => draft.limits.clear(),
        PolicyError::LimitOnNotRetried(cause) => draft.limits.retain(|(limited, _)| *limited != cause),
        PolicyError::Zero(field) | PolicyError::TooLong { field, .. } => match field {
            "base" => draft.set(|b| b.base(Duration::ZERO).floor(Duration::ZERO)),
            "cap" => draft.set(|b| b.cap(YEAR)),
            "floor" => draft.set(|b| b.floor(Duration::ZERO)),
            "attempt_timeout" => draft.set(|b| b.no_attempt_timeout()),
            "deadline" => draft.set(|b| b.no_deadline()),
            "give_up_after" => draft.set(|b| b.no_give_up_after()),
            "min_attempt_time" => draft.set(|b| b.min_attempt_time(Duration::ZERO)),
            "throttled_base" => draft.throttled.base = Duration::ZERO,
            "throttled.cap" => draft.throttled.cap = None,
            "throttled.attempts" => draft.throttled.attempts = None,
            "attempts_on" => draft.limits.clear(),
            "max_hint" => draft.set(|b| b.max_hint(YEAR)),
            field if field.starts_with("hedge.") => draft.set(|b| b.no_hedge()),
            "failure_rate" | "minimum_calls" => breaker::set_right(error, draft),
            field if field.starts_with("breaker.") => breaker::set_right(error, draft),
            _ => return false,
        },
        PolicyError::ReplayLimitAboveTotal { .. } => draft.set(|b| b.replay_limit(0)),
        PolicyError::FailureRateAboveOne(_)
        | PolicyError::SlowCallRateAboveOne(_)
        | PolicyError::TooManyCalls(_)
        | PolicyError::BreakerNeverOpens
        | PolicyError::OpenMultiplierBelowOne(_)
        | PolicyError::OpenJitterAboveOne(_)
        | PolicyError::OpenCapBelowOpenFor { .. }
        | PolicyError::MinimumCallsAboveWindow { .. } => breaker::set_right(error, draft),
        PolicyError::HedgesNotBelowAttempts { .. }
        | PolicyError::HedgeQuantileOutOfRange(_)
        | PolicyError::HedgeDelayTooLong { .. } => draft.set(|b| b.no_hedge()),
        _ => return false,
    }
    true
}
