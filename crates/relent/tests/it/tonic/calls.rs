//! A channel with a layer around it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use relent::adapter::tonic::{TonicRetryLayer, previous_attempts, stopped, with_pushback};
use relent::grpc::Pushback;
use relent::{Deadline, PolicyBuilder, Retry, StopReason};
use tonic::{Code, Status};
use tower::Layer;

use super::stage::{Prices, always, ask, connected, fail, ok};

fn layer(policy: PolicyBuilder) -> TonicRetryLayer {
    TonicRetryLayer::new(Retry::new(policy.build().unwrap()))
}

fn unavailable() -> Status {
    Status::unavailable("a restart")
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_and_handlers_know_of_the_attempts_before() {
    let known = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&known);
    let prices = Prices::new(move |n, request| {
        heard.lock().unwrap().push((previous_attempts(request), Deadline::current().is_some()));
        if n < 2 { fail(unavailable()) } else { ok("350") }
    });
    let answer = ask(layer(always()).layer(connected(&prices, 0))).await.unwrap();

    assert_eq!(answer.into_inner(), "350");
    let asked = |at| (at, "how much?".to_owned());
    assert_eq!(prices.seen(), [asked(0), asked(10), asked(30)]);
    // The layer's `grpc-timeout` is the deadline of the handler.
    assert_eq!(*known.lock().unwrap(), [(0, true), (1, true), (2, true)]);
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_status_comes_back_with_the_reason() {
    let prices = Prices::new(|_, _| {
        let mut status = unavailable();
        status.metadata_mut().insert("zone", "b".parse().unwrap());
        fail(status)
    });
    let status = ask(layer(always()).layer(connected(&prices, 0))).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "a restart"));
    assert_eq!(status.metadata().get("zone").unwrap(), "b");
    let why = stopped(&status).unwrap();
    assert_eq!((why.reason, why.attempts, why.ambiguous), (StopReason::AttemptsExhausted, 4, false));
}

#[tokio::test(start_paused = true)]
async fn a_handlers_pushback_is_kept_to() {
    let prices = Prices::new(|n, _| match n {
        0 => fail(with_pushback(unavailable(), Pushback::After(Duration::from_millis(700)))),
        _ => ok("350"),
    });
    ask(layer(always()).layer(connected(&prices, 0))).await.unwrap();
    assert_eq!(prices.seen()[1].0, 700);

    let prices = Prices::new(|_, _| fail(with_pushback(unavailable(), Pushback::Stop)));
    let status = ask(layer(always()).layer(connected(&prices, 0))).await.unwrap_err();
    assert_eq!(stopped(&status).unwrap().reason, StopReason::StoppedByPeer);
    assert_eq!(prices.seen().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_is_ended_and_asked_again() {
    let prices = Prices::new(|n, _| if n == 0 { Box::pin(std::future::pending()) } else { ok("350") });
    let policy = always().attempt_timeout(Duration::from_millis(200)).deadline(Duration::from_secs(1));
    ask(layer(policy.clone()).layer(connected(&prices, 0))).await.unwrap();
    assert_eq!(prices.seen().len(), 2);

    let prices = Prices::new(|_, _| Box::pin(std::future::pending()));
    let status = ask(layer(policy.attempts(2)).layer(connected(&prices, 0))).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let why = stopped(&status).unwrap();
    assert_eq!((why.reason, why.attempts, why.ambiguous), (StopReason::AttemptsExhausted, 2, true));
}

/// Nobody has said that the call may be done twice: only what no server has seen is repeated.
#[tokio::test(start_paused = true)]
async fn a_refused_connection_is_repeated_whatever_the_method() {
    let cautious = || always().repeat(relent::RepeatRule::IdempotentMethods);
    let prices = Prices::new(|_, _| ok("350"));
    ask(layer(cautious()).layer(connected(&prices, 2))).await.unwrap();
    assert_eq!(prices.seen().len(), 1);

    let status = ask(layer(cautious()).layer(connected(&prices, 9))).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let why = stopped(&status).unwrap();
    assert_eq!((why.reason, why.attempts, why.ambiguous), (StopReason::AttemptsExhausted, 4, false));

    let prices = Prices::new(|_, _| fail(unavailable()));
    let status = ask(layer(cautious()).layer(connected(&prices, 0))).await.unwrap_err();
    assert_eq!(stopped(&status).unwrap().reason, StopReason::UnsafeToRepeat);
}

/// Layers on both sides share one allowance: what the server's own calls used is reported, and deducted.
#[tokio::test(start_paused = true)]
async fn attempts_do_not_multiply_over_the_wire() {
    let backend = Arc::new(Mutex::new(0));
    let calls = Arc::clone(&backend);
    let inner =
        Retry::new(always().attempts(3).build().unwrap()).classify(|_: &&str| relent::Verdict::Transient);
    let prices = Prices::new(move |_, _| {
        let (inner, calls) = (inner.clone(), Arc::clone(&calls));
        Box::pin(async move {
            let asked = inner.run(move |_| {
                *calls.lock().unwrap() += 1;
                std::future::ready(Err::<(), _>("down"))
            });
            asked.await.map_err(|gave_up| Status::unavailable(gave_up.to_string()))?;
            unreachable!("the backend is down")
        })
    });
    let layer = layer(always().attempts(3)).peer();
    ask(layer.layer(connected(&prices, 0))).await.unwrap_err();
    assert_eq!(*backend.lock().unwrap(), 3);
}
