//! An endpoint that goes and comes back.

use super::stand::{AT_ONCE, Stand, get};
use super::upstream::Upstream;

fn stop(stand: &mut Stand) -> std::net::SocketAddr {
    let upstream = stand.upstream.take().expect("it runs");
    let address = upstream.address;
    upstream.stop();
    address
}

#[test]
fn nothing_is_lost_between_requests() {
    let mut stand = Stand::start(AT_ONCE);
    for round in 0..30 {
        // Both workers have connections to it, and those are stale afterwards.
        for _ in 0..4 {
            assert_eq!(get(stand.listening, "/hello"), (200, "hello".to_owned()), "round {round}");
        }
        let address = stop(&mut stand);
        stand.upstream = Some(Upstream::start(address, &stand.memory));
    }
    assert_eq!(stand.memory.seen("/hello"), 120, "none was executed twice");
}

#[test]
fn nothing_is_lost_that_waits() {
    let patient = "attempts = 1000\nbackoff = { base = \"5ms\", cap = \"5ms\", jitter = \"none\" }\n\
                   budget = \"none\"\ndeadline = \"none\"\n";
    let mut stand = Stand::start(patient);
    for round in 1..=5 {
        let address = stop(&mut stand);
        let before = stand.metric("relent_retries_total");
        let calls: Vec<_> = (0..4)
            .map(|_| {
                let proxy = stand.listening;
                std::thread::spawn(move || get(proxy, "/hello"))
            })
            .collect();
        stand.until("all are waiting", |stand| stand.metric("relent_retries_total") >= before + 4);
        stand.upstream = Some(Upstream::start(address, &stand.memory));
        for call in calls {
            assert_eq!(call.join().unwrap(), (200, "hello".to_owned()), "round {round}");
        }
    }
    assert_eq!(stand.memory.seen("/hello"), 20);
}
