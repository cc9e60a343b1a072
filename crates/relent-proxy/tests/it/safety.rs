//! Nothing is done twice that was not to be, and what the endpoint really said arrives.

use crate::rig::{Act, Endpoint, PLAIN, Rig};

const KEY: &str = "idempotency-key: order-7\r\n";

fn keyed() -> String {
    format!("{PLAIN}repeat = \"key-honoured\"\n")
}

#[tokio::test(start_paused = true)]
async fn p1_a_post_that_reached_the_endpoint_is_not_sent_again() {
    let rig = Rig::new(PLAIN, [Act::Close]);
    let response = rig.post("", "hello").await;
    assert_eq!((response.status, rig.seen().len()), (502, 1));
    assert!(response.text().contains("\"ambiguous\":true"), "{response:?}");

    let rig = Rig::new(&keyed(), [Act::Close, Act::ok("done")]);
    let response = rig.post(KEY, "hello").await;
    assert_eq!((response.status, rig.seen().len()), (200, 2));
    assert!(rig.seen().iter().all(|seen| seen.field("idempotency-key") == Some("order-7")));
}

#[tokio::test(start_paused = true)]
async fn p2_methods_that_are_not_idempotent_are_not_repeated() {
    for (method, expected) in [("POST", 1), ("GET", 2)] {
        let rig = Rig::new(PLAIN, [Act::Status(503, "busy"), Act::ok("")]);
        rig.send(&format!("{method} / HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        assert_eq!(rig.seen().len(), expected, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn p4_a_refused_retry_hands_on_what_the_endpoint_said() {
    let said = Act::Fields(500, "content-type: application/json\r\nx-own: 1\r\n", "{\"no\":1}");
    let rig = Rig::new(PLAIN, [said]);
    let response = rig.post("", "hello").await;
    assert_eq!((response.status, response.text()), (500, "{\"no\":1}"));
    assert_eq!(response.field("content-type"), Some("application/json"));
    assert_eq!((response.field("x-own"), rig.seen().len()), (Some("1"), 1));
}

/// Each way to a refusal, by policy and answer, with its reason; the answer's body arrives by all of them.
#[tokio::test(start_paused = true)]
async fn p5_every_refusal_hands_on_the_response() {
    let long = "attempt_timeout = \"200ms\"\ndeadline = \"300ms\"\n";
    let budget = "attempts = 3\nbackoff = { base = \"10ms\", jitter = \"none\" }\nbudget = { ratio = 0.1, reserve = 0 }\n";
    let cases = [
        ("NotRetryable", PLAIN.to_owned(), Act::Status(404, "said")),
        ("StoppedByPeer", PLAIN.to_owned(), Act::Fields(503, "relent-stop: scope=service\r\n", "said")),
        ("UnsafeToRepeat", PLAIN.to_owned(), Act::Status(503, "said")),
        ("AttemptsExhausted", PLAIN.to_owned(), Act::Status(503, "said")),
        ("HintTooLong", PLAIN.to_owned(), Act::Fields(503, "retry-after: 3600\r\n", "said")),
        ("DeadlineTooClose", format!("{PLAIN}{long}"), Act::Fields(503, "retry-after: 1\r\n", "said")),
        ("BudgetExhausted", budget.to_owned(), Act::Status(503, "said")),
    ];
    for (reason, policy, act) in cases {
        let rig = Rig::new(&policy, [act]);
        let response = match reason {
            "UnsafeToRepeat" => rig.post("", "hello").await,
            _ => rig.get("/").await,
        };
        assert_eq!(response.text(), "said", "{reason}: {response:?}");
        assert!(response.outcome().contains(&format!("stop={reason},")), "{reason}: {}", response.outcome());
    }
}

#[tokio::test(start_paused = true)]
async fn p5_a_body_that_can_not_be_kept_ends_the_call_with_the_response() {
    let policy = format!("{PLAIN}replay_limit = \"4B\"\n");
    let rig = Rig::new(&policy, [Act::Status(503, "said"), Act::ok("")]);
    let response = rig.send("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello").await;
    assert_eq!((response.status, response.text(), rig.seen().len()), (503, "said", 1));
    assert!(response.outcome().contains("stop=NotReplayable"), "{}", response.outcome());
}

#[tokio::test(start_paused = true)]
async fn p7_a_kept_body_is_no_permission() {
    // The second request comes on a connection that has served one.
    let rig = Rig::new(PLAIN, [Act::ok("first"), Act::Close, Act::ok("never")]);
    rig.get("/").await;
    let response = rig.post("", "hello").await;
    let seen = rig.seen();
    assert_eq!((response.status, seen.len()), (502, 2));
    assert_eq!((seen[1].connection, seen[1].text()), (0, "hello"));
}

#[tokio::test(start_paused = true)]
async fn p8_a_stale_connection_costs_a_post_nothing() {
    // The endpoint closes behind its first answer; nothing of the second request reaches it on that connection.
    let rig = Rig::new(PLAIN, [Act::ThenClose(Box::new(Act::ok("first"))), Act::ok("second")]);
    rig.get("/").await;
    let response = rig.post("", "hello").await;
    assert_eq!((response.status, response.text(), rig.seen().len()), (200, "second", 2));
}

#[tokio::test(start_paused = true)]
async fn p10_a_slow_endpoint_behind_two_proxies_sees_one_attempt_of_a_post() {
    let rig = Rig::new(PLAIN, [Act::Silence]);
    let response = rig.post("", "job").await;
    assert_eq!((response.status, rig.seen().len()), (504, 1));
}

#[tokio::test(start_paused = true)]
async fn p11_the_key_is_handed_on_as_it_is() {
    let rig = Rig::new(&keyed(), [Act::Status(503, ""), Act::Status(503, ""), Act::ok("")]);
    rig.post(KEY, "hello").await;
    let keys: Vec<_> = rig.seen().iter().map(|seen| seen.fields.all("idempotency-key").join("|")).collect();
    assert_eq!(keys, ["order-7", "order-7", "order-7"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_breaks_endpoints_reaches_two_of_them() {
    let poisonous = || Endpoint::new([Act::Close]);
    let policy = "attempts = 6\nbackoff = { base = \"1ms\", jitter = \"none\" }\nbudget = \"none\"\n";
    let rig = Rig::with(policy, "", [poisonous(), poisonous(), poisonous(), poisonous()]);
    let response = rig.get("/").await;
    let reached = rig.endpoints.iter().filter(|endpoint| !endpoint.seen().is_empty()).count();
    assert_eq!((response.status, reached), (502, 2));
}
