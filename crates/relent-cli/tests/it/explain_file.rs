//! `relent explain` with a policy file.

use crate::support::{Ran, file, relent};

const ONE: &str = "\
version = 1

[policy.api]
attempts = 4
backoff = { base = \"50ms\", cap = \"1s\", multiplier = 2, jitter = \"full\" }
attempt_timeout = \"500ms\"
deadline = \"2s\"
repeat = \"key-honoured\"
";

const TWO: &str = "\
version = 1

[policy.api]
attempts = 4

[policy.batch]
attempts = 9
";

fn explain(test: &str, text: &str, more: &[&str]) -> Ran {
    let path = file(test, "relent.toml", text);
    let args = ["explain", path.to_str().unwrap()];
    relent(args.iter().chain(more))
}

#[test]
fn the_only_policy_needs_no_name() {
    let ran = explain("only", ONE, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert!(ran.out.starts_with("Policy: api in "), "{}", ran.out);
    assert!(ran.out.contains("repeat = \"key-honoured\""), "{}", ran.out);
    assert!(ran.out.contains("4 attempts in all; 500ms for each, 2s for the whole call"), "{}", ran.out);
}

#[test]
fn a_breaker_is_told() {
    let text = format!("{ONE}breaker = {{ retries_only = {{ failure_rate = 0.4, minimum_calls = 10 }} }}\n");
    let said = "Retries are refused while 40 % of the attempts in the last 10s fail, once there are 10";
    let ran = explain("breaker", &text, &[]);
    assert!(ran.out.contains(said), "{ran:?}");
}

#[test]
fn a_classic_breaker_is_told() {
    let text = format!(
        "{ONE}breaker = {{ classic = {{ calls = 100, slow_call = \"1s\", consecutive_failures = 5 }} }}\n"
    );
    let ran = explain("classic", &text, &[]);
    for said in [
        "Opens when 50 % of the last 100 attempts fail, once there are 20.",
        "Opens when 80 % of the last 100 attempts take 1s or longer, once there are 20.",
        "Opens after 5 failures in a row.",
        "Open, it refuses everything for 5s (up to 1m when its probes fail); then 3 good probes close it.",
    ] {
        assert!(ran.out.contains(said), "{said}: {ran:?}");
    }
    let json = explain("classic-json", &text, &["--format", "json"]);
    assert!(
        json.out.contains("\"kind\":\"classic\"") || json.out.contains("\"kind\": \"classic\""),
        "{json:?}"
    );
}

#[test]
fn one_of_several_is_chosen_by_name() {
    for format in ["text", "json"] {
        let ran = explain("several", TWO, &["--format", format]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""));
        assert!(
            ran.err.contains("has 2 policies: choose one with --policy api or --policy batch"),
            "{}",
            ran.err
        );
    }
    let ran = explain("chosen", TWO, &["--policy", "batch", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["policy"]["attempts"], 9);
}

#[test]
fn an_unknown_name_gets_the_nearest() {
    let ran = explain("unknown", TWO, &["--policy", "bath"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--policy: there is no policy") && ran.err.contains("batch"), "{}", ran.err);
}

#[test]
fn a_faulty_file_is_shown_at_its_place() {
    let ran = explain("faulty", "version = 1\n[policy.api]\nattempts = 0\n", &[]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("relent.toml:3:12"), "{}", ran.err);
}

#[test]
fn a_file_and_flags_contradict_each_other() {
    let ran = explain("both", ONE, &["--attempts", "3"]);
    assert_eq!(ran.code, 2);
    assert!(
        ran.err.contains("a policy file and --attempts contradict each other: change the policy in the file"),
        "{}",
        ran.err
    );
}

#[test]
fn a_name_needs_a_file() {
    let ran = relent(["explain", "--policy", "api"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("--policy names a policy of a file: give the file"), "{}", ran.err);
}

#[test]
fn a_missing_file_and_one_without_policies_are_said_so() {
    let ran = relent(["explain", "/no/such/relent.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("/no/such/relent.toml"), "{}", ran.err);
    let ran = explain("none", "version = 1\n", &[]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("has no policy: add one, such as [policy.api]"), "{}", ran.err);
}

/// Every kind is explained, and says no figure that nobody can know.
#[test]
fn budgets_of_every_kind() {
    let kinds = ["finagle", "linkerd", "grpc", "envoy", "aws-standard", "aws-2026"];
    for name in kinds {
        let text = format!("version = 1\n[policy.api]\nbudget = \"{name}\"\n");
        let fleet = ["--processes", "10", "--rps", "5"];
        let told = explain(name, &text, &fleet).out;
        let json = explain(name, &text, &[&fleet[..], &["--format", "json"]].concat()).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let kind = json["budget"]["kind"].as_str().unwrap();
        assert_eq!(json["fleet"].is_null(), kind == "concurrency", "{name}");
        assert_eq!(json["load_factor"]["outage"].is_null(), kind == "concurrency", "{name}");
        assert_eq!(told.contains(" ?  "), kind == "concurrency", "{name}: {told}");
        assert_eq!(told.contains("Fleet: 10 processes"), kind != "concurrency", "{name}: {told}");
    }
}
