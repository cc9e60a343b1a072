//! What is repeated, and what is not: every cell of the design's matrix, by requests at the endpoint.

use std::time::Duration;

use crate::rig::{Act, PLAIN, Rig};

const KEYED: &str = "attempts = 3\nbackoff = { base = \"100ms\", jitter = \"none\" }\nbudget = \"none\"\nrepeat = \"key-honoured\"\n";

fn request(method: &str, key: bool) -> String {
    let key = if key { "idempotency-key: order-7\r\n" } else { "" };
    match method {
        "POST" | "PATCH" | "PUT" => {
            format!("{method} / HTTP/1.1\r\nhost: a\r\n{key}content-length: 5\r\n\r\nhello")
        }
        _ => format!("{method} / HTTP/1.1\r\nhost: a\r\n{key}\r\n"),
    }
}

/// Failures by what happened, and how many requests of a safe and of an unsafe method arrive at the endpoint.
fn failures() -> Vec<(&'static str, Act, usize, usize)> {
    let hinted = |status| Act::Fields(status, "retry-after: 1\r\n", "busy");
    vec![
        ("refused", Act::Refuse, 1, 1),
        ("no connection in time", Act::BlackHole, 1, 1),
        ("reset after the request", Act::Close, 2, 1),
        ("500", Act::Status(500, "no"), 2, 1),
        ("502", Act::Status(502, "no"), 2, 1),
        ("503", Act::Status(503, "no"), 2, 1),
        ("504", Act::Status(504, "no"), 2, 1),
        ("429", hinted(429), 2, 1),
        ("503 with a hint", hinted(503), 2, 1),
        ("501", Act::Status(501, "no"), 1, 1),
        ("404", Act::Status(404, "no"), 1, 1),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_cell_of_the_matrix() {
    for (what, failure, safe, unsafe_) in failures() {
        for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "POST", "PATCH"] {
            let rig = Rig::new(PLAIN, [failure.clone(), Act::ok("")]);
            let response = rig.send(&request(method, false)).await;
            let idempotent = !matches!(method, "POST" | "PATCH");
            let expected = if idempotent { safe } else { unsafe_ };
            assert_eq!(rig.seen().len(), expected, "{what}, {method}: {response:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_makes_a_post_like_a_put_where_it_is_honoured() {
    for (what, failure, safe, unsafe_) in failures() {
        for (policy, expected) in [(KEYED, safe), (PLAIN, unsafe_)] {
            let rig = Rig::new(policy, [failure.clone(), Act::ok("")]);
            let response = rig.send(&request("POST", true)).await;
            let keys: Vec<_> =
                rig.seen().iter().map(|seen| seen.field("idempotency-key").map(str::to_owned)).collect();
            assert_eq!(keys.len(), expected, "{what}: {response:?}");
            assert!(keys.iter().all(|key| key.as_deref() == Some("order-7")), "{what}: {keys:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_timeout_repeats_what_is_idempotent() {
    for (method, expected) in [("GET", 2), ("PUT", 2), ("POST", 1)] {
        let rig = Rig::new(PLAIN, [Act::Silence, Act::ok("")]);
        let response = rig.send(&request(method, false)).await;
        assert_eq!(rig.seen().len(), expected, "{method}: {response:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_is_waited_out() {
    let rig = Rig::new(PLAIN, [Act::Fields(429, "retry-after: 2\r\n", "busy"), Act::ok("done")]);
    let response = rig.get("/").await;
    assert_eq!((response.status, response.text()), (200, "done"));
    let seen = rig.seen();
    let wait = seen[1].at.since(seen[0].at);
    assert!(wait >= Duration::from_secs(2) && wait <= Duration::from_secs(3), "{wait:?}");
}
