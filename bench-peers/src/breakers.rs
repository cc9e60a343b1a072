//! Closed breakers: what one adds to a call that succeeds, and what it adds to a retry.

use std::hint::black_box;
use std::time::Duration;

use relent::{BreakerLayer, CircuitBreaker, ClassicConfig, Policy, Ratio};
use tower::{Layer, Service, ServiceExt};
use tower_resilience_circuitbreaker::CircuitBreakerLayer;

use crate::cases::{Case, block_on, case, operation, retry, untimed, work};
use crate::each;

pub fn all() -> Vec<Case> {
    let mut cases = alone();
    cases.extend(peers());
    cases.extend(in_a_retry());
    cases
}

fn closed(config: ClassicConfig) -> CircuitBreaker {
    CircuitBreaker::new(config).expect("a valid breaker")
}

fn alone() -> Vec<Case> {
    let slow = ClassicConfig::new().slow_calls(Duration::from_secs(10), Ratio::percent(80));
    let (sync, permit, timed) = (closed(ClassicConfig::new()), closed(ClassicConfig::new()), closed(slow));
    let (asynchronous, layered) = (closed(ClassicConfig::new()), closed(ClassicConfig::new()));
    vec![
        case("bare call, sync", |n| each!(n, i, work(i))),
        case("breaker: relent, sync", move |n| each!(n, i, sync.run_blocking(|| work(i)))),
        case("breaker: relent, sync, slow calls too", move |n| each!(n, i, timed.run_blocking(|| work(i)))),
        case("breaker: relent, permit", move |n| {
            each!(n, i, {
                let permit = permit.try_acquire();
                let done = work(i);
                permit.map(|permit| if done.is_ok() { permit.success() } else { permit.failure() })
            })
        }),
        case("breaker: relent, async", move |n| {
            block_on(async { each!(n, i, asynchronous.run(|| operation(i)).await) })
        }),
        case("breaker: relent, tower layer", move |n| {
            let mut service = BreakerLayer::new(layered.clone()).layer(tower::service_fn(operation));
            block_on(async { each!(n, i, service.ready().await.expect("ready").call(i).await.is_ok()) })
        }),
    ]
}

fn peers() -> Vec<Case> {
    let failsafe = failsafe::Config::new().build();
    let failsafe_async = failsafe::Config::new().build();
    let recloser = recloser::Recloser::custom().build();
    let recloser_async = recloser::AsyncRecloser::from(recloser::Recloser::custom().build());
    vec![
        case("breaker: recloser, sync", move |n| each!(n, i, recloser.call(|| work(i)))),
        case("breaker: recloser, async", move |n| {
            block_on(async { each!(n, i, recloser_async.call(operation(i)).await) })
        }),
        case("breaker: failsafe, sync", move |n| {
            use failsafe::CircuitBreaker;
            each!(n, i, failsafe.call(|| work(i)))
        }),
        case("breaker: failsafe, async", move |n| {
            use failsafe::futures::CircuitBreaker;
            block_on(async { each!(n, i, failsafe_async.call(operation(i)).await) })
        }),
        case("breaker: tower-resilience, tower layer", |n| {
            let layer = CircuitBreakerLayer::builder().build().expect("a valid breaker");
            let mut service = layer.layer(tower::service_fn(operation));
            block_on(async { each!(n, i, service.ready().await.expect("ready").call(i).await.is_ok()) })
        }),
    ]
}

fn in_a_retry() -> Vec<Case> {
    let relent = |name, policy: fn() -> relent::PolicyBuilder| {
        let handle = retry(policy());
        case(name, move |n| block_on(async { each!(n, i, handle.run(|_| operation(i)).await) }))
    };
    let heard = retry(Policy::builder().breaker(ClassicConfig::new())).on_event(|event| {
        black_box(event);
    });
    vec![
        relent("relent run, no budget, classic breaker", || {
            untimed().no_budget().breaker(ClassicConfig::new())
        }),
        relent("relent run, defaults, classic breaker", || Policy::builder().breaker(ClassicConfig::new())),
        relent("relent run, defaults, classic breaker, slow calls too", || {
            let slow = ClassicConfig::new().slow_calls(Duration::from_secs(10), Ratio::percent(80));
            Policy::builder().breaker(slow)
        }),
        case("relent run, defaults, classic breaker, listener", move |n| {
            block_on(async { each!(n, i, heard.run(|_| operation(i)).await) })
        }),
    ]
}
