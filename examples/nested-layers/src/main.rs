//! Three layers that each retry three times make 3 requests at a dead service, not 27: how they share their attempts, also
//! over a spawned task.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use relent::{Nested, Policy, PolicyError, Retry, Scope, StopReason};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let shared = requests_at_a_dead_service(Nested::Credit).await?; // the default
    let multiplied = requests_at_a_dead_service(Nested::Allow).await?;
    println!("attempts shared: {shared} requests; each layer for itself: {multiplied} requests");
    assert_eq!((shared, multiplied), (3, 27));

    a_spawned_call_shares_too().await
}

/// A page asks for an order, the order for its price, and the price service is dead. Nobody hands anything on: inside an
/// attempt, the calls that it makes find out by themselves what they may still spend.
async fn requests_at_a_dead_service(nested: Nested) -> Result<u32, PolicyError> {
    // Without a budget, so that nothing but the shared attempts stands between 3 and 27.
    let policy = Policy::constant(Duration::ZERO).attempts(3).no_budget().nested(nested).build()?;
    let (page, order, price) = (Retry::new(policy.clone()), Retry::new(policy.clone()), Retry::new(policy));

    let requests = Cell::new(0);
    let dead = || async {
        requests.set(requests.get() + 1);
        Err::<u32, _>(io::Error::from(io::ErrorKind::ConnectionReset))
    };
    let outcome = page.run(|_| async { order.run(|_| async { price.run(|_| dead()).await }).await }).await;
    assert!(outcome.is_err());
    Ok(requests.get())
}

/// What a layer grants lives on its task. A scope carries it to another one, and brings back what is left.
async fn a_spawned_call_shares_too() -> Result<(), Box<dyn Error>> {
    let policy = Policy::constant(Duration::ZERO).attempts(3).build()?;
    let (outer, inner) = (Retry::new(policy.clone()), Retry::new(policy));

    let requests = Arc::new(AtomicU32::new(0));
    let gave_up = outer
        .run(|_| async {
            let (mut scope, inner, requests) = (Scope::take(), inner.clone(), Arc::clone(&requests));
            let task = tokio::spawn(async move {
                let dead = || async {
                    requests.fetch_add(1, Ordering::Relaxed);
                    Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused))
                };
                let outcome = scope.run(inner.run(|_| dead())).await;
                (outcome, scope)
            });
            let (outcome, scope) = task.await.map_err(io::Error::other)?;
            scope.rejoin();
            outcome.map_err(io::Error::other)
        })
        .await
        .expect_err("the service is dead");
    // Three requests in all: two by the inner call, in the outer one's first attempt, and one in its second. The outer one
    // might have made a third attempt by itself, had it not been spent below.
    assert_eq!(requests.load(Ordering::Relaxed), 3);
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::CreditExhausted, 2));
    Ok(())
}
