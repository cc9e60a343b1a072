//! The lane of relent's defaults: a plain client before `relent proxy`, as a program in any language would be.
//!
//! Behind the proxy stands a recorder, which writes every attempt down and hands it on to the lane's server.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use relent::{Policy, StopReason};
use relent_config::{AccessLog, Config, ProxyConfig, Route, Upstream};
use relent_proxy::Proxy;
use tokio::net::TcpListener;

use super::{Ending, finish};
use crate::demo::ledger::Ledger;
use crate::demo::wire::Wire;

/// The name of its only upstream and policy.
const NAME: &str = "demo";

/// A client of a proxy.
#[derive(Debug)]
pub(super) struct Relent {
    client: Client<HttpConnector, Full<Bytes>>,
    proxy: Proxy,
}

impl Relent {
    /// All defaults; only the attempt timeout is the one that all lanes have.
    pub(super) async fn start(
        server: SocketAddr,
        ledger: &Arc<Ledger>,
        attempt_timeout: Duration,
    ) -> io::Result<Relent> {
        let recorder = record(Wire::new(Arc::clone(ledger)), server).await?;
        let policy = Policy::builder().attempt_timeout(attempt_timeout).build().map_err(io::Error::other)?;
        let endpoint = format!("http://{recorder}").parse().map_err(io::Error::other)?;
        let mut proxy = ProxyConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        proxy.access_log = AccessLog::None;
        proxy.outcome_header = true;
        let mut config = Config::default();
        config.policies.insert(NAME.to_owned(), policy);
        config.upstreams.insert(NAME.to_owned(), Upstream::new(vec![endpoint]));
        config.routes.push(Route::all(NAME, NAME));
        config.proxy = Some(proxy);
        let proxy = relent_proxy::start(config).map_err(io::Error::other)?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build(connector);
        Ok(Relent { client, proxy })
    }

    /// Where its requests go.
    pub(super) fn door(&self) -> SocketAddr {
        self.proxy.listening()
    }

    /// One call.
    pub(super) async fn call(&self, request: Request<Full<Bytes>>) -> Ending {
        match self.client.request(request).await {
            Ok(response) => {
                let told = outcome(&response);
                ended(finish(response).await, told)
            }
            Err(_) => Ending { ok: false, stop: None, ambiguous: true },
        }
    }
}

impl Drop for Relent {
    fn drop(&mut self) {
        self.proxy.drain();
    }
}

/// Listens, writes attempts down, and hands them on to `server`.
async fn record(wire: Wire<Incoming>, server: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let wire = wire.clone();
            let forward = service_fn(move |request| wire.send(towards(server, request)));
            // An attempt that broke off breaks off here, too.
            tokio::spawn(async move {
                drop(stream.set_nodelay(true));
                drop(http1::Builder::new().serve_connection(TokioIo::new(stream), forward).await);
            });
        }
        Ok::<_, Infallible>(())
    });
    Ok(address)
}

/// The same request with a target that a client can connect to.
fn towards(server: SocketAddr, mut request: Request<Incoming>) -> Request<Incoming> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Authority::try_from(server.to_string()).ok();
    *request.uri_mut() = Uri::from_parts(parts).expect("an address and a path make a URI");
    request
}

/// What the proxy says of the call: why it ended, and whether it may have been executed.
fn outcome<B>(response: &Response<B>) -> (Option<StopReason>, bool) {
    let told =
        response.headers().get("relent-outcome").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let stop = told.split(", ").find_map(|member| member.strip_prefix("stop="));
    (
        stop.and_then(|name| REASONS.into_iter().find(|reason| reason.name() == name)),
        told.ends_with(", ambiguous"),
    )
}

const REASONS: [StopReason; 6] = [
    StopReason::Succeeded,
    StopReason::UnsafeToRepeat,
    StopReason::AttemptsExhausted,
    StopReason::BudgetExhausted,
    StopReason::DeadlineTooClose,
    StopReason::DeadlineExceeded,
];

fn ended(status: StatusCode, (stop, ambiguous): (Option<StopReason>, bool)) -> Ending {
    Ending { ok: status.is_success(), stop, ambiguous: ambiguous && !status.is_success() }
}

#[cfg(test)]
mod tests {
    use relent::{Jitter, defaults};

    use super::*;

    #[test]
    fn the_defaults_are_what_the_demo_says_of_them() {
        let policy = Policy::builder().build().unwrap();
        let about = crate::demo::lane::Lane::Relent.about();
        assert_eq!(about, "relent proxy by default: 3 tries, the same waits, and a budget of 10 %");
        assert_eq!((policy.attempts(), policy.backoff().jitter()), (3, Jitter::Full));
        assert_eq!(defaults::BUDGET_RATIO, relent::Ratio::percent(10));
        let ceilings = [1, 2].map(crate::demo::lane::loops::textbook_ceiling);
        assert_eq!(ceilings, [defaults::BASE, defaults::BASE * 2]);
    }

    #[test]
    fn an_ending_is_what_the_proxy_says() {
        let told =
            |text: &str| outcome(&Response::builder().header("relent-outcome", text).body(()).unwrap());
        assert_eq!(told("stop=Succeeded, attempts=1"), (Some(StopReason::Succeeded), false));
        assert_eq!(
            told("stop=BudgetExhausted, attempts=1, ambiguous"),
            (Some(StopReason::BudgetExhausted), true)
        );
        assert_eq!(outcome(&Response::new(())), (None, false));
        let fine = ended(StatusCode::OK, (Some(StopReason::Succeeded), true));
        assert_eq!(fine, Ending { ok: true, stop: Some(StopReason::Succeeded), ambiguous: false });
    }
}
