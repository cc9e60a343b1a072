//! Deadlines, attempt timeouts, and clients that leave.

use std::time::Duration;

use crate::rig::clock::{Watch, sleep};
use crate::rig::{Act, PLAIN, Rig};

const TIMED: &str = "attempts = 3\nbackoff = { base = \"10ms\", jitter = \"none\" }\nbudget = \"none\"\nattempt_timeout = \"50ms\"\ndeadline = \"1s\"\n";

#[tokio::test(start_paused = true)]
async fn p31_p32_an_attempt_timeout_is_a_failure_of_its_own() {
    let rig = Rig::new(TIMED, [Act::Silence, Act::ok("done")]);
    let watch = Watch::start();
    let response = rig.get("/").await;
    let took = watch.elapsed();
    assert_eq!((response.status, rig.seen().len()), (200, 2));
    assert!(took >= Duration::from_millis(60) && took < Duration::from_millis(70), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn p34_grpc_timeouts_are_what_is_left() {
    let failing = Act::after(Duration::from_millis(300), Act::Status(503, ""));
    let policy = format!("{PLAIN}repeat = \"always\"\nrepeat_reason = \"a test\"\n");
    let rig = Rig::new(&policy, [failing, Act::ok("")]);
    rig.send(
        "POST /s/M HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\ngrpc-timeout: 1S\r\ncontent-length: 0\r\n\r\n",
    )
    .await;
    let told: Vec<u64> = rig
        .seen()
        .iter()
        .map(|seen| seen.field("grpc-timeout").unwrap().strip_suffix('m').unwrap().parse().unwrap())
        .collect();
    assert!(told.len() == 2 && told[0] <= 1000 && told[1] <= 600, "{told:?}");
    assert_eq!(rig.seen()[1].field("grpc-previous-rpc-attempts"), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn p35_the_time_told_is_the_nearer_of_the_attempts_and_the_calls() {
    for (given, most) in [
        ("", 4750),
        ("x-envoy-expected-rq-timeout-ms: 1000\r\n", 950),
        ("x-envoy-expected-rq-timeout-ms: 100000\r\n", 4750),
    ] {
        let rig = Rig::new(PLAIN, [Act::ok("")]);
        rig.send(&format!("GET / HTTP/1.1\r\nhost: a\r\n{given}\r\n")).await;
        let told: u64 = rig.seen()[0].field("x-envoy-expected-rq-timeout-ms").unwrap().parse().unwrap();
        assert_eq!(told, most, "{given}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_from_the_wire_ends_the_call() {
    let rig = Rig::new(PLAIN, [Act::Silence]);
    let watch = Watch::start();
    let response = rig.send("GET / HTTP/1.1\r\nhost: a\r\nx-envoy-expected-rq-timeout-ms: 200\r\n\r\n").await;
    assert_eq!((response.status, rig.seen().len()), (504, 1));
    assert!(watch.elapsed() < Duration::from_millis(250), "{:?}", watch.elapsed());
    assert!(response.outcome().contains("stop=DeadlineExceeded"), "{}", response.outcome());
}

#[tokio::test(start_paused = true)]
async fn p38_a_wait_beyond_the_deadline_is_not_begun() {
    let policy = format!("{PLAIN}attempt_timeout = \"500ms\"\ndeadline = \"1s\"\n");
    let rig = Rig::new(&policy, [Act::Fields(503, "retry-after: 10\r\n", "said"), Act::ok("")]);
    let watch = Watch::start();
    let response = rig.get("/").await;
    assert_eq!((response.status, response.text(), watch.elapsed()), (503, "said", Duration::ZERO));
    assert_eq!(response.field("retry-after"), Some("10"));
}

#[tokio::test(start_paused = true)]
async fn p40_ten_thousand_attempts_at_nobody() {
    let policy = "attempts = 10000\nbackoff = { base = \"1ms\", cap = \"1ms\", jitter = \"none\" }\nbudget = \"none\"\nattempt_timeout = \"1s\"\ndeadline = \"none\"\n";
    let rig = Rig::new(policy, [Act::Refuse]);
    let response = rig.get("/").await;
    assert_eq!(response.status, 503);
    assert!(response.outcome().contains("attempts=10000"), "{}", response.outcome());
}

#[tokio::test(start_paused = true)]
async fn p41_a_client_that_leaves_ends_the_attempt() {
    let rig = Rig::logged(PLAIN, "", [crate::rig::Endpoint::new([Act::Silence])]);
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    rig.settle().await;
    assert_eq!(rig.seen().len(), 1);
    drop(client);
    let line = rig.line().await;
    assert_eq!((&line["status"], &line["stop"]), (&499.into(), &"Cancelled".into()), "{line}");
    assert_eq!(line["attempts"][0]["failure"], "cancelled");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn p41_a_client_that_leaves_ends_the_wait() {
    let rig =
        Rig::logged(PLAIN, "", [crate::rig::Endpoint::new([Act::Fields(503, "retry-after: 5\r\n", "")])]);
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    rig.settle().await;
    assert!(rig.metric("relent_calls_waiting").contains(" 1"), "{}", rig.metric("relent_calls_waiting"));
    drop(client);
    let line = rig.line().await;
    assert_eq!((&line["status"], &line["stop"]), (&499.into(), &"Cancelled".into()), "{line}");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(rig.seen().len(), 1);
    assert!(rig.metric("relent_calls_waiting").contains(" 0"));
}

#[tokio::test(start_paused = true)]
async fn p77_a_wait_that_would_outlast_the_grace_ends_with_the_last_response() {
    let rig = Rig::of(
        "grace = \"2s\"",
        PLAIN,
        "",
        [crate::rig::Endpoint::new([Act::Fields(503, "retry-after: 5\r\n", "said"), Act::ok("")])],
    );
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    rig.settle().await;
    let watch = Watch::start();
    let engine = rig.engine.clone();
    let drained = tokio::spawn(async move { engine.drain().await });
    let response = client.response().await;
    assert_eq!((response.status, response.text()), (503, "said"));
    assert_eq!(response.field("connection"), Some("close"));
    assert_eq!((drained.await.unwrap(), watch.elapsed() < Duration::from_secs(1)), (0, true));
}

#[tokio::test(start_paused = true)]
async fn p77_a_wait_that_fits_the_grace_goes_on() {
    let rig = Rig::of(
        "grace = \"10s\"",
        PLAIN,
        "",
        [crate::rig::Endpoint::new([Act::Fields(503, "retry-after: 1\r\n", "said"), Act::ok("done")])],
    );
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    rig.settle().await;
    let engine = rig.engine.clone();
    let drained = tokio::spawn(async move { engine.drain().await });
    assert_eq!(client.response().await.text(), "done");
    assert_eq!(drained.await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_done_at_the_end_of_the_grace_is_cut() {
    let rig = Rig::of("grace = \"1s\"", PLAIN, "", [crate::rig::Endpoint::new([Act::Silence])]);
    let mut client = rig.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let idle = rig.connect();
    rig.settle().await;
    let watch = Watch::start();
    assert_eq!(rig.engine.drain().await, 1);
    assert!(watch.elapsed() < Duration::from_secs(2));
    assert!(client.try_response().await.is_none());
    drop(idle);
}

#[tokio::test(start_paused = true)]
async fn connections_of_no_use_are_ended() {
    let proxy = "header_timeout = \"3s\"\nidle_timeout = \"10s\"";
    let rig = Rig::of(proxy, PLAIN, "", [crate::rig::Endpoint::new([Act::ok("")])]);
    let watch = Watch::start();
    let mut slow = rig.connect();
    slow.send("GET / HT").await;
    assert_eq!(slow.rest().await, b"");
    assert!(
        watch.elapsed() >= Duration::from_secs(3) && watch.elapsed() < Duration::from_secs(6),
        "{:?}",
        watch.elapsed()
    );
    let watch = Watch::start();
    let mut idle = rig.connect();
    idle.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(idle.response().await.status, 200);
    assert_eq!(idle.rest().await, b"");
    assert!(
        watch.elapsed() >= Duration::from_secs(10) && watch.elapsed() < Duration::from_secs(13),
        "{:?}",
        watch.elapsed()
    );
}
