//! Retry a tower service: where the layer stands among the others, and what its calls share.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use relent::{Policy, Retry, RetryLayer, StopReason, Verdict};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let policy =
        Policy::exponential(Duration::from_millis(5), Duration::from_millis(20)).attempts(3).build()?;
    // Your errors are yours to read: here any is worth another attempt.
    let retry = Retry::new(policy).classify(|_: &Busy| Verdict::Transient);

    let calls = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    let flaky = service_fn(move |name: &'static str| {
        let call = counter.fetch_add(1, Ordering::Relaxed) + 1;
        async move { if call < 3 { Err(Busy) } else { Ok(format!("hello {name}")) } }
    });

    // The limit stands below the retries: a call that waits for its next attempt holds no place meanwhile.
    let mut service =
        ServiceBuilder::new().layer(RetryLayer::new(retry.clone())).concurrency_limit(10).service(flaky);
    let answer = service.ready().await?.call("tower").await?;
    assert_eq!((answer.as_str(), calls.load(Ordering::Relaxed)), ("hello tower", 3));

    // One handle, two services: both pay for their retries from one budget.
    let before = retry.budget_balance();
    let always_busy = service_fn(|_: ()| async { Err::<Infallible, _>(Busy) });
    let mut other = ServiceBuilder::new().layer(RetryLayer::new(retry.clone())).service(always_busy);
    let gave_up = other.ready().await?.call(()).await.expect_err("it is always busy");
    assert_eq!(gave_up.reason(), StopReason::BudgetExhausted);
    assert_eq!((before, retry.budget_balance()), (Some(1), Some(0)));
    Ok(())
}

/// The service's own error.
#[derive(Debug)]
struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("busy")
    }
}

impl Error for Busy {}
