//! Retry an async function: how to say when to stop, and what you are told when it stops.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

use std::error::Error;
use std::io;
use std::time::Duration;

use relent::{Attempt, Policy, Retry, StopReason};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let policy = Policy::exponential(Duration::from_millis(10), Duration::from_secs(1)) // waits: base, cap
        .attempts(4)
        .attempt_timeout(Duration::from_millis(500))
        .deadline(Duration::from_secs(2))
        .build()?; // a policy that contradicts itself is refused here
    let retry = Retry::new(policy); // keep it: clones share one budget

    let price = retry.run(|attempt| price_of("tea", attempt)).await?;
    println!("tea costs {price}");
    assert_eq!(price, 350);

    // An error that would come back the same way is not retried.
    let gave_up = retry.run(|attempt| price_of("coffee", attempt)).await.expect_err("there is no coffee");
    println!("coffee: {}, {} attempt", gave_up.reason(), gave_up.attempts());
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::NotRetryable, 1));

    // The last error is there, untouched.
    assert_eq!(gave_up.last().map(io::Error::kind), Some(io::ErrorKind::NotFound));
    Ok(())
}

/// What you have already: an async function that may fail. This one breaks off twice and then answers.
async fn price_of(what: &str, attempt: Attempt) -> io::Result<u32> {
    let outcome = match (what, attempt.number()) {
        ("tea", 1 | 2) => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
        ("tea", _) => Ok(350),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    println!("attempt {} at {what}: {outcome:?}", attempt.number());
    outcome
}
