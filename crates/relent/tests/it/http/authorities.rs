//! A client of many hosts: each has what it shares for itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{Empty, Full};
use relent::http::{HttpRetryLayer, Stopped};
use relent::{Policy, Ratio, RatioConfig, Retry, StopReason};
use tower::{Service, ServiceBuilder, ServiceExt};

fn policy() -> Policy {
    let budget = RatioConfig { reserve: Some(4), ..RatioConfig::new(Ratio::percent(10)) };
    Policy::constant(Duration::ZERO).attempts(2).budget(budget).build().unwrap()
}

/// One GET through the layer: its status, and why there was no other attempt.
async fn get(
    client: &mut (
             impl Service<Request<Empty<Bytes>>, Response = impl Into<Answer>, Error: std::fmt::Debug> + Send
         ),
    uri: &str,
) -> (StatusCode, Option<StopReason>) {
    let request = Request::get(uri).body(Empty::new()).unwrap();
    let Answer(status, reason) = client.ready().await.unwrap().call(request).await.unwrap().into();
    (status, reason)
}

struct Answer(StatusCode, Option<StopReason>);

impl<B> From<Response<B>> for Answer {
    fn from(response: Response<B>) -> Answer {
        let stopped = response.extensions().get::<Stopped>();
        Answer(response.status(), stopped.map(|stopped| stopped.reason))
    }
}

/// The dead host answers 503, any other one to every second request.
fn answer(host: &str, flaky: &std::sync::atomic::AtomicU32) -> Response<Full<Bytes>> {
    let ok = host != "dead" && flaky.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 == 1;
    let status = if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Response::builder().status(status).body(Full::new(Bytes::new())).unwrap()
}

#[tokio::test]
async fn a73_of_two_hosts_the_dead_one_leaves_the_others_budget_untouched() {
    for (per_authority, well) in [(true, StatusCode::OK), (false, StatusCode::SERVICE_UNAVAILABLE)] {
        let layer = HttpRetryLayer::new(Retry::new(policy()));
        let layer = if per_authority { layer.per_authority(8) } else { layer };
        let flaky = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let mut client = ServiceBuilder::new().layer(layer).service_fn(move |request: Request<_>| {
            let answer = answer(request.uri().host().unwrap(), &flaky);
            async move { Ok::<_, std::io::Error>(answer) }
        });
        let mut reasons = Vec::new();
        for _ in 0..6 {
            reasons.push(get(&mut client, "http://dead/").await.1);
        }
        assert_eq!(reasons[0], Some(StopReason::AttemptsExhausted));
        assert_eq!(reasons[5], Some(StopReason::BudgetExhausted));
        let (status, reason) = get(&mut client, "http://well/").await;
        assert_eq!(status, well, "{reason:?}");
    }
}

#[tokio::test]
async fn a_budget_that_was_given_is_one_for_all_hosts() {
    let policy = policy();
    let budget = relent::Budgets::new().get("all", &policy).unwrap();
    let layer = HttpRetryLayer::new(Retry::new(policy).budget(Arc::clone(&budget))).per_authority(8);
    let mut client = ServiceBuilder::new().layer(layer).service_fn(|_: Request<_>| async {
        let busy = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE);
        Ok::<_, std::io::Error>(busy.body(Full::new(Bytes::new())).unwrap())
    });
    for host in ["a", "b", "c", "d"] {
        let (_, reason) = get(&mut client, &format!("http://{host}/")).await;
        assert_eq!(reason, Some(StopReason::AttemptsExhausted));
    }
    assert_eq!(get(&mut client, "http://e/").await.1, Some(StopReason::BudgetExhausted));
    let counts = budget.counts().unwrap();
    assert_eq!((counts.granted, counts.refused), (4, 1));
}
