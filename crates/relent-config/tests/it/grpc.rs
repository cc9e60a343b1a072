//! gRPC's service config: what it comes to as policies, what is refused, and what is noted.

use std::time::Duration;

use relent_config::grpc::{ServiceConfig, parse};
use relent_core::{
    BudgetConfig, Cause, GrpcCode, HedgeConfig, Jitter, Policy, Ratio, RepeatRule, RetryOn, ThrottleConfig,
};

use crate::cases;

fn ms(length: u64) -> Duration {
    Duration::from_millis(length)
}

fn read(text: &str) -> ServiceConfig {
    parse("service-config.json", text).expect("it is valid")
}

/// The config of grpc-go's retry tests, its throttling one.
const GRPC_GO: &str = r#"{
    "methodConfig": [{
      "name": [{"service": "grpc.testing.TestService"}],
      "waitForReady": true,
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": ".01s",
        "maxBackoff": ".01s",
        "backoffMultiplier": 1.0,
        "retryableStatusCodes": [ "UNAVAILABLE" ]
      }
    }],
    "retryThrottling": {
      "maxTokens": 10,
      "tokenRatio": 0.5
    }
}"#;

#[test]
fn a_retry_policy_becomes_a_policy_that_does_the_same() {
    let config = read(GRPC_GO);
    let throttle = ThrottleConfig { max_tokens: 10, token_ratio: Ratio::percent(50) };
    let unavailable = RetryOn::nothing().connect().reset().grpc(GrpcCode::Unavailable).expect("a failure");
    let expected = Policy::exponential(ms(10), ms(10))
        .multiplier(Ratio::ONE)
        .jitter(Jitter::Proportional(Ratio::percent(20)))
        .attempts(4)
        .no_attempt_timeout()
        .no_deadline()
        .throttled_base(Duration::ZERO)
        .budget(BudgetConfig::Throttle(throttle))
        .repeat(RepeatRule::Always)
        .retry_on(unavailable)
        .build()
        .expect("it is valid");
    assert_eq!(config.policy("/grpc.testing.TestService/EmptyCall"), Some(&expected));
    assert_eq!(config.throttle(), Some(throttle));
    let notes: Vec<_> = config.notes().map(|note| (note.line(), note.message().to_owned())).collect();
    assert!(matches!(&notes[..], [(Some(4), note)] if note.starts_with("waitForReady")), "{notes:?}");
}

#[test]
fn the_most_specific_name_goes_first() {
    let text = r#"{ "methodConfig": [
        { "name": [{}], "timeout": "1s" },
        { "name": [{ "service": "a.B" }, { "service": "a.C", "method": "" }], "timeout": "2.5s" },
        { "name": [{ "service": "a.B", "method": "D" }], "timeout": "0.000000003s" }
    ] }"#;
    // A nanosecond is too little for any attempt.
    assert!(parse("f", text).is_err());
    let config = read(&text.replace("0.000000003s", "3.000000003s"));
    let deadline = |path| config.policy(path).and_then(Policy::deadline);
    assert_eq!(deadline("/a.B/D"), Some(Duration::from_nanos(3_000_000_003)));
    assert_eq!((deadline("/a.B/E"), deadline("/a.C/D")), (Some(ms(2500)), Some(ms(2500))));
    assert_eq!((deadline("/x.Y/Z"), deadline("x")), (Some(ms(1000)), None));
    assert!(config.methods().all(|entry| entry.policy().attempts() == 1));
    let first = config.methods().next().expect("there is one");
    assert_eq!((first.service(), first.method()), (None, None));
}

#[test]
fn a_hedging_policy_becomes_hedges() {
    let config = read(
        r#"{ "methodConfig": [{ "name": [{ "service": "a.B" }], "hedgingPolicy": {
            "maxAttempts": 3, "hedgingDelay": "0.05s", "nonFatalStatusCodes": ["ABORTED", 13] } }] }"#,
    );
    let policy = config.policy("/a.B/C").expect("it has one");
    assert_eq!(policy.hedge(), Some(&HedgeConfig::after(ms(50)).most(2)));
    assert_eq!((policy.attempts(), policy.backoff().base(), policy.budget()), (3, Duration::ZERO, None));
    let codes: Vec<_> = policy.retry_on().grpc_codes().collect();
    assert_eq!(codes, [GrpcCode::Aborted, GrpcCode::Internal]);
    assert!(!policy.retry_on().contains(Cause::Reset));
}

#[test]
fn more_than_five_attempts_are_five_and_that_is_told() {
    let config = read(&GRPC_GO.replace("\"maxAttempts\": 4", "\"maxAttempts\": 9"));
    assert_eq!(config.policy("/grpc.testing.TestService/X").map(Policy::attempts), Some(5));
    let told: Vec<_> = config.notes().map(ToString::to_string).collect();
    assert!(told.iter().any(|note| note.contains("gRPC treats 9 attempts as 5")), "{told:?}");
}

/// What is wrong, and what is noted, as its reader sees it.
#[test]
fn faults_and_notes_have_a_place() {
    cases::check("service_config", |text| match parse("service-config.json", text) {
        Ok(config) => config.notes().map(ToString::to_string).collect::<Vec<_>>().join("\n\n"),
        Err(errors) => errors.to_string(),
    });
}
