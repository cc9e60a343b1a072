//! Endpoints and connections.

use std::time::Duration;

use crate::rig::clock::sleep;
use crate::rig::{Act, Endpoint, PLAIN, Rig};

#[tokio::test(start_paused = true)]
async fn p55_with_one_endpoint_the_retry_goes_there_again() {
    let rig = Rig::new(PLAIN, [Act::Status(503, ""), Act::ok("done")]);
    assert_eq!((rig.get("/").await.text(), rig.seen().len()), ("done", 2));
}

#[tokio::test(start_paused = true)]
async fn p56_an_endpoint_that_fails_fast_gets_one_attempt_of_a_call() {
    let failing = Endpoint::new([Act::Status(503, "")]);
    let slow = Endpoint::new([Act::after(Duration::from_millis(100), Act::ok("done"))]);
    let rig = Rig::with(PLAIN, "", [failing.clone(), slow]);
    for call in 1..=10 {
        assert_eq!(rig.get("/").await.status, 200);
        assert!(failing.seen().len() <= call);
    }
}

#[tokio::test(start_paused = true)]
async fn p58_a_failure_on_a_kept_connection_has_an_answer() {
    let rig = Rig::new(PLAIN, [Act::ok("first"), Act::Close]);
    let mut client = rig.connect();
    for expected in [200, 502] {
        client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(client.response().await.status, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn connections_are_kept_and_used_again() {
    let rig = Rig::new(PLAIN, [Act::ok("")]);
    for _ in 0..20 {
        rig.get("/").await;
    }
    assert_eq!((rig.endpoints[0].connections(), rig.seen().len()), (1, 20));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_idle_for_too_long_is_not_used() {
    let rig = Rig::with(PLAIN, "idle_timeout = \"5s\"\n", [Endpoint::new([Act::ok("")])]);
    rig.get("/").await;
    sleep(Duration::from_secs(6)).await;
    rig.get("/").await;
    assert_eq!(rig.endpoints[0].connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_nobody_reads_to_its_end_costs_its_connection() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf".to_vec();
    let rig = Rig::new(PLAIN, [Act::Bytes(head), Act::ok("")]);
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    rig.settle().await;
    drop(client);
    rig.settle().await;
    assert_eq!(rig.get("/").await.status, 200);
    assert_eq!(rig.endpoints[0].connections(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_misdirected_request_is_repeated_on_a_connection_of_its_own() {
    let rig = Rig::new(PLAIN, [Act::ok(""), Act::Status(421, "not here"), Act::ok("done")]);
    rig.get("/").await;
    let response = rig.post("", "hello").await;
    let connections: Vec<_> = rig.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!((response.text(), connections), ("done", vec![0, 0, 1]));
}

#[tokio::test(start_paused = true)]
async fn free_repeats_do_not_count() {
    // Every endpoint connection closes behind its answer: each next call finds a stale one.
    let policy = "attempts = 1\nbudget = \"none\"\n";
    let rig = Rig::new(policy, [Act::ThenClose(Box::new(Act::ok("")))]);
    for _ in 0..5 {
        assert_eq!(rig.post("", "hello").await.status, 200);
    }
    assert_eq!(rig.seen().len(), 5);
}
