//! The sample and the tables of the documentation say what the code does.

use std::time::Duration;

use relent_config::{Config, Upstream, format_duration, parse};
use relent_core::{ClassicConfig, Policy, RetriesOnlyConfig, defaults};

const SAMPLE: &str = include_str!("../../samples/relent.toml");
const DOCS: &str = include_str!("../../src/lib.rs");

fn read(text: &str) -> Config {
    parse("relent.toml", text).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn the_sample_is_valid_and_its_defaults_are_the_defaults() {
    let config = read(SAMPLE);
    assert_eq!(config.policies["defaults"], Policy::default());
    assert_eq!(config.policies["ledger"].breaker(), Some(&RetriesOnlyConfig::DEFAULT.into()));
    let classic = ClassicConfig::new().slow_calls(Duration::from_secs(2), defaults::BREAKER_SLOW_CALL_RATE);
    assert_eq!(config.policies["search"].breaker(), Some(&classic.consecutive_failures(5).into()));
    let api = &config.upstreams["api"];
    assert_eq!((api.idle_timeout, api.connect_timeout), (Upstream::IDLE_TIMEOUT, Upstream::CONNECT_TIMEOUT));
    assert!(api.trust && api.stamp && config.proxy.is_some() && config.routes.len() == 2);
}

#[test]
fn the_reserve_in_the_sample_is_the_default_one() {
    let text = SAMPLE.replace("# reserve = 3 ", "reserve = 3 ");
    assert_ne!(text, SAMPLE, "the sample names the reserve");
    let policy = &read(&text).policies["defaults"];
    let of =
        |policy: &Policy| policy.budget()?.as_ratio().map(|budget| budget.reserve_for(policy.attempts()));
    assert_eq!(of(policy), of(&Policy::default()));
    assert_eq!(of(policy), Some(defaults::BUDGET_RESERVE));
}

/// The reader itself says which fields there are.
#[test]
fn every_field_is_in_the_sample() {
    let breaker = "breaker = { retries_only = { colour = 1 } }\nbackoff = { colour = 1, growth = { colour = 1 }, jitter = { colour = 1 } }\nthrottled = { colour = 1 }\nbudget = { colour = 1 }";
    let kinds: String = ["windowed", "throttle", "concurrency", "cost", "adaptive"]
        .map(|kind| format!("[policy.{kind}]\nbudget = {{ {kind} = {{ colour = 1 }} }}\n"))
        .concat();
    let more = "[policy.b]\nbreaker = { classic = { colour = 1 } }\nhedge = { colour = 1 }\n";
    let text = format!(
        "version = 1\ncolour = 1\n[proxy]\ncolour = 1\n[policy.a]\ncolour = 1\n{breaker}\n{kinds}{more}[upstream.a]\ncolour = 1\n[[route]]\ncolour = 1\n"
    );
    let errors = parse("f", &text).expect_err("colour is no field");
    let lists: Vec<_> =
        errors.iter().filter_map(|fault| fault.mend()?.strip_prefix("its fields are ")).collect();
    assert_eq!(lists.len(), 17, "a list for each table: {errors}");
    for field in lists.iter().flat_map(|list| list.split(", ")).map(|field| field.trim_matches('`')) {
        let uses = [format!("{field} = "), format!("[{field}]"), format!("[{field}."), format!(".{field}]")];
        assert!(uses.iter().any(|used| SAMPLE.contains(used)), "{field} is not in the sample");
        let documented =
            [format!("`{field}`"), format!(".{field}`"), format!("`{field}."), format!("{field} = ")];
        assert!(documented.iter().any(|named| DOCS.contains(named)), "{field} is not in the documentation");
    }
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let mut rows = 0;
    for line in DOCS.lines() {
        let cells: Vec<_> = line.trim_start_matches("//!").split('|').map(str::trim).collect();
        let [_, field, default, ..] = cells[..] else { continue };
        let (field, Some(default)) = (field.trim_matches('`'), default.strip_prefix('`')) else { continue };
        let default = default.trim_end_matches('`');
        rows += 1;
        if let Some(field) = field.strip_prefix("upstream.NAME.") {
            let with =
                format!("version = 1\n[upstream.a]\nendpoints = [\"http://a\"]\n{field} = {default}\n");
            let without = "version = 1\n[upstream.a]\nendpoints = [\"http://a\"]\n";
            assert_eq!(read(&with), read(without), "{field}");
        } else if let Some(field) = field.strip_prefix("proxy.") {
            let file = |line: &str| {
                format!("version = 1\n[proxy]\nlisten = \"127.0.0.1:80\"\n{line}\n{REST_OF_A_PROXY}")
            };
            assert_eq!(read(&file(&format!("{field} = {default}"))), read(&file("")), "{field}");
        } else if !field.contains("route.") {
            let policy =
                read(&format!("version = 1\n[policy.a]\n{field} = {default}\n")).policies["a"].clone();
            assert_eq!(policy, Policy::default(), "{field}");
        }
    }
    assert_eq!(rows, 44, "rows with a default that the file could write");
}

const REST_OF_A_PROXY: &str =
    "[policy.a]\n[upstream.a]\nendpoints = [\"http://a\"]\n[[route]]\nupstream = \"a\"\npolicy = \"a\"\n";

/// What contradictions say of fields that are not set.
#[test]
fn defaults_in_messages_are_the_defaults() {
    let errors = parse("f", "version = 1\n[policy.a]\ndeadline = \"2s\"\n").expect_err("5s is not below 2s");
    let note = format!(
        "attempt_timeout is not set, and its default is {}",
        format_duration(defaults::ATTEMPT_TIMEOUT)
    );
    assert_eq!(errors.iter().next().expect("one").notes().collect::<Vec<_>>(), [note]);
}
