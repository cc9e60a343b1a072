//! Retry the calls of a reqwest client: one line around the client, and the same requests as before.

mod flaky;

use std::error::Error;
use std::time::Duration;

use relent::adapter::reqwest::RetryClient;
use relent::http::Stopped;
use relent::{Policy, PolicyError, Retry, StopReason};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = RetryClient::new(reqwest::Client::new(), Retry::new(policy()?));

    let server = flaky::start(&["503 Service Unavailable", "503 Service Unavailable", "200 OK"]).await?;
    let response = client.send(client.inner().get(server.url("/price/tea"))).await?;
    assert_eq!((response.status().as_u16(), server.requests()), (200, 3));
    assert_eq!(response.text().await?, "200 OK");

    // A response answers, whatever its status: why a failed one is the last stands with it.
    let server = flaky::start(&["503 Service Unavailable"]).await?;
    let response = client.send(client.inner().post(server.url("/orders")).body("tea")).await?;
    let stopped =
        response.extensions().get::<Stopped>().ok_or("a failed response says why it is the last")?;
    assert_eq!((stopped.reason, stopped.attempts), (StopReason::UnsafeToRepeat, 1));
    assert_eq!(response.text().await?, "503 Service Unavailable");

    no_answer_at_all().await
}

fn policy() -> Result<Policy, PolicyError> {
    Policy::exponential(Duration::from_millis(5), Duration::from_millis(50)).build()
}

/// Without any answer there is an error, with reqwest's own inside. Nobody listens on port 1, so nothing was sent, and a
/// POST may be repeated, too.
async fn no_answer_at_all() -> Result<(), Box<dyn Error>> {
    let client = RetryClient::new(reqwest::Client::new(), Retry::new(policy()?));
    let gave_up = client
        .send(client.inner().post("http://127.0.0.1:1/").body("tea"))
        .await
        .expect_err("nobody listens");
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::AttemptsExhausted, 3));
    assert!(gave_up.last().is_some_and(reqwest::Error::is_connect) && !gave_up.ambiguous());
    Ok(())
}
