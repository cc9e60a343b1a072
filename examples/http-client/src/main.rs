//! Retry HTTP calls: what is sent again and what is not, when the server asks to wait, and how the last real response
//! comes back.

mod flaky;

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use relent::http::{HttpRetryLayer, Stopped};
use relent::{Policy, RepeatRule, Retry, StopReason};
use tower::{Service, ServiceBuilder, ServiceExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::exponential(Duration::from_millis(5), Duration::from_millis(50)).build()?;
    let retry = Retry::new(policy);

    // Any client will do that is a tower service; this one is hyper-util's.
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut client = ServiceBuilder::new().layer(HttpRetryLayer::new(retry)).service(client);

    let server = flaky::start(["503 Service Unavailable", "503 Service Unavailable", "200 OK"]).await?;
    let request = Request::get(server.url("/price/tea")).body(Full::<Bytes>::default())?;
    let response = client.ready().await?.call(request).await?;
    assert_eq!((response.status(), server.requests()), (StatusCode::OK, 3));

    // A POST that may have been executed is not sent again. Its response comes back as it was, with the reason.
    let server = flaky::start(["503 Service Unavailable", "200 OK"]).await?;
    let request = Request::post(server.url("/orders")).body(Full::from("tea"))?;
    let response = client.ready().await?.call(request).await?;
    let stopped = response.extensions().get::<Stopped>().ok_or("the last answer says why it is")?;
    assert_eq!((stopped.reason, server.requests()), (StopReason::UnsafeToRepeat, 1));
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.into_body().collect().await?.to_bytes(), "503 Service Unavailable");

    with_an_idempotency_key().await?;
    a_server_that_asks_to_wait().await
}

/// A POST with a key is sent again, where you say that the server deduplicates by it. Each attempt has the same key.
async fn with_an_idempotency_key() -> Result<(), Box<dyn Error>> {
    let policy = Policy::exponential(Duration::from_millis(5), Duration::from_millis(50))
        .repeat(RepeatRule::KeyHonoured)
        .build()?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut client = ServiceBuilder::new().layer(HttpRetryLayer::new(Retry::new(policy))).service(client);

    let server = flaky::start(["502 Bad Gateway", "201 Created"]).await?;
    let request =
        Request::post(server.url("/orders"))
            .header("idempotency-key", "order-7")
            .body(Full::<Bytes>::from("tea"))?;
    let response = client.ready().await?.call(request).await?;
    assert_eq!((response.status(), server.requests()), (StatusCode::CREATED, 2));
    assert!(server.heads().iter().all(|head| head.contains("idempotency-key: order-7")));
    Ok(())
}

/// `Retry-After` is kept. If it asks for more than `max_hint`, the answer is yours at once.
async fn a_server_that_asks_to_wait() -> Result<(), Box<dyn Error>> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let mut client = ServiceBuilder::new().layer(HttpRetryLayer::new(Retry::default())).service(client);

    let server = flaky::start(["429 Too Many Requests\r\nretry-after: 3600", "200 OK"]).await?;
    let request = Request::get(server.url("/price/tea")).body(Full::<Bytes>::default())?;
    let response = client.ready().await?.call(request).await?;
    let stopped = response.extensions().get::<Stopped>().ok_or("the last answer says why it is")?;
    assert_eq!(stopped.reason, StopReason::HintTooLong);
    assert_eq!(stopped.hint, Some(Duration::from_secs(3600)));
    Ok(())
}
