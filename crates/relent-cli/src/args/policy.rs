//! A policy by flags: the same flags for every command that takes one.

use std::time::Duration;

use relent_core::{Growth, Jitter, Policy, PolicyBuilder, PolicyError, Ratio, RatioConfig, defaults};

use super::value::{bound, duration, growth, jitter, ratio, share};
use crate::exit::Failure;
use crate::render::length;

/// A bound, or the word `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound<T> {
    None,
    Of(T),
}

/// Which defaults the flags change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standard {
    /// Those of the library and the policy file.
    Library,
    /// Those of `relent run`: a person's command may take its time, and pays for nobody's traffic. So no attempt timeout,
    /// no deadline, no budget.
    Run,
}

/// The policy flags.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyArgs {
    /// Attempts in all, the first included [default: 3]
    #[arg(long, allow_hyphen_values = true, value_name = "N")]
    attempts: Option<u32>,

    /// The first wait, before jitter [default: 100ms]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = duration)]
    base: Option<Duration>,

    /// The ceiling of every wait [default: 10s]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = duration)]
    cap: Option<Duration>,

    /// exponential, linear, fibonacci, or the waits one by one: steps=1s,5s,30s [default: exponential]
    #[arg(long, allow_hyphen_values = true, value_name = "LAW", value_parser = growth)]
    growth: Option<Growth>,

    /// What the wait grows by [default: 2]
    #[arg(long, allow_hyphen_values = true, value_name = "FACTOR", value_parser = ratio)]
    multiplier: Option<Ratio>,

    /// none, full, equal, decorrelated, decorrelated-bounded, proportional=X, additive=X [default: full]
    #[arg(long, allow_hyphen_values = true, value_name = "JITTER", value_parser = jitter)]
    jitter: Option<Jitter>,

    /// The least wait, whatever the jitter draws [default: 0s]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = duration)]
    floor: Option<Duration>,

    /// The time of one attempt, or none [default: 5s; run: none]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = bound)]
    attempt_timeout: Option<Bound<Duration>>,

    /// The time of the whole call, waits included, or none [default: 15s; run: none]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = bound)]
    deadline: Option<Bound<Duration>>,

    /// How long after its first failure a call may still start an attempt, or none [default: none]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = bound)]
    give_up_after: Option<Bound<Duration>>,

    /// The least time that makes an attempt worth starting before the deadline [default: 1ms]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = duration)]
    min_attempt_time: Option<Duration>,

    /// Retries per successful call that the budget allows, or none: no budget [default: 0.1; run: none]
    #[arg(long, allow_hyphen_values = true, value_name = "SHARE", value_parser = share)]
    budget_ratio: Option<Bound<Ratio>>,

    /// The time over which that share is kept [default: 10s]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = duration)]
    budget_window: Option<Duration>,

    /// Retries that are allowed besides the share, for callers of few calls [default: attempts - 1, at least 3]
    #[arg(long, allow_hyphen_values = true, value_name = "N")]
    reserve: Option<u32>,

    /// How many of these come back per second, while calls succeed [default: 0.1]
    #[arg(long, allow_hyphen_values = true, value_name = "RATE", value_parser = ratio)]
    reserve_per_second: Option<Ratio>,
}

impl PolicyArgs {
    /// The flags that were given, by name.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--attempts", self.attempts.is_some()),
            ("--base", self.base.is_some()),
            ("--cap", self.cap.is_some()),
            ("--growth", self.growth.is_some()),
            ("--multiplier", self.multiplier.is_some()),
            ("--jitter", self.jitter.is_some()),
            ("--floor", self.floor.is_some()),
            ("--attempt-timeout", self.attempt_timeout.is_some()),
            ("--deadline", self.deadline.is_some()),
            ("--give-up-after", self.give_up_after.is_some()),
            ("--min-attempt-time", self.min_attempt_time.is_some()),
            ("--budget-ratio", self.budget_ratio.is_some()),
            ("--budget-window", self.budget_window.is_some()),
            ("--reserve", self.reserve.is_some()),
            ("--reserve-per-second", self.reserve_per_second.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }

