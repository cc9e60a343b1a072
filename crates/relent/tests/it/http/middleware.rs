//! Retries as one of reqwest-middleware's middlewares.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::{Extensions, StatusCode};
use relent::adapter::reqwest_middleware::RetryMiddleware;
use relent::http::{HttpRetryLayer, Stopped};
use relent::timer::Manual;
use relent::{RepeatRule, RetryError, StopReason};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, Result};

use super::client::{Handle, passing, policy, retry};
use super::server::{Act, Server};

/// Counts how often it is passed, and marks each request with it.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU32>);

#[derive(Clone, Debug, PartialEq)]
struct Passed(u32);

#[async_trait::async_trait]
impl Middleware for Counting {
    async fn handle(
        &self,
        mut request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<reqwest::Response> {
        let count = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        request.headers_mut().insert("x-passed", count.into());
        extensions.insert(Passed(count));
        next.run(request, extensions).await
    }
}

fn client(middleware: impl Middleware) -> (ClientWithMiddleware, Counting) {
    let (below, plain) = (Counting::default(), reqwest::Client::builder().no_proxy());
    let plain = plain.retry(reqwest::retry::never()).build().unwrap();
    (ClientBuilder::new(plain).with(middleware).with(below.clone()).build(), below)
}

fn retries(handle: Handle) -> RetryMiddleware<relent::Standard, Manual> {
    RetryMiddleware::new(handle)
}

#[tokio::test]
async fn what_stands_below_runs_in_each_attempt() {
    let time = Manual::new();
    let server = Server::start([Act::status(503), Act::Reset, Act::ok()]);
    let (client, below) = client(retries(retry(policy(), &time)));
    let request = client.put(server.url()).body("amount=5").with_extension("the caller's");
    let response = passing(&time, request.send()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.text().await.unwrap(), "done");
    assert_eq!(below.0.load(Ordering::Relaxed), 3);
    let requests = server.requests();
    let marks: Vec<_> = requests.iter().map(|request| request.header("x-passed")).collect();
    // Each attempt starts from the request as the caller made it.
    assert_eq!(marks, [["1"], ["2"], ["3"]]);
    assert!(requests.iter().all(|request| request.body == b"amount=5"));
}

#[tokio::test]
async fn what_attempts_leave_in_the_extensions_is_there_afterwards() {
    /// Looks at the extensions when the call is over.
    struct Looks(Arc<AtomicU32>);

    #[async_trait::async_trait]
    impl Middleware for Looks {
        async fn handle(
            &self,
            request: reqwest::Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<reqwest::Response> {
            let response = next.run(request, extensions).await;
            self.0.store(extensions.get::<Passed>().map_or(0, |passed| passed.0), Ordering::Relaxed);
            response
        }
    }

    let (time, left) = (Manual::new(), Arc::default());
    let server = Server::start([Act::status(503), Act::ok()]);
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = ClientBuilder::new(plain)
        .with(Looks(Arc::clone(&left)))
        .with(retries(retry(policy(), &time)))
        .with(Counting::default())
        .build();
    passing(&time, client.get(server.url()).send()).await.unwrap();
    assert_eq!(left.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_failed_response_says_why_it_is_the_last() {
    let server = Server::start([Act::status(404)]);
    let (client, _) = client(retries(retry(policy(), &Manual::new())));
    let response = client.get(server.url()).send().await.unwrap();
    let stopped = response.extensions().get::<Stopped>().unwrap();
    assert_eq!((stopped.reason, stopped.attempts), (StopReason::NotRetryable, 1));
}

#[tokio::test]
async fn an_error_keeps_its_reason_and_the_last_error() {
    let time = Manual::new();
    let dead = Server::deaf([]);
    let (client, _) = client(retries(retry(policy(), &time)));
    let error = passing(&time, client.get(dead.url()).send()).await.unwrap_err();
    let Error::Middleware(error) = error else { panic!("{error:?}") };
    let gave_up = error.downcast_ref::<RetryError<Error>>().unwrap();
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::AttemptsExhausted, 3));
    assert!(gave_up.last().unwrap().is_connect());
}

#[tokio::test]
async fn a_post_is_repeated_by_its_key_and_not_without() {
    let attempts = async |rule: RepeatRule| {
        let time = Manual::new();
        let server = Server::start([Act::Reset, Act::ok()]);
        let layer =
            HttpRetryLayer::new(retry(policy().repeat(rule), &time)).keys_from(|| Some("7".parse().unwrap()));
        let (client, _) = client(RetryMiddleware::from(layer));
        let answer = passing(&time, client.post(server.url()).body("x").send()).await;
        (answer.is_ok(), server.requests().len())
    };
    assert_eq!(attempts(RepeatRule::KeyHonoured).await, (true, 2));
    assert_eq!(attempts(RepeatRule::IdempotentMethods).await, (false, 1));
}

#[tokio::test]
async fn an_error_of_a_middleware_below_is_known_by_what_it_holds() {
    #[derive(Clone, Default)]
    struct Breaks(Arc<AtomicU32>);

    #[async_trait::async_trait]
    impl Middleware for Breaks {
        async fn handle(
            &self,
            request: reqwest::Request,
            extensions: &mut Extensions,
            next: Next<'_>,
        ) -> Result<reqwest::Response> {
            if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err(Error::middleware(std::io::Error::from(std::io::ErrorKind::ConnectionReset)));
            }
            next.run(request, extensions).await
        }
    }

    let time = Manual::new();
    let server = Server::start([Act::ok()]);
    let plain = reqwest::Client::builder().no_proxy().build().unwrap();
    let breaks = Breaks::default();
    let client = ClientBuilder::new(plain).with(retries(retry(policy(), &time))).with(breaks.clone()).build();
    assert_eq!(passing(&time, client.get(server.url()).send()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(breaks.0.load(Ordering::Relaxed), 2);
}
