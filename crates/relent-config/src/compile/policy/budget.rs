//! `budget = { … }`: which budget pays for the retries, by its kind or by a peer's name.

use relent_core::{
    AdaptiveConfig, BudgetConfig, ConcurrencyConfig, CostConfig, Deposit, PolicyError, Ratio, RatioConfig,
    ThrottleConfig, WindowedConfig, defaults,
};

use super::draft::Draft;
use crate::report::Report;
use crate::text::{Item, Table};

/// The fields of the default kind, which needs no name.
pub(super) const RATIO_FIELDS: [&str; 5] = ["ratio", "window", "deposit", "reserve", "reserve_per_second"];

/// The other kinds, each with its fields.
const KINDS: [(&str, &[&str]); 5] = [
    ("windowed", &["ratio", "min_per_second", "ttl"]),
    ("throttle", &["max_tokens", "token_ratio"]),
    ("concurrency", &["ratio", "minimum"]),
    ("cost", &["capacity", "retry", "timeout", "throttled", "first_try"]),
    ("adaptive", &["factor", "window"]),
];

const DEPOSITS: [(&str, Deposit); 2] = [("success", Deposit::Success), ("request", Deposit::Request)];

const EXAMPLE: &str = "{ ratio = 0.1, window = \"10s\" }, \"none\", or a preset such as \"finagle\"";

pub(super) fn read(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    if item.as_text().is_some() {
        let presets = BudgetConfig::PRESETS.map(|(name, config)| (name, Some(config)));
        let words: Vec<_> = [("none", None)].into_iter().chain(presets).collect();
        draft.set_budget(item.choice(&words, report)?);
        return Some(());
    }
    let table = item.table("budget", EXAMPLE, report)?;
    let known: Vec<_> = RATIO_FIELDS.into_iter().chain(KINDS.map(|(kind, _)| kind)).collect();
    table.refuse_unknown(&known, &KINDS, report);
    let mut named = KINDS.iter().filter_map(|(kind, fields)| Some((table.item(kind)?, *fields)));
    let Some((kind, fields)) = named.next() else { return ratio(draft, &table, report) };
    let other = named.next().map(|(other, _)| other);
    if let Some(other) = other.or_else(|| RATIO_FIELDS.iter().find_map(|field| table.item(field))) {
        let fault = format!("a budget is of one kind: this one is `{}`, and so it has no", kind.name());
        report.add(
            crate::report::Fault::new(other.key_span(), format!("{fault} `{}`", other.name()))
                .mend(format!("keep one of them; all fields of `{}` stand inside of it", kind.name())),
        );
        return None;
    }
    let example = example(kind.name());
    let inner = kind.table(kind.name(), example, report)?;
    inner.refuse_unknown(fields, &[], report);
    let fields = &mut Fields { draft, table: &inner, report, good: true };
    let config = match kind.name() {
        "windowed" => windowed(fields).into(),
        "throttle" => throttle(fields).into(),
        "concurrency" => concurrency(fields).into(),
        "adaptive" => adaptive(fields).into(),
        _ => cost(fields).into(),
    };
    let good = fields.good;
    draft.set_budget(Some(config));
    good.then_some(())
}

fn example(kind: &str) -> &'static str {
    match kind {
        "windowed" => "{ ratio = 0.2, min_per_second = 10, ttl = \"10s\" }",
        "throttle" => "{ max_tokens = 10, token_ratio = 0.1 }",
        "concurrency" => "{ ratio = 0.2, minimum = 3 }",
        "adaptive" => "{ factor = 2, window = \"2m\" }",
        _ => "{ capacity = 500, retry = 5, timeout = 10 }",
    }
}

/// The fields of one kind, read one after another: also those after one that was refused.
struct Fields<'a, 't> {
    draft: &'a mut Draft,
    table: &'a Table<'t>,
    report: &'a mut Report,
    good: bool,
}

impl<'t> Fields<'_, 't> {
    /// Reads the field `name`, if it is there. `key` is what contradictions know it by.
    fn read<V>(
        &mut self,
        name: &str,
        key: &'static str,
        read: impl FnOnce(&Item<'t>, &mut Report) -> Option<V>,
        value: &mut V,
    ) {
        let Some(item) = self.table.item(name) else { return };
        self.draft.note(key, item.span());
        match read(&item, self.report) {
            Some(read) => *value = read,
            None => {
                self.draft.spoil(key);
                self.good = false;
            }
        }
    }

    fn share(&mut self, name: &str, key: &'static str, example: &str, value: &mut Ratio) {
        self.read(name, key, |item, report| item.ratio(example, report), value);
    }

    fn whole(&mut self, name: &str, key: &'static str, value: &mut u32) {
        let example = value.to_string();
        self.read(name, key, |item, report| item.whole(&example, report), value);
    }
}

