//! The table of fields is whole, and its defaults are those of the engine.

use std::collections::BTreeSet;

use relent_config::parse;
use relent_core::{Policy, RatioConfig, defaults};

const PAGE: &str = include_str!("../../policy.md");

/// The rows of the table of fields: a field and its default, as they are written.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    let table = PAGE.split_once("| field | default |").expect("the page has the table").1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[1].trim_matches('`'), cells[2])
    })
}

/// Defaults that no file could write, since they follow from other fields, or are those of another kind.
const COMPUTED: [(&str, &str); 8] = [
    ("budget.reserve", "max(3, attempts − 1)"),
    ("throttled.cap", "none: it does not grow"),
    ("throttled.attempts", "attempts"),
    ("budget.windowed", "–"),
    ("budget.throttle", "–"),
    ("budget.concurrency", "–"),
    ("budget.cost", "–"),
    ("budget.adaptive", "–"),
];

fn read(policy: &str) -> Result<Policy, String> {
    let config = parse("page", &format!("version = 1\n[policy.a]\n{policy}\n"));
    Ok(config.map_err(|errors| errors.to_string())?.policies["a"].clone())
}

#[test]
fn every_default_is_the_engine_s() {
    for (field, default) in rows() {
        match default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) {
            Some(default) => {
                assert_eq!(read(&format!("{field} = {default}")), Ok(Policy::default()), "{field}");
            }
            None => assert!(COMPUTED.contains(&(field, default)), "{field}"),
        }
    }
}

#[test]
fn the_reserve_is_as_the_table_says() {
    let config = RatioConfig::new(defaults::BUDGET_RATIO);
    for attempts in 1..10 {
        assert_eq!(config.reserve_for(attempts), 3.max(attempts - 1));
    }
    assert_eq!(Policy::default().budget(), Some(&config.into()));
}

/// The reader of policy files itself names its fields, when it is asked for one that it has not.
#[test]
fn no_field_is_left_out() {
    let fields = |policy: &str| -> BTreeSet<String> {
        let errors = read(policy).expect_err("colour is no field");
        let list = errors.split("its fields are ").nth(1).expect("the mend names them");
        let list = list.lines().next().expect("a line");
        list.split(", ").map(|field| field.trim_matches('`').to_owned()).collect()
    };
    let mut wanted = fields("colour = 1");
    for table in ["backoff", "budget", "throttled"] {
        assert!(wanted.remove(table));
        wanted.extend(
            fields(&format!("{table} = {{ colour = 1 }}")).iter().map(|field| format!("{table}.{field}")),
        );
    }
    // It belongs to `repeat = "always"`, and has no default.
    assert!(wanted.remove("repeat_reason") && PAGE.contains("`repeat_reason`"));
    let documented: BTreeSet<String> = rows().map(|(field, _)| field.to_owned()).collect();
    let missing: Vec<_> = wanted.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&wanted).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "no row: {missing:?}; no field: {unknown:?}");
}

/// Numbers in running text.
#[test]
fn the_prose_quotes_the_defaults() {
    let (breaker, timeout) = (defaults::BREAKER_WINDOW.as_secs(), defaults::ATTEMPT_TIMEOUT.as_secs());
    let (rate, calls) = (defaults::BREAKER_FAILURE_RATE, defaults::BREAKER_MINIMUM_CALLS);
    let kept = defaults::KEPT_RESPONSE / 1024;
    let phrases = [
        (PAGE, format!("({rate}, over {breaker} s, from {calls} attempts on)")),
        (PAGE, format!("the reserve of {} pays", defaults::BUDGET_RESERVE)),
        (
            include_str!("../../compare-go-loop.md"),
            format!("its own time, {timeout} s unless you say otherwise"),
        ),
        (
            include_str!("../../compare-go-loop.md"),
            format!("`min_attempt_time`, {} ms", defaults::MIN_ATTEMPT_TIME.as_millis()),
        ),
        (include_str!("../../life-of-a-call.md"), format!("read to memory, up to {kept} KiB")),
        (include_str!("../../design/why.md"), format!("A body over {kept} KiB is not")),
    ];
    for (page, phrase) in phrases {
        let words: Vec<&str> = page.split_whitespace().collect();
        assert!(words.join(" ").contains(&phrase), "{phrase}");
    }
}