    /// The same without an attempt timeout, for whoever keeps it himself.
    pub(crate) fn without_attempt_timeout(&self) -> PolicyArgs {
        PolicyArgs { attempt_timeout: Some(Bound::None), ..self.clone() }
    }

    /// The policy: what was given, and the standard's defaults for the rest.
    ///
    /// # Errors
    /// A contradiction, with the values it came from, given or default.
    pub(crate) fn build(&self, standard: Standard) -> Result<Policy, Failure> {
        let mut policy = Policy::builder();
        set(&mut policy, self.attempts, PolicyBuilder::attempts);
        if let Some(Growth::Steps(steps)) = self.growth {
            // They say where the waits start and where they end, unless a flag does.
            let waits: Vec<Duration> = steps.iter().collect();
            policy = Policy::steps(&waits);
        }
        set(&mut policy, self.growth, PolicyBuilder::growth);
        set(&mut policy, self.base, PolicyBuilder::base);
        set(&mut policy, self.cap, PolicyBuilder::cap);
        set(&mut policy, self.multiplier, PolicyBuilder::multiplier);
        set(&mut policy, self.jitter, PolicyBuilder::jitter);
        set(&mut policy, self.floor, PolicyBuilder::floor);
        set(&mut policy, self.min_attempt_time, PolicyBuilder::min_attempt_time);
        policy = match self.effective_attempt_timeout(standard) {
            Some(timeout) => policy.attempt_timeout(timeout),
            None => policy.no_attempt_timeout(),
        };
        policy = match self.effective_deadline(standard) {
            Some(deadline) => policy.deadline(deadline),
            None => policy.no_deadline(),
        };
        if let Some(Bound::Of(time)) = self.give_up_after {
            policy = policy.give_up_after(time);
        }
        policy = match self.budget(standard)? {
            Some(budget) => policy.budget(budget),
            None => policy.no_budget(),
        };
        policy.build().map_err(|error| self.explain(&error, standard))
    }

    fn effective_attempt_timeout(&self, standard: Standard) -> Option<Duration> {
        or_default(self.attempt_timeout, standard, defaults::ATTEMPT_TIMEOUT)
    }

    fn effective_deadline(&self, standard: Standard) -> Option<Duration> {
        or_default(self.deadline, standard, defaults::DEADLINE)
    }

    /// Where there is no budget by default, any of its flags asks for one.
    fn budget(&self, standard: Standard) -> Result<Option<RatioConfig>, Failure> {
        let details = [
            ("--budget-window", self.budget_window.is_some()),
            ("--reserve", self.reserve.is_some()),
            ("--reserve-per-second", self.reserve_per_second.is_some()),
        ];
        let detail = details.into_iter().find(|(_, given)| *given).map(|(name, _)| name);
        let ratio = match (self.budget_ratio, detail) {
            (Some(Bound::Of(ratio)), _) => ratio,
            (Some(Bound::None), Some(flag)) => {
                return Err(Failure::usage(format!(
                    "--budget-ratio none says that there is no budget, and {flag} describes one: leave one of them out"
                )));
            }
            (Some(Bound::None), None) => return Ok(None),
            (None, None) if standard == Standard::Run => return Ok(None),
            (None, _) => defaults::BUDGET_RATIO,
        };
        let mut budget = RatioConfig::new(ratio);
        budget.window = self.budget_window.unwrap_or(budget.window);
        budget.reserve = self.reserve;
        budget.reserve_per_second = self.reserve_per_second.unwrap_or(budget.reserve_per_second);
        Ok(Some(budget))
    }

    /// The engine's own words, and which flags and defaults led to them.
    fn explain(&self, error: &PolicyError, standard: Standard) -> Failure {
        let origins: Vec<String> =
            fields(error).iter().filter_map(|field| self.origin(field, standard)).collect();
        if origins.is_empty() {
            return Failure::usage(error);
        }
        let none = match error {
            PolicyError::AttemptTimeoutNotBelowDeadline { .. }
            | PolicyError::FirstWaitBeyondDeadline { .. } => {
                "; none in place of a length says that there is no such bound"
            }
            _ => "",
        };
        Failure::usage(format!("{error}\n  {}{none}", origins.join(", ")))
    }

