//! Retry the calls of a reqwest client: one line around the client, and the same requests as before.

mod flaky;

use std::error::Error;
use std::time::Duration;

use relent::adapter::reqwest::RetryClient;
use relent::http::Stopped;
use relent::{Policy, PolicyError, Retry, StopReason};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let answers = ["503 Service Unavailable", "503 Service Unavailable", "200 OK", "503 Service Unavailable"];
    let shop = flaky::start(answers).await?;

    let client = RetryClient::build(reqwest::Client::builder(), Retry::new(policy()?))?;
    let price = client.send(client.inner().get(shop.url("/price/tea"))).await?;
    assert_eq!((price.status().as_u16(), shop.requests()), (200, 3)); // two 503 on the way

    // A POST that may have been executed is not sent again. The server's answer comes back, with the reason.
    let order = client.send(client.inner().post(shop.url("/orders")).body("tea")).await?;
    let stopped = order.extensions().get::<Stopped>().ok_or("the last answer says why it is")?;
    assert_eq!((order.status().as_u16(), stopped.reason), (503, StopReason::UnsafeToRepeat));
    assert_eq!((order.text().await?.as_str(), shop.requests()), ("503 Service Unavailable", 4));

    no_answer_at_all().await
}

fn policy() -> Result<Policy, PolicyError> {
    Policy::exponential(Duration::from_millis(5), Duration::from_millis(50)).build()
}

/// Without any answer there is an error, with reqwest's own inside. Nobody listens on port 1, so nothing was sent, and a
/// POST may be repeated, too.
async fn no_answer_at_all() -> Result<(), Box<dyn Error>> {
    let client = RetryClient::build(reqwest::Client::builder(), Retry::new(policy()?))?;
    let gave_up = client
        .send(client.inner().post("http://127.0.0.1:1/").body("tea"))
        .await
        .expect_err("nobody listens");
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::AttemptsExhausted, 3));
    assert!(gave_up.last().is_some_and(reqwest::Error::is_connect) && !gave_up.ambiguous());
    Ok(())
}