fn ratio(draft: &mut Draft, table: &Table<'_>, report: &mut Report) -> Option<()> {
    let mut budget = RatioConfig::new(defaults::BUDGET_RATIO);
    let fields = &mut Fields { draft, table, report, good: true };
    fields.share("ratio", "ratio", "0.1", &mut budget.ratio);
    fields.read("window", "budget.window", |item, report| item.length(report), &mut budget.window);
    let deposit = |item: &Item<'_>, report: &mut Report| item.choice(&DEPOSITS, report);
    fields.read("deposit", "budget.deposit", deposit, &mut budget.deposit);
    let reserve = |item: &Item<'_>, report: &mut Report| item.whole("3", report).map(Some);
    fields.read("reserve", "budget.reserve", reserve, &mut budget.reserve);
    fields.share("reserve_per_second", "budget.reserve_per_second", "0.1", &mut budget.reserve_per_second);
    let good = fields.good;
    draft.set_budget(Some(budget.into()));
    good.then_some(())
}

fn windowed(fields: &mut Fields<'_, '_>) -> WindowedConfig {
    let mut budget = WindowedConfig::default();
    fields.share("ratio", "ratio", "0.2", &mut budget.ratio);
    fields.whole("min_per_second", "budget.min_per_second", &mut budget.min_per_second);
    fields.read("ttl", "budget.ttl", |item, report| item.length(report), &mut budget.ttl);
    budget
}

fn throttle(fields: &mut Fields<'_, '_>) -> ThrottleConfig {
    let mut budget = ThrottleConfig::default();
    fields.whole("max_tokens", "budget.max_tokens", &mut budget.max_tokens);
    fields.share("token_ratio", "budget.token_ratio", "0.1", &mut budget.token_ratio);
    budget
}

fn concurrency(fields: &mut Fields<'_, '_>) -> ConcurrencyConfig {
    let mut budget = ConcurrencyConfig::default();
    fields.share("ratio", "ratio", "0.2", &mut budget.ratio);
    fields.whole("minimum", "budget.minimum", &mut budget.minimum);
    budget
}

fn adaptive(fields: &mut Fields<'_, '_>) -> AdaptiveConfig {
    let mut budget = AdaptiveConfig::default();
    fields.share("factor", "budget.factor", "2", &mut budget.factor);
    fields.read("window", "budget.window", |item, report| item.length(report), &mut budget.window);
    budget
}

fn cost(fields: &mut Fields<'_, '_>) -> CostConfig {
    let mut budget = CostConfig::default();
    fields.whole("capacity", "budget.capacity", &mut budget.capacity);
    fields.whole("retry", "budget.retry", &mut budget.retry);
    fields.whole("timeout", "budget.timeout", &mut budget.timeout);
    fields.whole("throttled", "budget.throttled", &mut budget.throttled);
    fields.whole("first_try", "budget.first_try", &mut budget.first_try);
    budget
}

/// Sets a budget right where the core refused it, in a way that contradicts nothing else in it. `false`: it is not the
/// budget's fault.
pub(super) fn set_right(error: &PolicyError, draft: &mut Draft) -> bool {
    let Some(mut budget) = draft.budget() else { return false };
    match (&mut budget, error) {
        (BudgetConfig::Ratio(budget), PolicyError::BudgetRatioAboveOne(_)) => budget.ratio = Ratio::ONE,
        (BudgetConfig::Concurrency(budget), PolicyError::BudgetRatioAboveOne(_)) => budget.ratio = Ratio::ONE,
        (BudgetConfig::Throttle(budget), PolicyError::MaxTokensOutOfRange(_)) => budget.max_tokens = 1,
        (BudgetConfig::Throttle(budget), PolicyError::TokenRatioTooFine(_)) => {
            budget.token_ratio = Ratio::ONE
        }
        (BudgetConfig::Adaptive(budget), PolicyError::FactorBelowOne(_)) => budget.factor = Ratio::ONE,
        (BudgetConfig::Cost(budget), PolicyError::CostAboveCapacity { field, .. }) => {
            set_price(budget, field)
        }
        (budget, PolicyError::Zero(field) | PolicyError::TooLong { field, .. }) => match (budget, *field) {
            (BudgetConfig::Ratio(budget), "budget.window") => budget.window = defaults::BUDGET_WINDOW,
            (BudgetConfig::Adaptive(budget), "budget.window") => budget.window = defaults::BUDGET_WINDOW,
            (BudgetConfig::Windowed(budget), "budget.ttl") => budget.ttl = defaults::BUDGET_WINDOW,
            (BudgetConfig::Throttle(budget), "budget.token_ratio") => budget.token_ratio = Ratio::ONE,
            (BudgetConfig::Cost(budget), "budget.capacity") => budget.capacity = u32::MAX,
            (BudgetConfig::Cost(budget), "budget.first_try") => budget.first_try = 1,
            (BudgetConfig::Cost(budget), price) if price.starts_with("budget.") => set_price(budget, price),
            _ => return false,
        },
        _ => return false,
    }
    draft.set_budget(Some(budget));
    true
}

fn set_price(budget: &mut CostConfig, field: &str) {
    match field {
        "budget.retry" => budget.retry = 1,
        "budget.timeout" => budget.timeout = 1,
        _ => budget.throttled = 1,
    }
}
