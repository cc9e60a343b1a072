//! How many attempts there are, who is told of them, and what they cost.

use std::time::Duration;

use crate::rig::clock::{Watch, sleep};
use crate::rig::{Act, Endpoint, PLAIN, Rig};

#[tokio::test(start_paused = true)]
async fn p43_a_refusal_of_the_budget_names_itself() {
    let policy = "backoff = { base = \"10ms\", jitter = \"none\" }\nbudget = { ratio = 0.1, reserve = 0 }\n";
    let rig = Rig::new(policy, [Act::Status(503, "said")]);
    let response = rig.get("/").await;
    assert_eq!((response.status, rig.seen().len()), (503, 1));
    assert!(response.outcome().contains("stop=BudgetExhausted"), "{}", response.outcome());
    assert_eq!(response.field("relent-stop"), Some("scope=host, reason=budget"));
    assert!(rig.metric("relent_budget_refusals_total").contains(" 1"));
    assert_eq!(response.field("x-envoy-ratelimited"), None);

    let rig = Rig::of("rate_limited_header = true", policy, "", [Endpoint::new([Act::Status(503, "said")])]);
    assert_eq!(rig.get("/").await.field("x-envoy-ratelimited"), Some("true"));
}

#[tokio::test(start_paused = true)]
async fn p46_a_stop_mark_for_the_host_sends_the_retry_elsewhere() {
    let marked = |scope: &'static str| Act::Fields(503, scope, "said");
    for (mark, expected) in [
        ("relent-stop: scope=host\r\n", 200),
        ("relent-stop: scope=service\r\n", 503),
        ("x-envoy-ratelimited: true\r\n", 503),
    ] {
        let rig = Rig::with(PLAIN, "", [Endpoint::new([marked(mark)]), Endpoint::new([Act::ok("done")])]);
        let response = rig.get("/").await;
        assert_eq!(response.status, expected, "{mark}");
        assert_eq!(response.field("relent-stop"), None, "consumed here");
    }
    // One that can't choose among hosts takes it for the service; a mark for the chain is passed up.
    let rig = Rig::new(PLAIN, [marked("relent-stop: scope=host\r\n")]);
    assert_eq!((rig.get("/").await.status, rig.seen().len()), (503, 1));
    let rig = Rig::new(PLAIN, [marked("relent-stop: scope=chain\r\n")]);
    let response = rig.get("/").await;
    assert_eq!((response.field("relent-stop"), rig.seen().len()), (Some("scope=chain"), 1));
    // And one from an upstream that is not trusted is none.
    let rig = Rig::with(
        PLAIN,
        "trust = false\n",
        [Endpoint::new([marked("relent-stop: scope=service\r\n"), Act::ok("done")])],
    );
    assert_eq!(rig.get("/").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn p47_a_throttling_answer_is_waited_out_as_asked() {
    let rig = Rig::new(PLAIN, [Act::Fields(429, "retry-after: 1\r\n", ""), Act::ok("done")]);
    let watch = Watch::start();
    assert_eq!(rig.get("/").await.text(), "done");
    assert!(watch.elapsed() >= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn p49_one_attempt_is_one_attempt() {
    let rig = Rig::new("attempts = 1\nbudget = \"none\"\n", [Act::Status(503, "said")]);
    assert_eq!((rig.get("/").await.status, rig.seen().len()), (503, 1));
}

#[tokio::test(start_paused = true)]
async fn p50_attempts_are_numbered_one_by_one() {
    let policy = "attempts = 6\nbackoff = { base = \"1ms\", jitter = \"none\" }\nbudget = \"none\"\n";
    let rig = Rig::new(
        policy,
        [
            Act::Status(503, ""),
            Act::Close,
            Act::Status(500, ""),
            Act::Status(503, ""),
            Act::Close,
            Act::ok(""),
        ],
    );
    rig.send("GET / HTTP/1.1\r\nhost: a\r\nx-envoy-attempt-count: 99\r\nrelent-attempts: left=9\r\n\r\n")
        .await;
    let numbers: Vec<_> =
        rig.seen().iter().map(|seen| seen.field("x-envoy-attempt-count").unwrap().to_owned()).collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6"]);
}

#[tokio::test(start_paused = true)]
async fn another_proxys_attempts_lower_our_own() {
    for (number, expected) in [("1", 3), ("2", 2), ("3", 1), ("9", 1), ("x", 3)] {
        let rig = Rig::new(PLAIN, [Act::Status(503, "")]);
        let response =
            rig.send(&format!("GET / HTTP/1.1\r\nhost: a\r\nx-envoy-attempt-count: {number}\r\n\r\n")).await;
        assert_eq!(rig.seen().len(), expected, "{number}");
        assert_eq!(response.field("relent-attempts"), None, "nobody asked");
    }
}

#[tokio::test(start_paused = true)]
async fn credit_is_kept_to_and_reported() {
    for (left, expected, used) in
        [("0", 1, "used=0"), ("1", 2, "used=1"), ("2", 3, "used=2"), ("7", 3, "used=2")]
    {
        let rig = Rig::new(PLAIN, [Act::Status(503, "")]);
        let response =
            rig.send(&format!("GET / HTTP/1.1\r\nhost: a\r\nrelent-attempts: left={left}\r\n\r\n")).await;
        assert_eq!((rig.seen().len(), response.field("relent-attempts")), (expected, Some(used)), "{left}");
    }
    // Always, also where nothing was used, and where nothing was answered.
    let rig = Rig::new(PLAIN, [Act::ok("")]);
    let response = rig.send("GET / HTTP/1.1\r\nhost: a\r\nrelent-attempts: left=2\r\n\r\n").await;
    assert_eq!(response.field("relent-attempts"), Some("used=0"));
    let rig = Rig::new(PLAIN, [Act::Refuse]);
    let response = rig.send("GET / HTTP/1.1\r\nhost: a\r\nrelent-attempts: left=2\r\n\r\n").await;
    assert_eq!((response.status, response.field("relent-attempts")), (503, Some("used=2")));
}

/// Three proxies before a leaf that is dead: three attempts arrive, not 27; also while the middle one is cut off.
#[tokio::test(start_paused = true)]
async fn three_proxies_in_series_make_the_first_ones_attempts() {
    let leaf = Endpoint::new([Act::Status(503, "dead")]);
    let inner = Rig::with(PLAIN, "", [leaf.clone()]);
    let inner_door = Endpoint::engine(&inner.engine);
    let middle = Rig::with(PLAIN, "", [inner_door.clone()]);
    let middle_door = Endpoint::engine(&middle.engine);
    let outer = Rig::with(PLAIN, "", [middle_door.clone()]);

    let mut before = 0;
    let mut calls = Vec::new();
    for _ in 0..5 {
        let response = outer.get("/").await;
        assert_eq!(response.text(), "dead");
        calls.push(leaf.seen().len() - before);
        before = leaf.seen().len();
    }
    assert_eq!(calls, [3; 5], "each call costs the outermost attempts");

    middle_door.cut_off(true);
    sleep(Duration::from_millis(10)).await;
    let response = outer.get("/").await;
    assert_eq!((response.status, leaf.seen().len()), (503, before));
    middle_door.cut_off(false);
    outer.get("/").await;
    assert_eq!(leaf.seen().len(), before + 3);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_are_shed_before_anything_is_sent() {
    let rig = Rig::of("max_requests = 1", PLAIN, "", [Endpoint::new([Act::Silence])]);
    let mut first = rig.connect();
    first.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    rig.settle().await;
    let response = rig.get("/").await;
    assert_eq!((response.status, rig.seen().len()), (503, 1));
    drop(first);
    rig.settle().await;
    assert!(
        rig.metric("relent_requests_in_flight").ends_with(" 0"),
        "{}",
        rig.metric("relent_requests_in_flight")
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stamped_where_nobody_wants_it() {
    let rig = Rig::with(PLAIN, "stamp = false\n", [Endpoint::new([Act::ok("")])]);
    rig.send("GET / HTTP/1.1\r\nhost: a\r\nrelent-attempts: left=1\r\nx-envoy-attempt-count: 1\r\n\r\n")
        .await;
    let seen = &rig.seen()[0];
    for name in ["relent-attempts", "x-envoy-attempt-count", "x-envoy-expected-rq-timeout-ms"] {
        assert_eq!(seen.field(name), None, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_thousand_clients_that_leave_leave_nothing_behind() {
    let rig = Rig::new(PLAIN, [Act::Silence]);
    for round in 0..2000 {
        let mut client = rig.connect();
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        if round % 2 == 0 {
            rig.settle().await;
        }
        drop(client);
    }
    rig.settle().await;
    for gauge in [
        "relent_requests_in_flight",
        "relent_client_connections",
        "relent_calls_waiting",
        "relent_replay_bytes",
    ] {
        assert!(rig.metric(gauge).ends_with(" 0"), "{}", rig.metric(gauge));
    }
}
