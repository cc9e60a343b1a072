//! Idempotency keys that the layer makes: one for each logical request, on all of its attempts.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use relent::http::HttpRetryLayer;
use relent::timer::Manual;
use relent::{Repeat, RepeatRule, StopReason};
use tower::{Layer, Service};

use super::client::{Handle, hyper_client, passing, policy, reqwest_client, retry};
use super::server::{Act, Server};

fn keyed(time: &Manual) -> Handle {
    retry(policy().repeat(RepeatRule::KeyHonoured), time)
}

/// Keys that can be told apart: 1, 2, 3.
fn counted() -> impl Fn() -> Option<HeaderValue> + Send + Sync + 'static {
    let made = AtomicU32::new(0);
    move || Some(HeaderValue::from(made.fetch_add(1, Ordering::Relaxed) + 1))
}

fn keys(server: &Server) -> Vec<Vec<String>> {
    let requests = server.requests();
    let texts = |request: &super::server::Request| {
        request.header("idempotency-key").into_iter().map(str::to_owned).collect()
    };
    requests.iter().map(texts).collect()
}

/// One request to a server that fails once, through a layer that counts its keys.
async fn sent(
    method: Method,
    rule: RepeatRule,
    with: impl FnOnce(&mut Request<Full<Bytes>>),
) -> Vec<Vec<String>> {
    let time = Manual::new();
    let server = Server::start([Act::status(503), Act::ok()]);
    let mut request = Request::builder().method(method).uri(server.url()).body(Full::default()).unwrap();
    with(&mut request);
    let layer = HttpRetryLayer::new(retry(policy().repeat(rule), &time)).keys_from(counted());
    let mut client = layer.layer(hyper_client());
    passing(&time, client.call(request)).await.unwrap();
    keys(&server)
}

#[tokio::test]
#[cfg(feature = "keys")]
async fn i61_three_attempts_carry_one_key_on_the_wire() {
    let (time, mut seen) = (Manual::new(), Vec::new());
    for through_reqwest in [false, true, true] {
        let server = Server::start([Act::status(503), Act::Reset, Act::ok()]);
        let status = if through_reqwest {
            let client = reqwest_client(keyed(&time)).generate_keys();
            passing(&time, client.send(client.inner().post(server.url()).body("x"))).await.unwrap().status()
        } else {
            let layer = HttpRetryLayer::new(keyed(&time)).generate_keys();
            let request = Request::post(server.url()).body(Full::new(Bytes::from("x"))).unwrap();
            passing(&time, layer.layer(hyper_client()).call(request)).await.unwrap().status()
        };
        assert_eq!(status, StatusCode::OK);
        let keys = keys(&server);
        assert_eq!(keys.len(), 3);
        assert!(keys.iter().all(|key| key.len() == 1 && *key == keys[0]), "{keys:?}");
        // A quoted UUID.
        assert!(keys[0][0].len() == 38 && keys[0][0].starts_with('"') && keys[0][0].ends_with('"'));
        seen.push(keys[0].clone());
    }
    assert!(seen[0] != seen[1] && seen[1] != seen[2], "a key for each call: {seen:?}");
}

#[tokio::test]
async fn only_what_can_be_repeated_by_a_key_alone_is_given_one() {
    for method in [Method::POST, Method::PATCH, "LOCK".parse().unwrap()] {
        assert_eq!(sent(method, RepeatRule::KeyHonoured, |_| {}).await, [["1"], ["1"]]);
    }
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        assert_eq!(sent(method, RepeatRule::KeyHonoured, |_| {}).await, [[""; 0], [""; 0]]);
    }
    // Where the receiver is not known to go by keys, none is made; nor is one needed where all may be repeated.
    assert_eq!(sent(Method::POST, RepeatRule::IdempotentMethods, |_| {}).await, [[""; 0]]);
    assert_eq!(sent(Method::POST, RepeatRule::Always, |_| {}).await, [[""; 0], [""; 0]]);
}

#[tokio::test]
async fn the_callers_word_stands() {
    let rule = RepeatRule::KeyHonoured;
    let with = |key: &'static str| {
        move |request: &mut Request<_>| {
            request.headers_mut().insert("idempotency-key", HeaderValue::from_static(key));
        }
    };
    assert_eq!(sent(Method::POST, rule, with("order-7")).await, [["order-7"], ["order-7"]]);
    // A blank key counts for nothing, and is the caller's all the same.
    assert_eq!(sent(Method::POST, rule, with("")).await, [[""]]);
    let says = |repeat: Repeat| move |request: &mut Request<_>| _ = request.extensions_mut().insert(repeat);
    assert_eq!(sent(Method::POST, rule, says(Repeat::Yes)).await, [[""; 0], [""; 0]]);
    assert_eq!(sent(Method::POST, rule, says(Repeat::No)).await, [[""; 0]]);
}

#[tokio::test]
async fn without_a_key_a_request_is_repeated_less_rather_than_twice() {
    let time = Manual::new();
    let server = Server::start([Act::status(503), Act::ok()]);
    let client = reqwest_client(keyed(&time)).keys_from(|| None);
    let response = passing(&time, client.send(client.inner().post(server.url()))).await.unwrap();
    let stopped = response.extensions().get::<relent::http::Stopped>().unwrap();
    assert_eq!((stopped.reason, stopped.attempts), (StopReason::UnsafeToRepeat, 1));
}
