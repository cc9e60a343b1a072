//! What is retried, and what is not: codes, repeat rule, free repeats, handles by method.

use std::io;

use http::Request;
use http_body_util::Full;
use relent::grpc::GrpcRetryLayer;
use relent::{Failure, GrpcCode, Health, Policy, Repeat, RepeatRule, Retry, RetryOn, StopReason, Verdict};

use super::server::{Act, Server, Unseen, always, by, call, ending, message, request, status};

#[tokio::test(start_paused = true)]
async fn unavailable_is_retried_and_the_attempts_before_are_told() {
    let server = Server::new([status("14"), status("14"), status("14"), message("answer")]);
    let ended = by(always(), &server).await;

    assert_eq!(ending(&ended), (None, None));
    assert_eq!(server.times(), [0, 10, 30, 70]);
    assert_eq!(server.said("grpc-previous-rpc-attempts"), ["", "1", "2", "3"]);
    assert!(server.seen().iter().all(|seen| seen.body == "question"));
}

#[tokio::test(start_paused = true)]
async fn the_last_real_answer_comes_back_with_the_reason() {
    let server = Server::new((0..4).map(|_| status("14")));
    let ended = by(always(), &server).await;
    assert_eq!(ending(&ended), (Some("14"), Some((StopReason::AttemptsExhausted, 4))));

    let server = Server::new([status("5")]);
    let ended = by(always(), &server).await;
    assert_eq!(ending(&ended), (Some("5"), Some((StopReason::NotRetryable, 1))));
}

/// grpc-go's `TestRetryUnary`: what is retried is the policy's to say, and nothing else is.
#[tokio::test(start_paused = true)]
async fn grpc_go_retry_unary() {
    let retry_on = RetryOn::nothing().grpc(GrpcCode::AlreadyExists).unwrap();
    let retry = Retry::new(always().retry_on(retry_on).build().unwrap());
    let layer = GrpcRetryLayer::new(retry);
    let answer = |call: usize| match call {
        0 | 2 | 5 => message("answer"),
        6 | 8 | 11 => status("13"),
        _ => status("6"),
    };
    let server = Server::new((0..16).map(answer));
    for (code, last) in
        [(None, 0), (None, 2), (None, 5), (Some("13"), 6), (Some("13"), 8), (Some("13"), 11), (Some("6"), 15)]
    {
        let ended = call(&layer, &server, request()).await;
        assert_eq!((ending(&ended).0, server.count()), (code, last + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_that_may_have_been_done_is_repeated_unless_somebody_says_so() {
    let policy = |rule| always().repeat(rule);
    let server = Server::new([status("14")]);
    let ended = by(policy(RepeatRule::IdempotentMethods), &server).await;
    assert_eq!(ending(&ended), (Some("14"), Some((StopReason::UnsafeToRepeat, 1))));

    // With a key that the server honours.
    let server = Server::new([status("14"), message("answer")]);
    let layer = GrpcRetryLayer::new(Retry::new(policy(RepeatRule::KeyHonoured).build().unwrap()));
    let mut keyed = request();
    keyed.headers_mut().insert("idempotency-key", "order-7".parse().unwrap());
    assert_eq!(ending(&call(&layer, &server, keyed).await), (None, None));
    assert_eq!(server.said("idempotency-key"), ["order-7", "order-7"]);

    // By the caller's own word.
    let server = Server::new([status("14"), message("answer")]);
    let mut meant = request();
    meant.extensions_mut().insert(Repeat::Yes);
    assert_eq!(ending(&call(&layer, &server, meant).await), (None, None));
}

#[tokio::test(start_paused = true)]
async fn what_stands_before_the_server_is_understood_too() {
    let html =
        |code| vec![Act::Read, Act::Head(code, vec![("content-type", "text/html")]), Act::Data("sorry")];
    let server = Server::new([html(503), html(502), html(429), message("answer")]);
    let ended = by(always().throttled_base(std::time::Duration::from_millis(1)), &server).await;
    assert_eq!((ending(&ended), server.count()), ((None, None), 4));

    for code in [404, 403, 500, 200] {
        let server = Server::new([html(code)]);
        let ended = by(always(), &server).await;
        assert_eq!(ending(&ended), (None, Some((StopReason::NotRetryable, 1))), "{code}");
    }
}

fn unseen(error: &io::Error) -> Failure {
    match error.get_ref().is_some_and(|inner| inner.is::<Unseen>()) {
        true => Failure::new(Verdict::Unprocessed).health(Health::Unknown).free(),
        false => Failure::new(Verdict::Transient).ambiguous(),
    }
}

/// A67: what was never processed is repeated at once and for nothing, whatever the method; but not for ever, and it is no
/// attempt before another.
#[tokio::test(start_paused = true)]
async fn a67_transparent_retries_are_free_and_bounded() {
    let policy = || Policy::builder().jitter(relent::Jitter::None).attempts(2).no_budget();
    let layer = |policy: relent::PolicyBuilder| {
        GrpcRetryLayer::new(Retry::new(policy.build().unwrap()).classify(unseen))
    };
    let server = Server::new([vec![Act::Unseen], status("14"), message("answer")]);
    let ended = call(&layer(policy().repeat(RepeatRule::Always)), &server, request()).await;
    assert_eq!(ending(&ended), (None, None));
    assert_eq!(server.times(), [0, 0, 100]);
    assert_eq!(server.said("grpc-previous-rpc-attempts"), ["", "", "1"]);

    let server = Server::new((0..100).map(|_| vec![Act::Unseen]));
    let gave_up = call(&layer(policy()), &server, request()).await.unwrap_err();
    assert_eq!((gave_up.reason(), server.count()), (StopReason::AttemptsExhausted, 3));
}

#[tokio::test(start_paused = true)]
async fn methods_and_services_have_handles_of_their_own() {
    let retry = |attempts| Retry::new(always().attempts(attempts).build().unwrap());
    let layer =
        GrpcRetryLayer::new(retry(1)).service("shop.Prices", retry(2)).method("shop.Prices", "Get", retry(3));
    for (path, expected) in [("/shop.Prices/Get", 3), ("/shop.Prices/Set", 2), ("/shop.Orders/Get", 1)] {
        let server = Server::new((0..3).map(|_| status("14")));
        let request = Request::post(path).body(Full::from("question")).unwrap();
        let ended = call::<Full<bytes::Bytes>, _>(&layer, &server, request).await;
        assert_eq!(ending(&ended).1, Some((StopReason::AttemptsExhausted, expected)), "{path}");
    }
}
