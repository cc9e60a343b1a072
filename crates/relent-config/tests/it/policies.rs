//! Every field of a policy, as it comes out.

use std::time::Duration;

use relent_config::parse;
use relent_core::{
    BreakerConfig, BreakerWindow, BudgetConfig, Cause, ClassicConfig, Deposit, Growth, Jitter, Nested,
    Policy, Ratio, RatioConfig, RepeatRule, RetriesOnlyConfig, RetryOn,
};

/// The policy with these fields.
fn policy(fields: &str) -> Policy {
    let text = format!("version = 1\n[policy.a]\n{fields}\n");
    match parse("relent.toml", &text) {
        Ok(config) => config.policy("a").expect("it is there").clone(),
        Err(errors) => panic!("{errors}"),
    }
}

const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn an_empty_table_is_the_default_policy() {
    assert_eq!(policy(""), Policy::default());
    assert_eq!(policy("backoff = {}\nbudget = {}\nbreaker = \"none\""), Policy::default());
}

#[test]
fn every_field_arrives() {
    let read = policy(
        r#"
attempts = 0x5
backoff = { base = "50ms", cap = "1s", multiplier = 1.5, jitter = "equal", floor = "10ms" }
attempt_timeout = "500ms"
deadline = "1m30s"
give_up_after = "45s"
min_attempt_time = "2ms"
throttled_base = "2s"
max_hint = "1m"
budget = { ratio = 0.25, window = "5s", deposit = "request", reserve = 7, reserve_per_second = 1 }
breaker = { retries_only = { failure_rate = 0.4, window = "20s", minimum_calls = 30 } }
max_waiting = 1_000
repeat = "key-honoured"
retry_on = ["connect", 503]
nested = "pass-through"
replay_limit = "1MB"
replay_total = "1.5GiB"
"#,
    );
    let budget = RatioConfig {
        ratio: Ratio::percent(25),
        window: millis(5000),
        deposit: Deposit::Request,
        reserve: Some(7),
        reserve_per_second: Ratio::ONE,
    };
    let breaker =
        RetriesOnlyConfig { failure_rate: Ratio::percent(40), window: millis(20_000), minimum_calls: 30 };
    let built = Policy::exponential(millis(50), millis(1000))
        .attempts(5)
        .multiplier(Ratio::of(3, 2))
        .jitter(Jitter::Equal)
        .floor(millis(10))
        .attempt_timeout(millis(500))
        .deadline(millis(90_000))
        .give_up_after(millis(45_000))
        .min_attempt_time(millis(2))
        .throttled_base(millis(2000))
        .max_hint(millis(60_000))
        .budget(budget)
        .breaker(breaker)
        .max_waiting(1000)
        .repeat(RepeatRule::KeyHonoured)
        .retry_on(RetryOn::nothing().connect().status(503).expect("503 may be retried"))
        .nested(Nested::PassThrough)
        .replay_limit(1_000_000)
        .replay_total(3 << 29)
        .build();
    assert_eq!(Ok(read), built);
}

/// The policy with this breaker, and once more with what the settings say of it: they are the same.
fn breaker(text: &str) -> BreakerConfig {
    let breaker = |text: &str| *policy(&format!("breaker = {text}")).breaker().expect("there is one");
    let config = parse("f", &format!("version = 1\n[policy.a]\nbreaker = {text}\n")).expect("valid");
    let settings = config.settings("a");
    let told = settings.iter().find(|setting| setting.name == "breaker").expect("it is told");
    assert_eq!(breaker(&told.value), breaker(text));
    breaker(text)
}

#[test]
fn a_classic_breaker_arrives_with_every_field() {
    assert_eq!(breaker("{ classic = {} }"), ClassicConfig::new().into());
    let all = ClassicConfig::new()
        .failure_rate(Ratio::percent(40))
        .slow_calls(millis(2_000), Ratio::percent(70))
        .consecutive_failures(6)
        .window(BreakerWindow::Calls(200))
        .minimum_calls(30)
        .open_for(millis(1_500))
        .open_growth(Ratio::of(3, 2), millis(90_000))
        .open_jitter(Ratio::percent(20))
        .probes(4);
    let text = r#"{ classic = { failure_rate = 0.4, slow_call = "2s", slow_call_rate = 0.7, consecutive_failures = 6,
        calls = 200, minimum_calls = 30, open_for = "1.5s", open_multiplier = 1.5, open_cap = "1m30s", open_jitter = 0.2,
        probes = 4 } }"#
        .replace('\n', " ");
    assert_eq!(breaker(&text), all.into());
    let in_a_row = ClassicConfig::new().no_failure_rate().consecutive_failures(3);
    let in_a_row = in_a_row.window(BreakerWindow::Time(millis(60_000)));
    assert_eq!(
        breaker(r#"{ classic = { failure_rate = "none", consecutive_failures = 3, window = "1m" } }"#),
        in_a_row.into()
    );
}