    /// A flag with its value, and whether it was given.
    fn origin(&self, field: &str, standard: Standard) -> Option<String> {
        let span = |given: Option<Duration>, default| (length(given.unwrap_or(default)), given.is_some());
        let (value, given) = match field {
            "attempts" => (self.attempts.unwrap_or(defaults::ATTEMPTS).to_string(), self.attempts.is_some()),
            "base" => span(self.base, defaults::BASE),
            "cap" => span(self.cap, defaults::CAP),
            "floor" => span(self.floor, Duration::ZERO),
            "multiplier" => (self.multiplier?.to_string(), true),
            "attempt_timeout" => {
                (length(self.effective_attempt_timeout(standard)?), self.attempt_timeout.is_some())
            }
            "deadline" => (length(self.effective_deadline(standard)?), self.deadline.is_some()),
            "give_up_after" => match self.give_up_after? {
                Bound::Of(time) => (length(time), true),
                Bound::None => return None,
            },
            "min_attempt_time" => span(self.min_attempt_time, defaults::MIN_ATTEMPT_TIME),
            _ => return None,
        };
        let flag = field.replace('_', "-");
        Some(format!("--{flag} {value} {}", if given { "was given" } else { "is the default" }))
    }
}

/// Hands a value to its setter, if there is one.
fn set<T>(policy: &mut PolicyBuilder, value: Option<T>, setter: fn(PolicyBuilder, T) -> PolicyBuilder) {
    if let Some(value) = value {
        *policy = setter(std::mem::take(policy), value);
    }
}

fn or_default(given: Option<Bound<Duration>>, standard: Standard, default: Duration) -> Option<Duration> {
    match given {
        Some(Bound::Of(length)) => Some(length),
        Some(Bound::None) => None,
        None => (standard == Standard::Library).then_some(default),
    }
}

/// Every field that takes part in a contradiction.
fn fields(error: &PolicyError) -> Vec<&'static str> {
    match error {
        PolicyError::CapBelowBase { .. } => vec!["cap", "base"],
        PolicyError::FloorAboveBase { .. } => vec!["floor", "base"],
        PolicyError::AttemptTimeoutNotBelowDeadline { .. } => vec!["attempt_timeout", "deadline"],
        PolicyError::FirstWaitBeyondDeadline { .. } => vec!["base", "deadline"],
        PolicyError::GiveUpNotBelowDeadline { .. } => vec!["give_up_after", "deadline"],
        PolicyError::FirstWaitBeyondGiveUp { .. } => vec!["base", "give_up_after"],
        PolicyError::MinAttemptTimeTooLong { .. } => vec!["min_attempt_time", "attempt_timeout", "deadline"],
        _ => vec![error.field()],
    }
}

#[cfg(test)]
mod tests {
    use relent_core::BudgetConfig;

    use super::*;

    #[test]
    fn without_flags_each_standard_has_its_defaults() {
        let args = PolicyArgs::default();
        assert_eq!(args.build(Standard::Library).unwrap(), Policy::default());
        let run = args.build(Standard::Run).unwrap();
        assert_eq!((run.attempt_timeout(), run.deadline(), run.budget()), (None, None, None));
        assert_eq!((run.attempts(), run.backoff()), (3, Policy::default().backoff()));
    }

    #[test]
    fn a_detail_of_the_budget_asks_for_one() {
        let args = PolicyArgs { reserve: Some(1), ..PolicyArgs::default() };
        let policy = args.build(Standard::Run).unwrap();
        let budget = policy.budget().and_then(BudgetConfig::as_ratio).unwrap();
        assert_eq!((budget.ratio, budget.reserve), (defaults::BUDGET_RATIO, Some(1)));
    }
}
