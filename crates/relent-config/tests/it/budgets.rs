//! Budgets of every kind, from the file and back to it.

use relent_config::{Setting, parse};
use relent_core::{
    BudgetConfig, ConcurrencyConfig, CostConfig, Deposit, Policy, Ratio, RatioConfig, ThrottleConfig,
    WindowedConfig,
};

/// The budget of a policy with this field, and the same as the configuration writes it out.
fn budget(field: &str) -> (Option<BudgetConfig>, String) {
    let text = format!("version = 1\n[policy.a]\n{field}\n");
    let config = parse("relent.toml", &text).unwrap_or_else(|errors| panic!("{errors}"));
    let settings = config.settings("a");
    let written = |setting: &Setting| (setting.name == "budget").then(|| setting.value.clone());
    (config.policies["a"].budget().copied(), settings.iter().find_map(written).expect("it is a setting"))
}

#[test]
fn every_kind_is_read_and_written_out_as_it_is_read() {
    let seconds = std::time::Duration::from_secs;
    let half = Ratio::percent(50);
    let configs: [BudgetConfig; 6] = [
        RatioConfig { deposit: Deposit::Request, reserve: Some(7), ..RatioConfig::new(half) }.into(),
        WindowedConfig { ratio: Ratio::of(2, 1), min_per_second: 1, ttl: seconds(30) }.into(),
        ThrottleConfig { max_tokens: 1_000, token_ratio: Ratio::of(1, 1_000) }.into(),
        ConcurrencyConfig { ratio: half, minimum: 0 }.into(),
        CostConfig { capacity: 10, retry: 1, timeout: 2, throttled: 3, first_try: 4 }.into(),
        CostConfig::AWS_2026.into(),
    ];
    for config in configs {
        let policy = Policy::builder().budget(config).build().unwrap();
        let named = std::collections::BTreeMap::from([("a".to_owned(), policy)]);
        let written = written(&named["a"]);
        let (read, again) = budget(&format!("budget = {written}"));
        assert_eq!(read, Some(config), "{written}");
        assert_eq!(again, written);
    }
}

/// As [`relent_config`] would write the budget of this policy.
fn written(policy: &Policy) -> String {
    let (a, b) = match policy.budget() {
        Some(BudgetConfig::Ratio(config)) => {
            let deposit = if config.deposit == Deposit::Request { "request" } else { "success" };
            let (ratio, window) = (config.ratio, config.window.as_secs());
            let (reserve, rate) = (config.reserve_for(policy.attempts()), config.reserve_per_second);
            return format!(
                "{{ ratio = {ratio}, window = \"{window}s\", deposit = \"{deposit}\", reserve = {reserve}, reserve_per_second = {rate} }}"
            );
        }
        Some(BudgetConfig::Windowed(config)) => (
            "windowed",
            format!(
                "ratio = {}, min_per_second = {}, ttl = \"{}s\"",
                config.ratio,
                config.min_per_second,
                config.ttl.as_secs()
            ),
        ),
        Some(BudgetConfig::Throttle(config)) => {
            ("throttle", format!("max_tokens = {}, token_ratio = {}", config.max_tokens, config.token_ratio))
        }
        Some(BudgetConfig::Concurrency(config)) => {
            ("concurrency", format!("ratio = {}, minimum = {}", config.ratio, config.minimum))
        }
        Some(BudgetConfig::Cost(config)) => (
            "cost",
            format!(
                "capacity = {}, retry = {}, timeout = {}, throttled = {}, first_try = {}",
                config.capacity, config.retry, config.timeout, config.throttled, config.first_try
            ),
        ),
        Some(BudgetConfig::Adaptive(config)) => {
            ("adaptive", format!("factor = {}, window = \"{}s\"", config.factor, config.window.as_secs()))
        }
        other => panic!("{other:?} has no form"),
    };
    format!("{{ {a} = {{ {b} }} }}")
}

#[test]
fn presets_by_name_and_what_is_left_out_of_a_kind() {
    for (name, config) in BudgetConfig::PRESETS {
        assert_eq!(budget(&format!("budget = \"{name}\"")).0, Some(config));
    }
    for (field, config) in [
        ("{ windowed = {} }", BudgetConfig::from(WindowedConfig::FINAGLE)),
        ("{ throttle = {} }", ThrottleConfig::GRPC.into()),
        ("{ concurrency = {} }", ConcurrencyConfig::ENVOY.into()),
        ("{ cost = {} }", CostConfig::AWS_STANDARD.into()),
        ("{ cost = { retry = 14 } }", CostConfig { retry: 14, ..CostConfig::AWS_STANDARD }.into()),
        ("{}", BudgetConfig::default()),
    ] {
        assert_eq!(budget(&format!("budget = {field}")).0, Some(config), "{field}");
    }
    assert_eq!(budget("budget = \"none\""), (None, "none".to_owned()));
}

#[test]
fn the_sample_has_each_peers_numbers() {
    let config = parse("f", include_str!("../../samples/relent.toml")).expect("valid");
    let of = |policy: &str| config.policies[policy].budget().copied();
    assert_eq!(of("like-finagle"), BudgetConfig::preset("finagle"));
    assert_eq!(of("like-finagle"), BudgetConfig::preset("linkerd"));
    assert_eq!(of("like-grpc"), BudgetConfig::preset("grpc"));
    assert_eq!(of("like-envoy"), BudgetConfig::preset("envoy"));
    assert_eq!(of("like-aws"), BudgetConfig::preset("aws-standard"));
}
