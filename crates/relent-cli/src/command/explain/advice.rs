//! What a policy's owner should know before it runs: legal values that seldom do what was meant.

use relent_core::{BudgetConfig, Deposit, Jitter, Policy, RepeatRule};

use super::laws::walks;
use super::report::ROWS;
use super::totals::{Ending, outlook};
use crate::render::length;

/// One warning a line, with its mend.
pub(super) fn warnings(policy: &Policy) -> Vec<String> {
    let checks = [
        repeat_never,
        reserve,
        deposit,
        windowed,
        concurrency,
        idle_throttle,
        no_budget,
        no_jitter,
        walk,
        deadline,
        throttled,
        unlisted,
    ];
    if policy.attempts() == 1 {
        return Vec::new();
    }
    checks.iter().filter_map(|check| check(policy)).collect()
}

fn repeat_never(policy: &Policy) -> Option<String> {
    let never = policy.repeat() == RepeatRule::Never;
    never.then(|| "repeat = \"never\" allows no second attempt; attempts = 1 says it plainly".into())
}

fn reserve(policy: &Policy) -> Option<String> {
    let reserve = policy.budget()?.as_ratio()?.reserve_for(policy.attempts());
    let retries = policy.attempts() - 1;
    (reserve < retries).then(|| {
        format!(
            "a reserve of {reserve} is under attempts - 1 = {retries}: a caller of few calls, whose share is empty, \
             can't make all attempts of one call; raise the reserve or lower attempts"
        )
    })
}

fn deposit(policy: &Policy) -> Option<String> {
    let on_request = policy.budget()?.as_ratio()?.deposit == Deposit::Request;
    on_request.then(|| {
        "deposits per request go on in an outage, and the retries with them, which can hold a system down; \
         deposit = \"success\" stops them"
            .into()
    })
}

fn windowed(policy: &Policy) -> Option<String> {
    let BudgetConfig::Windowed(budget) = policy.budget()? else { return None };
    let burst = u64::from(budget.min_per_second) * budget.ttl.as_secs();
    Some(format!(
        "requests pay in whether they succeed or not, so retries go on in an outage; and up to {burst} of them may come at \
         once from each process: a ratio budget stops when nothing succeeds"
    ))
}

fn concurrency(policy: &Policy) -> Option<String> {
    let BudgetConfig::Concurrency(budget) = policy.budget()? else { return None };
    Some(format!(
        "a share of the calls in flight bounds retries at once, not per second: if the target refuses within 1 ms, {} at \
         once are up to {} a second, and so no figures of a fleet can be given",
        budget.minimum,
        u64::from(budget.minimum) * 1000
    ))
}

fn idle_throttle(policy: &Policy) -> Option<String> {
    let BudgetConfig::Throttle(budget) = policy.budget()? else { return None };
    (budget.max_tokens <= 2).then(|| {
        format!(
            "a bucket of {} is never over half full after a failure, so nothing is ever retried; take at least 3",
            budget.max_tokens
        )
    })
}

fn no_budget(policy: &Policy) -> Option<String> {
    policy.budget().is_none().then(|| {
        format!(
            "without a budget every call of an outage is made {} times; fine for a person's command, not for a service",
            policy.attempts()
        )
    })
}

fn no_jitter(policy: &Policy) -> Option<String> {
    let backoff = policy.backoff();
    (backoff.jitter() == Jitter::None && !backoff.cap().is_zero()).then(|| {
        "without jitter, callers that failed together come back together; full jitter spreads them".into()
    })
}

fn walk(policy: &Policy) -> Option<String> {
    let jitter = policy.backoff().jitter();
    if !walks(jitter) {
        return None;
    }
    let heap = if jitter == Jitter::Decorrelated { ", and is often the cap itself" } else { "" };
    Some(format!(
        "a decorrelated wait grows from the last one{heap}; the curve by the multiplier is not used"
    ))
}

fn deadline(policy: &Policy) -> Option<String> {
    let attempts = policy.attempts();
    let outlook = outlook(policy, Ending::AtOnce);
    (outlook.most < attempts).then(|| {
        format!("no call gets to make {attempts} attempts before the deadline; lower attempts or the base, or raise the deadline")
    })
}

fn throttled(policy: &Policy) -> Option<String> {
    let (wait, deadline) = (policy.throttled_base(), policy.deadline()?);
    let statuses = policy.retry_on().statuses().any(|code| code == 429);
    (statuses && wait + policy.min_attempt_time() >= deadline).then(|| {
        format!(
            "a 429 without Retry-After asks for a wait of {} (throttled_base), which does not fit before the deadline \
             of {}; such calls stop at once",
            length(wait),
            length(deadline)
        )
    })
}

fn unlisted(policy: &Policy) -> Option<String> {
    (policy.attempts() > ROWS)
        .then(|| format!("only the first {ROWS} attempts are listed; all figures count all of them"))
}
