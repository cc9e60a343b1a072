//! Test how your code retries without waiting for it: virtual time, a seeded jitter, and any outcome you can script.
//!
//! What stands here under `main` belongs under `#[test]` in your code.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use relent::timer::{Manual, SystemTimer, Timer};
use relent::{Policy, Retry, RetryError, Standard, StopReason};

/// The code under test. It takes its timer, so that a test can bring one along; users never notice.
struct Prices<T = SystemTimer> {
    retry: Retry<Standard, T>,
}

impl<T: Timer> Prices<T> {
    async fn of<F>(&self, mut ask: impl FnMut() -> F) -> Result<u32, RetryError<io::Error>>
    where
        F: Future<Output = io::Result<u32>>,
    {
        self.retry.run(|_| ask()).await
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    the_waits_are_those_of_the_policy()?;
    a_server_that_never_answers_costs_no_more_than_the_deadline()?;
    a_blocking_call_needs_nobody_to_move_the_clock()?;
    tokio_s_paused_time_does_as_well()?;
    Ok(())
}

fn policy() -> Result<Policy, relent::PolicyError> {
    Policy::exponential(Duration::from_secs(5), Duration::from_secs(60))
        .attempts(4)
        .attempt_timeout(Duration::from_secs(20))
        .deadline(Duration::from_secs(120))
        .build()
}

fn the_waits_are_those_of_the_policy() -> Result<(), Box<dyn Error>> {
    let time = Manual::new();
    let prices = Prices { retry: Retry::with_timer(policy()?, time.clone()).seed(7) };

    let mut answers = [Err(reset()), Err(reset()), Ok(350)].into_iter();
    let price = in_virtual_time(&time, prices.of(|| std::future::ready(answers.next().unwrap_or(Ok(0)))));
    assert_eq!(price?, 350);
    // Two waits with full jitter: up to 5 s and up to 10 s. The same seed draws the same waits, to the nanosecond.
    assert!(time.elapsed() <= Duration::from_secs(15));
    Ok(())
}

fn a_server_that_never_answers_costs_no_more_than_the_deadline() -> Result<(), Box<dyn Error>> {
    let time = Manual::new();
    let prices = Prices { retry: Retry::with_timer(policy()?, time.clone()).seed(7) };

    let gave_up = in_virtual_time(&time, prices.of(std::future::pending)).expect_err("nobody answers");
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::AttemptsExhausted, 4));
    assert!(gave_up.last_timed_out() && gave_up.ambiguous());
    assert!(time.elapsed() >= 4 * Duration::from_secs(20) && time.elapsed() <= Duration::from_secs(120));
    Ok(())
}

fn a_blocking_call_needs_nobody_to_move_the_clock() -> Result<(), Box<dyn Error>> {
    let time = Manual::new();
    let retry = Retry::with_timer(policy()?, time.clone()).seed(7);

    let mut answers = [Err(reset()), Ok(350)].into_iter();
    assert_eq!(retry.run_blocking(|_| answers.next().unwrap_or(Ok(0)))?, 350);
    assert!(time.elapsed() > Duration::ZERO);
    Ok(())
}

/// Code that keeps its `Retry` without a timer parameter is tested on tokio's paused time: it skips every wait.
fn tokio_s_paused_time_does_as_well() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let prices = Prices { retry: Retry::new(policy()?) };

    let gave_up = runtime.block_on(prices.of(std::future::pending)).expect_err("nobody answers");
    assert_eq!((gave_up.reason(), gave_up.attempts()), (StopReason::AttemptsExhausted, 4));
    assert!(gave_up.elapsed() >= Duration::from_secs(80));
    Ok(())
}

/// Runs a future to its end, moving the clock to the next sleeper whenever nothing else can happen.
fn in_virtual_time<F: Future>(time: &Manual, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        assert!(time.advance_to_next().is_some(), "the future waits for something else than time");
    }
}

fn reset() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}
