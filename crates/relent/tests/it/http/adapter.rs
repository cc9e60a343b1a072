//! What is reqwest's own goes on working with retries around it.

use std::time::Duration;

use http::StatusCode;
use relent::StopReason;
use relent::adapter::reqwest::RetryClient;
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

#[tokio::test]
async fn b5_the_rule_is_asked_before_the_first_retry_and_the_wait_is_kept() {
    let busy = || Act::Answer(reply(503, &[("retry-after", "5")], "busy"));
    let time = Manual::new();
    let server = Server::start([busy(), Act::ok()]);
    let client = reqwest_client(retry(policy(), &time));
    let response = client.send(client.inner().post(server.url()).body("amount=5")).await.unwrap();
    assert_eq!((response.status().as_u16(), server.requests().len()), (503, 1));

    let server = Server::start([busy(), Act::ok()]);
    let response = passing(&time, client.send(client.inner().get(server.url()))).await.unwrap();
    assert_eq!((response.status().as_u16(), server.requests().len()), (200, 2));
    assert!(time.elapsed() >= Duration::from_secs(5), "{:?}", time.elapsed());
}

#[tokio::test]
async fn a64_a_post_that_was_answered_with_a_redirect_is_not_sent_again() {
    // The second hop refuses the connection; the first one has done the work.
    for status in [301, 302, 303, 307, 308] {
        let dead = Server::deaf([]);
        let server =
            Server::start((0..3).map(|_| {
                Act::Answer(reply(status, &[("location", &format!("{}/receipt", dead.url()))], ""))
            }));
        let plain = reqwest::Client::builder().no_proxy().build().unwrap();
        let clients = [
            reqwest_client(retry(policy(), &Manual::new())),
            RetryClient::new(plain, retry(policy(), &Manual::new())),
        ];
        for (n, client) in clients.iter().enumerate() {
            let gave_up = client.send(client.inner().post(server.url()).body("amount=5")).await.unwrap_err();
            assert_eq!(
                (gave_up.reason(), gave_up.ambiguous()),
                (StopReason::UnsafeToRepeat, true),
                "{status}"
            );
            assert_eq!(server.requests().len(), n + 1, "{status}");
        }
    }
}

#[tokio::test]
async fn a_post_that_was_never_sent_is_sent_again_only_where_that_is_certain() {
    let dead = Server::deaf([]);
    let attempts = async |client: RetryClient<relent::Standard, Manual>| {
        client.send(client.inner().post(dead.url())).await.unwrap_err().attempts()
    };
    assert_eq!(attempts(reqwest_client(retry(policy(), &Manual::new()))).await, 3);
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    assert_eq!(attempts(RetryClient::new(plain, retry(policy(), &Manual::new()))).await, 1);
}
