//! An axum server that keeps to its callers' time: calls inside a handler give up while there is still somebody to answer,
//! and work that nobody waits for any more is not done.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::future::pending;
use std::io;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use relent::http::{DeadlineLayer, SendDeadlineError, SendDeadlineLayer};
use relent::{Deadline, Retry, StopReason};
use tokio::net::TcpListener;
use tower::{ServiceBuilder, ServiceExt};

/// The warehouse hangs today. By its policy a call may take 15 s; the caller gives less, and the call fits into that.
async fn price(State(warehouse): State<Retry>) -> String {
    let asked = warehouse.run(|_| pending::<io::Result<u32>>());
    match asked.await {
        Ok(price) => format!("{price}"),
        Err(gave_up) if gave_up.reason() == StopReason::DeadlineExceeded => "350, as of yesterday".to_owned(),
        Err(gave_up) => format!("unknown: {gave_up}"),
    }
}

/// Takes no notice of time: it is dropped when the time is up.
async fn report() -> &'static str {
    pending().await
}

fn shop() -> Router {
    Router::new()
        .route("/price", get(price))
        .route("/report", get(report))
        .with_state(Retry::default())
        // Nobody gets more than 2 s, whatever they say.
        .layer(DeadlineLayer::new().at_most(Duration::from_secs(2)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, shop()).await });

    let soon = Deadline::within(Duration::from_millis(200));
    let answer = soon.run(ask(format!("http://{address}/price"))).await?;
    assert_eq!(answer.status(), StatusCode::OK);
    let text = answer.into_body().collect().await?.to_bytes();
    println!("/price: {}", String::from_utf8_lossy(&text));
    assert_eq!(text, "350, as of yesterday");

    let soon = Deadline::within(Duration::from_millis(200));
    let answer = soon.run(ask(format!("http://{address}/report"))).await?;
    println!("/report: {}", answer.status());
    assert_eq!(answer.status(), StatusCode::GATEWAY_TIMEOUT);

    // `soon` has passed: there is nobody to work for, and nothing is sent.
    let refused = soon.run(ask(format!("http://{address}/price"))).await.map(|_| ());
    let refused = refused.err().ok_or("it was sent")?.downcast::<SendDeadlineError<_>>()?;
    assert!(matches!(*refused, SendDeadlineError::<ClientError>::Exceeded(_)));
    println!("too late: {refused}");

    server.abort();
    Ok(())
}

type ClientError = hyper_util::client::legacy::Error;

/// A request that says how much time is left. This client does not retry; below one that does, each attempt says it anew.
async fn ask(
    url: String,
) -> Result<Response<impl BodyExt<Data = Bytes, Error: Error + 'static>>, Box<dyn Error>> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let client = ServiceBuilder::new().layer(SendDeadlineLayer::new()).service(client);
    let request = Request::get(url).body(Full::<Bytes>::default())?;
    Ok(client.oneshot(request).await?)
}
