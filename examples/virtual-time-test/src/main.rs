//! Test how your code retries without waiting for it: virtual time, a seeded jitter, and any outcome you can script.
//!
//! What stands here under `main` belongs under `#[test]` in your code.

use std::error::Error;
use std::future::Future;
use std::io;
use std::time::Duration;

use relent::testing::{self, Recorder, Script};
use relent::timer::{Manual, SystemTimer, Timer};
use relent::{Jitter, Policy, Retry, RetryError, Standard, StopReason};

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
    a_script_says_what_comes_and_a_record_what_was_made_of_it()?;
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

/// The shortest: a script in the place of what is called, and the record of what happened, to the nanosecond.
fn a_script_says_what_comes_and_a_record_what_was_made_of_it() -> Result<(), Box<dyn Error>> {
    let policy = Policy::constant(Duration::from_secs(5)).jitter(Jitter::None).build()?;
    let ((price, record), took) = testing::block_on(async |time| {
        let recorder = Recorder::new(&time);
        let script = Script::on(&time).fails(reset()).succeeds(350).takes(Duration::from_millis(20));
        let retry = Retry::with_timer(policy, time).on_event(recorder.listener());
        (retry.run(recorder.around(script.operation())).await, recorder.lines())
    });
    assert_eq!((price?, took), (350, Duration::from_millis(5_020)));
    assert_eq!(
        record,
        [
            "0ms launch 1",
            "0ms fail 1 transient cause=reset ambiguous",
            "0ms wait until 5s by backoff",
            "5s launch 2",
            "5.02s stop Succeeded attempts=2",
        ]
    );
    Ok(())
}

fn the_waits_are_those_of_the_policy() -> Result<(), Box<dyn Error>> {
    let time = Manual::new();
    let prices = Prices { retry: Retry::with_timer(policy()?, time.clone()).seed(7) };

    let mut answers = [Err(reset()), Err(reset()), Ok(350)].into_iter();
    let price = time.run(prices.of(|| std::future::ready(answers.next().unwrap_or(Ok(0)))));
    assert_eq!(price?, 350);
    // Two waits with full jitter: up to 5 s and up to 10 s. The same seed draws the same waits, to the nanosecond.
    assert!(time.elapsed() <= Duration::from_secs(15));
    Ok(())
}

fn a_server_that_never_answers_costs_no_more_than_the_deadline() -> Result<(), Box<dyn Error>> {
    let time = Manual::new();
    let prices = Prices { retry: Retry::with_timer(policy()?, time.clone()).seed(7) };

    let gave_up = time.run(prices.of(std::future::pending)).expect_err("nobody answers");
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

fn reset() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}
