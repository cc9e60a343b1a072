//! A policy while it is read: a builder, and which fields the file sets, where.

use std::collections::BTreeMap;
use std::ops::Range;

use relent_core::{BreakerConfig, BudgetConfig, Cause, CostConfig, PolicyBuilder, ThrottledConfig, defaults};

use crate::report::Fault;
use crate::{format_duration, format_size};

/// A policy while it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    builder: PolicyBuilder,
    budget: Option<BudgetConfig>,
    breaker: Option<BreakerConfig>,
    pub(super) throttled: ThrottledConfig,
    pub(super) limits: Vec<(Cause, u32)>,
    fields: BTreeMap<&'static str, Field>,
}

#[derive(Debug)]
struct Field {
    span: Range<usize>,
    /// Its value was refused: what follows from the default in its place is no fault of the file.
    spoilt: bool,
}

impl Draft {
    /// Changes the builder.
    pub(super) fn set(&mut self, change: impl FnOnce(PolicyBuilder) -> PolicyBuilder) {
        self.builder = change(std::mem::take(&mut self.builder));
    }

    /// Sets the budget, or none.
    pub(super) fn set_budget(&mut self, budget: Option<BudgetConfig>) {
        self.budget = budget;
        self.set(|builder| match budget {
            Some(budget) => builder.budget(budget),
            None => builder.no_budget(),
        });
    }

    /// Sets the breaker, or none.
    pub(super) fn set_breaker(&mut self, breaker: Option<BreakerConfig>) {
        self.breaker = breaker;
        self.set(|builder| match breaker {
            Some(breaker) => builder.breaker(breaker),
            None => builder.no_breaker(),
        });
    }

    /// The file sets this field, there.
    pub(super) fn note(&mut self, name: &'static str, span: Range<usize>) {
        self.fields.insert(name, Field { span, spoilt: false });
    }

    /// What the file says of this field was refused.
    pub(super) fn spoil(&mut self, name: &str) {
        if let Some(field) = self.fields.get_mut(name) {
            field.spoilt = true;
        }
    }

    pub(super) fn builder(&self) -> PolicyBuilder {
        let throttled = self.builder.clone().throttled(self.throttled);
        self.limits
            .iter()
            .fold(throttled, |builder, (cause, attempts)| builder.attempts_on(*cause, *attempts))
    }

    pub(super) fn budget(&self) -> Option<BudgetConfig> {
        self.budget
    }

    pub(super) fn breaker(&self) -> Option<BreakerConfig> {
        self.breaker
    }

    /// Whether none of these fields was refused.
    pub(super) fn is_good(&self, names: &[&str]) -> bool {
        !names.iter().any(|name| self.fields.get(name).is_some_and(|field| field.spoilt))
    }

    /// Every field that the file sets.
    pub(super) fn spans(self) -> Vec<(&'static str, Range<usize>)> {
        self.fields.into_iter().map(|(name, field)| (name, field.span)).collect()
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Where the first of these fields that the file sets stands.
    pub(super) fn span(&self, names: &[&str]) -> Option<Range<usize>> {
        names.iter().find_map(|name| self.fields.get(name)).map(|field| field.span.clone())
    }

    /// `fault`, with a note for each of these fields that has its default, since the file does not show it; and the
    /// place of the second one that the file does set.
    pub(super) fn with_defaults(&self, mut fault: Fault, names: &[&'static str]) -> Fault {
        for name in names.iter().filter(|name| !self.is_set(name)) {
            if let Some(default) = default_of(name) {
                fault = fault.note(format!("{name} is not set, and its default is {default}"));
            }
        }
        let second = names.iter().filter(|name| self.is_set(name)).nth(1);
        match second.and_then(|name| self.span(&[name]).map(|span| (name, span))) {
            Some((name, span)) => fault.related(format!("{name} is set here"), span),
            None => fault,
        }
    }
}

/// The default of a field that can contradict another, as the file would write it.
fn default_of(name: &str) -> Option<String> {
    let length = match name {
        "attempts" => return Some(defaults::ATTEMPTS.to_string()),
        "budget.capacity" => return Some(CostConfig::default().capacity.to_string()),
        "budget.retry" => return Some(CostConfig::default().retry.to_string()),
        "budget.timeout" => return Some(CostConfig::default().timeout.to_string()),
        "budget.throttled" => return Some(CostConfig::default().throttled.to_string()),
        "replay_limit" => return Some(format_size(defaults::REPLAY_LIMIT)),
        "replay_total" => return Some(format_size(defaults::REPLAY_TOTAL)),
        "base" => defaults::BASE,
        "cap" => defaults::CAP,
        "attempt_timeout" => defaults::ATTEMPT_TIMEOUT,
        "deadline" => defaults::DEADLINE,
        "min_attempt_time" => defaults::MIN_ATTEMPT_TIME,
        "throttled_base" => defaults::THROTTLED_BASE,
        "max_hint" => defaults::MAX_HINT,
        _ => return None,
    };
    Some(format_duration(length))
}
