//! Retry the calls of a tonic client: one layer around the channel, and a server that says when to come back.

mod shop;

use std::error::Error;
use std::time::Duration;

use relent::adapter::tonic::{TonicRetryLayer, stopped};
use relent::grpc::GrpcRetryLayer;
use relent::{Policy, RepeatRule, Retry, StopReason};
use tonic::Code;
use tonic::transport::Endpoint;
use tower::ServiceBuilder;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (address, shop) = shop::start().await?;

    let waits = Policy::exponential(Duration::from_millis(5), Duration::from_millis(50));
    // A price may be asked for twice. Nobody says so of an order, so that only what no server has seen is repeated.
    let reads = Retry::new(waits.clone().repeat(RepeatRule::Always).build()?);
    let others = Retry::new(waits.build()?);
    let layer = GrpcRetryLayer::new(others).method("shop.Shop", "Price", reads);

    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect_lazy();
    let channel = ServiceBuilder::new().layer(TonicRetryLayer::from(layer)).service(channel);

    // The server is busy at first, and asks for 20 ms.
    let price = shop::call(channel.clone(), "/shop.Shop/Price", "tea").await?;
    assert_eq!((price.get_ref().as_ref(), shop.calls()), (&b"350"[..], 2));

    // An order that failed is not sent again: the server's own status comes back, with the reason.
    let status = shop::call(channel, "/shop.Shop/Order", "tea").await.expect_err("the till is closed");
    assert_eq!((status.code(), status.message()), (Code::Unavailable, "the till is closed"));
    let why = stopped(&status).ok_or("it came through the layer")?;
    assert_eq!((why.reason, why.attempts, shop.calls()), (StopReason::UnsafeToRepeat, 1, 3));
    Ok(())
}
