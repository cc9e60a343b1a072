//! What is said to peers with each attempt and heard from them; and what never leaves the layer.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use relent::http::{HttpRetryLayer, Stopped};
use relent::timer::Manual;
use relent::{Nested, Repeat, StopReason};
use tower::{Layer, ServiceExt};

use super::client::{policy, retry};
use super::service::{Answer, Told, answer, never};

type Nothing = Empty<Bytes>;

fn request() -> Request<Nothing> {
    Request::get("http://peer.example:8080/").body(Nothing::new()).unwrap()
}

fn busy(used: &'static str) -> Answer {
    answer(503, &[("relent-attempts", used)])
}

#[tokio::test]
async fn p11_p50_peers_are_told_number_time_and_credit_anew_each_time() {
    let time = Manual::new();
    let told = Told::new(&time, [answer(503, &[]), answer(503, &[])]);
    let retry = retry(policy().attempt_timeout(Duration::from_millis(250)), &time);
    let layer = HttpRetryLayer::new(retry).peers(["peer.example:8080"]).unwrap();
    let mut request = request();
    // From the hop before, or made up: none of it is handed on.
    for (name, value) in [
        ("relent-attempts", "left=90"),
        ("x-envoy-attempt-count", "7"),
        ("x-envoy-attempt-count", "8"),
        ("x-envoy-expected-rq-timeout-ms", "90000"),
        ("idempotency-key", "k"),
    ] {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    assert_eq!(layer.layer(told.clone()).oneshot(request).await.unwrap().status(), StatusCode::OK);
    assert_eq!(told.said("x-envoy-attempt-count"), ["1", "2", "3"]);
    assert_eq!(told.said("relent-attempts"), ["left=1", "left=0", "left=0"]);
    // 250 ms less 5 %, rounded down.
    assert_eq!(told.said("x-envoy-expected-rq-timeout-ms"), ["237", "237", "237"]);
    assert_eq!(told.said("idempotency-key"), ["k", "k", "k"]);
}

#[tokio::test]
async fn a_shorter_time_of_the_callers_own_is_told_on() {
    let time = Manual::new();
    let told = Told::new(&time, []);
    let layer = HttpRetryLayer::new(retry(policy().attempt_timeout(Duration::from_secs(1)), &time));
    let mut request = request();
    request.headers_mut().insert("x-envoy-expected-rq-timeout-ms", "40".parse().unwrap());
    layer.peers(["peer.example:8080"]).unwrap().layer(told.clone()).oneshot(request).await.unwrap();
    assert_eq!(told.said("x-envoy-expected-rq-timeout-ms"), ["40"]);
}

#[tokio::test]
async fn others_are_told_nothing_and_credit_is_never_handed_on() {
    let time = Manual::new();
    let told = Told::new(&time, [answer(503, &[])]);
    let layer = HttpRetryLayer::new(retry(policy(), &time)).peers(["peer.example"]).unwrap();
    let mut request = request();
    request.headers_mut().insert("relent-attempts", "left=90".parse().unwrap());
    layer.layer(told.clone()).oneshot(request).await.unwrap();
    for name in ["x-envoy-attempt-count", "relent-attempts", "x-envoy-expected-rq-timeout-ms"] {
        assert_eq!(told.said(name), ["", ""], "{name}");
    }
}

#[tokio::test]
async fn what_the_peer_has_used_is_deducted() {
    for (used, attempts) in [("used=0", 5), ("used=1", 3), ("used=2", 3), ("used=3", 2), ("used=999", 2)] {
        let time = Manual::new();
        let told = Told::new(&time, (0..5).map(|_| busy(used)));
        let layer =
            HttpRetryLayer::new(retry(policy().attempts(5), &time)).peers(["peer.example:8080"]).unwrap();
        let response = layer.layer(told.clone()).oneshot(request()).await.unwrap();
        assert_eq!(told.times().len(), attempts, "{used}");
        let stopped = response.extensions().get::<Stopped>().unwrap();
        let reason = if attempts == 5 { StopReason::AttemptsExhausted } else { StopReason::CreditExhausted };
        assert_eq!(stopped.reason, reason, "{used}");
        assert!(!response.headers().contains_key("relent-attempts"));
    }
}

#[tokio::test]
async fn a_peer_that_has_reported_and_falls_silent_has_used_all() {
    let time = Manual::new();
    let reset = || Err(std::io::ErrorKind::ConnectionReset.into());
    for (script, attempts) in [
        // Never heard of `used`: nothing is deducted.
        (vec![reset(), answer(503, &[]), reset(), reset()], 4),
        // Reports, then doesn't: of four attempts one was made, two are told, none is left but the one kept back.
        (vec![busy("used=0"), reset(), answer(503, &[]), reset()], 3),
        // What never reached it can't have used anything.
        (
            vec![
                busy("used=0"),
                Err(std::io::ErrorKind::ConnectionRefused.into()),
                busy("used=0"),
                busy("used=0"),
            ],
            4,
        ),
        // Unreadable and doubled reports are none.
        (
            vec![
                busy("used=0"),
                answer(503, &[("relent-attempts", "used=0"), ("relent-attempts", "used=0")]),
                reset(),
            ],
            3,
        ),
    ] {
        let told = Told::new(&time, script);
        let layer =
            HttpRetryLayer::new(retry(policy().attempts(4), &time)).peers(["peer.example:8080"]).unwrap();
        let _ = layer.layer(told.clone()).oneshot(request()).await;
        assert_eq!(told.times().len(), attempts);
    }
}

#[tokio::test]
async fn a_reporter_that_lets_an_attempt_time_out_has_used_all() {
    let time = Manual::new();
    let told = Told::new(&time, [busy("used=0"), never(), answer(503, &[]), never()]);
    let second = Duration::from_secs(1);
    let retry = retry(policy().attempts(4).attempt_timeout(second), &time);
    let layer = HttpRetryLayer::new(retry).peers(["peer.example:8080"]).unwrap();
    let service = layer.layer(told.clone());
    let call = tokio::spawn(service.oneshot(request()));
    while time.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    time.advance(second);
    let response = call.await.unwrap().unwrap();
    assert_eq!((response.status(), told.times().len()), (StatusCode::SERVICE_UNAVAILABLE, 3));
    assert_eq!(response.extensions().get::<Stopped>().unwrap().reason, StopReason::CreditExhausted);
}

#[tokio::test]
async fn a_peers_report_is_taken_off_a_good_answer_too() {
    let time = Manual::new();
    let told =
        Told::new(&time, [answer(200, &[("relent-attempts", "used=1"), ("relent-stop", "scope=host")])]);
    let layer = HttpRetryLayer::new(retry(policy(), &time)).peers(["peer.example:8080"]).unwrap();
    let response = layer.layer(told).oneshot(request()).await.unwrap();
    assert_eq!(response.headers().len(), 0);
}

#[tokio::test]
async fn nested_says_what_is_told() {
    for (nested, left) in [(Nested::Credit, "left=1"), (Nested::PassThrough, "left=0"), (Nested::Allow, "")] {
        let time = Manual::new();
        let told = Told::new(&time, []);
        let layer =
            HttpRetryLayer::new(retry(policy().nested(nested), &time)).peers(["peer.example:8080"]).unwrap();
        layer.layer(told.clone()).oneshot(request()).await.unwrap();
        assert_eq!(told.said("relent-attempts"), [left]);
    }
}

#[tokio::test]
async fn a71_three_layers_of_three_make_three_requests() {
    let time = Manual::new();
    let told = Told::new(&time, (0..27).map(|_| answer(503, &[])));
    let layer = || HttpRetryLayer::new(retry(policy(), &time));
    let service = layer().layer(layer().layer(layer().layer(told.clone())));
    let response = service.oneshot(request()).await.unwrap();
    assert_eq!((told.times().len(), response.status()), (3, StatusCode::SERVICE_UNAVAILABLE));
}

#[tokio::test]
async fn a_stop_mark_ends_the_call_and_only_one_for_the_chain_goes_up() {
    for (name, value, passed) in [
        ("relent-stop", "scope=host, reason=budget", false),
        ("relent-stop", "scope=service, reason=breaker", false),
        ("relent-stop", "scope=chain", true),
        ("x-envoy-ratelimited", "true", true),
    ] {
        let time = Manual::new();
        let told = Told::new(&time, [answer(503, &[(name, value)])]);
        let service = HttpRetryLayer::new(retry(policy(), &time)).layer(told.clone());
        let response = service.oneshot(request()).await.unwrap();
        assert_eq!(told.times().len(), 1);
        assert_eq!(response.extensions().get::<Stopped>().unwrap().reason, StopReason::StoppedByPeer);
        assert_eq!(response.headers().contains_key(name), passed, "{value}");
    }
}

#[tokio::test]
async fn the_callers_word_for_one_request_goes_before_the_rule() {
    let time = Manual::new();
    for (method, word, attempts) in
        [("POST", Some(Repeat::Yes), 2), ("POST", None, 1), ("GET", Some(Repeat::No), 1), ("GET", None, 2)]
    {
        let told = Told::new(&time, [answer(503, &[])]);
        let service = HttpRetryLayer::new(retry(policy(), &time)).layer(told.clone());
        let mut request = request();
        *request.method_mut() = method.parse().unwrap();
        if let Some(word) = word {
            request.extensions_mut().insert(word);
        }
        service.oneshot(request).await.unwrap();
        assert_eq!(told.times().len(), attempts, "{method} {word:?}");
    }
}

#[tokio::test]
async fn what_a_wait_for_readiness_took_is_not_told_to_the_peer() {
    let time = Manual::new();
    let told = Told::new(&time, [answer(503, &[])]).busy_after(1);
    let retry = retry(policy().attempt_timeout(Duration::from_secs(1)), &time);
    let layer = HttpRetryLayer::new(retry).peers(["peer.example:8080"]).unwrap();
    let service = layer.layer(told.clone());
    let call = tokio::spawn(service.oneshot(request()));
    while time.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    time.advance(Duration::from_millis(400));
    told.free();
    assert_eq!(call.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(told.said("x-envoy-expected-rq-timeout-ms"), ["950", "570"]);
}

/// A70: the kit's service panics where it is called without having been ready; here it never is again.
#[tokio::test]
async fn a70_an_attempt_that_waits_for_readiness_keeps_to_its_time_and_was_never_sent() {
    let time = Manual::new();
    let told = Told::new(&time, [answer(503, &[])]).busy_after(1);
    let second = Duration::from_secs(1);
    let retry = retry(policy().attempts(2).attempt_timeout(second), &time);
    let service = HttpRetryLayer::new(retry).layer(told.clone());
    let call = tokio::spawn(service.oneshot(request()));
    while time.sleepers() == 0 {
        tokio::task::yield_now().await;
    }
    time.advance(second);
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts(), error.ambiguous()),
        (StopReason::AttemptsExhausted, 2, false)
    );
    assert!(error.last_timed_out());
    assert_eq!(told.times().len(), 1);
}
