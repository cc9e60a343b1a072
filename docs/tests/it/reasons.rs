//! Every reason to stop stands in the table of decisions, in the engine's order.

const PAGE: &str = include_str!("../../policy.md");
const ENGINE: &str = include_str!("../../../crates/relent-core/src/session/step.rs");

/// The names in the order of the engine's enum.
fn reasons() -> Vec<&'static str> {
    let arms = ENGINE.split("StopReason::").filter_map(|rest| rest.split_once(" => \""));
    arms.filter(|(name, text)| text.starts_with(&format!("{name}\""))).map(|(name, _)| name).collect()
}

#[test]
fn every_reason_is_explained() {
    assert!(reasons().len() >= 14, "{:?}", reasons());
    let section = PAGE.split_once("## How it is decided").expect("the page has the section").1;
    for reason in reasons() {
        assert!(section.contains(&format!("`{reason}`")), "{reason}");
    }
}

#[test]
fn the_questions_stand_in_the_engine_s_order() {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let asked: Vec<&str> = rows
        .filter_map(|row| row.rsplit('`').nth(1))
        .filter(|name| name.chars().next().is_some_and(char::is_uppercase))
        .collect();
    assert_eq!(asked.first(), Some(&"DeadlineExceeded"));
    let among = |list: &[&'static str]| -> Vec<&'static str> {
        list.iter().copied().filter(|name| asked[1..].contains(name)).collect()
    };
    assert_eq!(among(&reasons()), asked[1..]);
}