#[test]
fn an_open_time_above_the_usual_cap_is_its_own_cap() {
    let long = ClassicConfig::new().open_for(millis(120_000)).open_growth(Ratio::of(2, 1), millis(120_000));
    assert_eq!(breaker(r#"{ classic = { open_for = "2m" } }"#), long.into());
}

#[test]
fn none_is_said_aloud() {
    let policy = policy("attempt_timeout = \"none\"\ndeadline = \"none\"\nbudget = \"none\"");
    assert_eq!((policy.attempt_timeout(), policy.deadline(), policy.budget()), (None, None, None));
}

#[test]
fn listed_waits_stand_for_base_and_cap() {
    let waits = [millis(1000), millis(30_000), millis(5000)];
    let text = "deadline = \"none\"\nbackoff = { growth = { steps = [\"1s\", \"30s\", \"5s\"] }";
    assert_eq!(policy(&format!("{text} }}")), Policy::steps(&waits).no_deadline().build().unwrap());
    let capped =
        Policy::steps(&waits).cap(millis(10_000)).jitter(Jitter::None).no_deadline().build().unwrap();
    assert_eq!(policy(&format!("{text}, cap = \"10s\", jitter = \"none\" }}")), capped);
}

#[test]
fn every_word_means_what_it_says() {
    let jitters = [
        ("\"none\"", Jitter::None),
        ("\"full\"", Jitter::Full),
        ("\"equal\"", Jitter::Equal),
        ("\"decorrelated\"", Jitter::Decorrelated),
        ("\"decorrelated-bounded\"", Jitter::DecorrelatedBounded),
        ("{ proportional = 0.2 }", Jitter::Proportional(Ratio::percent(20))),
        ("{ additive = 1 }", Jitter::Additive(Ratio::ONE)),
    ];
    for (word, jitter) in jitters {
        assert_eq!(policy(&format!("backoff.jitter = {word}")).backoff().jitter(), jitter);
    }
    let growths = [
        ("\"exponential\"", Growth::Exponential),
        ("\"linear\"", Growth::Linear),
        ("\"fibonacci\"", Growth::Fibonacci),
    ];
    for (word, growth) in growths {
        assert_eq!(*policy(&format!("backoff.growth = {word}")).backoff().growth(), growth);
    }
    let rules = [
        ("never", RepeatRule::Never),
        ("idempotent-methods", RepeatRule::IdempotentMethods),
        ("key-honoured", RepeatRule::KeyHonoured),
    ];
    for (word, rule) in rules {
        assert_eq!(policy(&format!("repeat = \"{word}\"")).repeat(), rule);
    }
    let always = policy("repeat = \"always\"\nrepeat_reason = \"the ledger drops doubles\"");
    assert_eq!(always.repeat(), RepeatRule::Always);
    for (word, nested) in
        [("credit", Nested::Credit), ("pass-through", Nested::PassThrough), ("allow", Nested::Allow)]
    {
        assert_eq!(policy(&format!("nested = \"{word}\"")).nested(), nested);
    }
}

#[test]
fn shares_are_taken_from_the_text() {
    for (text, parts) in
        [("0.1", 100_000), ("0.000001", 1), ("1", 1_000_000), ("+0.5", 500_000), ("0.100_000_0", 100_000)]
    {
        let policy = policy(&format!("budget.ratio = {text}"));
        let ratio = policy.budget().and_then(BudgetConfig::as_ratio).map(|budget| budget.ratio);
        assert_eq!(ratio, Some(Ratio::from_parts_per_million(parts)), "{text}");
    }
}

#[test]
fn retry_on_is_the_whole_list() {
    let only = *policy("retry_on = [\"timeout\", 425]").retry_on();
    assert!(only.contains(Cause::Timeout) && only.contains(Cause::Status(425)));
    assert!(!only.contains(Cause::Connect) && !only.contains(Cause::Status(503)));
}

#[test]
fn an_unknown_policy_names_the_nearest() {
    let config = parse("f", "version = 1\n[policy.users]\n[policy.orders]\n").expect("valid");
    let said = |name: &str| config.policy(name).expect_err("unknown").to_string();
    assert_eq!(said("user"), "there is no policy `user`: did you mean `users`?");
    assert_eq!(said("payments"), "there is no policy `payments`: there are `orders`, `users`");
    let none = parse("f", "version = 1\n").expect("valid");
    let unknown = none.policy("a\u{1b}").expect_err("unknown");
    assert_eq!(unknown.to_string(), "there is no policy `a\\u{1b}`: the file defines none");
    assert_eq!(unknown.name(), "a\u{1b}");
}
