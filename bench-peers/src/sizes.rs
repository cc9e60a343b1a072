//! How many bytes a call is, before it is first polled: what it costs to have many of them.

use std::sync::Arc;
use std::time::Duration;

use backon::Retryable;
use relent::{Policy, Retry, RetryLayer, Verdict};
use tower::{Layer, Service};

use crate::cases::{Bad, Budgeted, operation};

/// The name of a value and its size.
pub fn all() -> Vec<(&'static str, usize)> {
    let transient: fn(&Bad) -> Verdict = |_| Verdict::Transient;
    let retry = Retry::new(Policy::default()).classify(transient);
    let delays = tokio_retry::strategy::ExponentialBackoff::from_millis(10);
    let delays = delays.map(tokio_retry::strategy::jitter as fn(Duration) -> Duration).take(3);
    let budget = Arc::new(tower::retry::budget::TpsBudget::default());
    let mut tower = tower::retry::Retry::new(Budgeted(budget), tower::service_fn(operation));
    let mut layer = RetryLayer::new(retry.clone()).layer(tower::service_fn(operation));
    vec![
        ("the operation's own future", size_of_val(&operation(1))),
        ("relent: a handle", size_of::<Retry>()),
        ("relent: run", size_of_val(&retry.run(|_| operation(1)))),
        ("backon: retry", size_of_val(&(|| operation(1)).retry(backon::ExponentialBuilder::default()))),
        ("tokio-retry: start", size_of_val(&tokio_retry::Retry::start(delays, || operation(1)))),
        ("relent: tower layer's call", size_of_val(&layer.call(1))),
        ("tower Retry's call, budget, no wait", size_of_val(&tower.call(1))),
    ]
}
