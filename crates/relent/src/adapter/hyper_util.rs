//! hyper-util's pooling [`Client`], retried.

use ::hyper_util::client::legacy::connect::Connect;
use ::hyper_util::client::legacy::{Builder, Client};
use http_body::Body;
use tower_layer::Layer;

use crate::http::{HttpRetry, HttpRetryLayer, ReplayBody};
use crate::retry::Retry;
use crate::timer::SystemTimer;

/// A client that retries, for requests with bodies `B` over connections from `N`: a tower service, cheap to clone.
pub type RetryClient<N, B, C = crate::Standard, T = SystemTimer> = HttpRetry<Client<N, ReplayBody<B>>, C, T>;

/// Retries the requests of `client` as [`HttpRetryLayer`] says; for that one's options, put it around the client yourself.
///
/// The client's own errors are known: a refused connection, a connection that broke, a stream that a server provably did not
/// process. A client sends by itself again what a pooled connection gave back unsent, as often as that happens, and tells
/// nobody; [`build`] leaves that to relent, where it is bounded and counted.
///
/// ```no_run
/// # async fn call() -> Result<(), Box<dyn std::error::Error>> {
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::Full;
/// use hyper_util::{client::legacy::Client, rt::TokioExecutor};
/// use relent::{Policy, Retry, adapter};
/// use tower::{Service, ServiceExt};
///
/// let client = Client::builder(TokioExecutor::new()).build_http();
/// let mut client = adapter::hyper_util::retry(client, Retry::new(Policy::default()));
///
/// let order = Request::get("http://orders.internal/7").body(Full::<Bytes>::default())?;
/// let response = client.ready().await?.call(order).await?;
/// println!("{}", response.status());
/// # Ok(()) }
/// ```
pub fn retry<N, B, C: Clone, T>(
    client: Client<N, ReplayBody<B>>,
    retry: Retry<C, T>,
) -> RetryClient<N, B, C, T> {
    HttpRetryLayer::new(retry).layer(client)
}

/// Builds the client, too, without repeats of its own.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::{Client, connect::HttpConnector};
/// use hyper_util::rt::TokioExecutor;
/// use relent::adapter::hyper_util::{self as adapter, RetryClient};
/// use relent::{Policy, Retry};
///
/// let mut client = Client::builder(TokioExecutor::new());
/// let client: RetryClient<_, Full<Bytes>> =
///     adapter::build(client.pool_max_idle_per_host(8), HttpConnector::new(), Retry::new(Policy::default()));
/// # let _ = client;
/// ```
pub fn build<N, B, C, T>(builder: &mut Builder, connector: N, retry: Retry<C, T>) -> RetryClient<N, B, C, T>
where
    N: Connect + Clone,
    B: Body + Send,
    B::Data: Send,
    ReplayBody<B>: Body + Send,
    <ReplayBody<B> as Body>::Data: Send,
    C: Clone,
{
    self::retry(builder.retry_canceled_requests(false).build(connector), retry)
}
