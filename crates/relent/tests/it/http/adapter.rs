//! What is reqwest's own goes on working with retries around it.

use std::time::Duration;

use http::StatusCode;
use relent::StopReason;
use relent::http::Stopped;
use relent::timer::Manual;

use super::client::{passing, policy, reqwest_client, retry};
use super::server::{Act, Server, reply};

#[tokio::test]
async fn a_redirect_sends_a_body_in_memory_again_within_an_attempt() {
    let time = Manual::new();
    let moved = || Act::Answer(reply(307, &[("location", "/there")], ""));
    let server = Server::start([moved(), Act::status(503), moved(), Act::ok()]);
    let client = reqwest_client(retry(policy(), &time));
    let request = client.inner().put(server.url()).body("amount=5");
    let response = passing(&time, client.send(request)).await.unwrap();
    assert_eq!((response.status(), response.url().path()), (StatusCode::OK, "/there"));
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    assert!(requests.iter().all(|request| request.body == b"amount=5"));
}

#[tokio::test]
async fn a_response_knows_where_it_is_from() {
    let server = Server::start([Act::ok()]);
    let client = reqwest_client(retry(policy(), &Manual::new()));
    let response = client.send(client.inner().get(server.url())).await.unwrap();
    assert_eq!(response.url().as_str(), server.url());
    assert!(response.remote_addr().is_some());
}

#[tokio::test]
async fn too_many_redirects_are_not_retried() {
    let script = (0..20).map(|_| Act::Answer(reply(302, &[("location", "/there")], "")));
    let server = Server::start(script);
    let client = reqwest_client(retry(policy(), &Manual::new()));
    let error = client.send(client.inner().get(server.url())).await.unwrap_err();
    assert_eq!((error.reason(), error.attempts(), error.ambiguous()), (StopReason::NotRetryable, 1, true));
    assert!(error.last().unwrap().is_redirect());
}

#[tokio::test]
async fn a_request_that_cannot_be_built_is_not_sent() {
    let client = reqwest_client(retry(policy(), &Manual::new()));
    for url in ["no url", "gopher://a.example/"] {
        let error = client.send(client.inner().get(url)).await.unwrap_err();
        assert_eq!((error.reason(), error.ambiguous()), (StopReason::NotRetryable, false), "{url}");
        assert!(error.last().unwrap().is_builder());
    }
}

/// reqwest's own timeout of a request is an attempt's, and retried like one.
#[tokio::test]
async fn a_timeout_of_reqwests_own_is_an_attempts() {
    let time = Manual::new();
    let server = Server::start([Act::Hang, Act::Hang, Act::Hang]);
    let client = reqwest_client(retry(policy(), &time));
    let request = client.inner().get(server.url()).timeout(Duration::from_millis(1));
    let error = passing(&time, client.send(request)).await.unwrap_err();
    assert_eq!(
        (error.reason(), error.attempts(), error.ambiguous()),
        (StopReason::AttemptsExhausted, 3, true)
    );
    assert!(error.last().unwrap().is_timeout());
}

#[tokio::test]
async fn a_failed_response_says_why_it_is_the_last() {
    let server = Server::start([Act::status(404)]);
    let client = reqwest_client(retry(policy(), &Manual::new()));
    let response = client.send(client.inner().get(server.url())).await.unwrap();
    let stopped = response.extensions().get::<Stopped>().unwrap();
    assert_eq!((stopped.reason, stopped.attempts, stopped.ambiguous), (StopReason::NotRetryable, 1, false));
    assert!(response.error_for_status().unwrap_err().is_status());
}
