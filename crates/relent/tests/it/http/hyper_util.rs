//! hyper-util's client with retries around it.

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use relent::StopReason;
use relent::adapter::hyper_util::{self as adapter, RetryClient};
use relent::timer::Manual;
use tower::Service;

use super::client::{Handle, hyper_client, passing, policy, retry};
use super::server::{Act, Server};

type Built = RetryClient<HttpConnector, Full<Bytes>, relent::Standard, Manual>;

fn built(handle: Handle) -> Built {
    adapter::build(&mut Client::builder(TokioExecutor::new()), HttpConnector::new(), handle)
}

fn put(server: &Server) -> Request<Full<Bytes>> {
    Request::put(server.url()).body(Full::new(Bytes::from("amount=5"))).unwrap()
}

#[tokio::test]
async fn a_request_is_sent_until_it_is_answered() {
    let time = Manual::new();
    let around: Built = adapter::retry(hyper_client(), retry(policy(), &time));
    for mut client in [around, built(retry(policy(), &time))] {
        let server = Server::start([Act::status(503), Act::Reset, Act::ok()]);
        let response = passing(&time, client.call(put(&server))).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "done");
        let requests = server.requests();
        assert_eq!(requests.len(), 3);
        assert!(requests.iter().all(|request| request.body == b"amount=5"));
    }
}

#[tokio::test]
async fn what_found_no_connection_is_known() {
    let time = Manual::new();
    let dead = Server::deaf([]);
    let post = Request::post(dead.url()).body(Full::default()).unwrap();
    let gave_up = passing(&time, built(retry(policy(), &time)).call(post)).await.unwrap_err();
    assert_eq!(
        (gave_up.reason(), gave_up.attempts(), gave_up.ambiguous()),
        (StopReason::AttemptsExhausted, 3, false)
    );
    assert!(gave_up.last().unwrap().is_connect());
}
