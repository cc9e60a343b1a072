//! The blocking driver: the same session, a thread that waits.

use std::time::Duration;

use relent_core::{Repeat, Step};

use crate::attempt::Attempt;
use crate::call::Call;
use crate::classify::Classify;
use crate::error::{Failures, RetryError};
use crate::retry::Retry;
use crate::timer::BlockingTimer;

impl<C, T: BlockingTimer> Retry<C, T> {
    /// Runs `operation` on this thread until it succeeds or the policy says stop.
    ///
    /// A running operation can't be interrupted: keep to [`Attempt::time_left`], for instance as a socket timeout. An error
    /// that comes after the deadline ends the call.
    ///
    /// # Errors
    /// [`RetryError`], with the last error and the reason for stopping.
    ///
    /// ```
    /// use relent::Retry;
    ///
    /// let cargo = Retry::default().run_blocking(|_| std::fs::read_to_string("Cargo.toml"));
    /// assert!(cargo.is_ok_and(|text| text.contains("relent")));
    /// ```
    pub fn run_blocking<V, E>(
        &self,
        operation: impl FnMut(Attempt) -> Result<V, E>,
    ) -> Result<V, RetryError<E>>
    where
        C: Classify<E>,
    {
        let mut operation = operation;
        self.drive_blocking(Repeat::Yes, move |attempt, _last| operation(attempt))
    }

    /// The same for an operation that wants to see the error of the attempt before.
    ///
    /// # Errors
    /// As [`run_blocking`](Retry::run_blocking).
    pub fn run_blocking_seeing<V, E>(
        &self,
        operation: impl FnMut(Attempt, Option<&E>) -> Result<V, E>,
    ) -> Result<V, RetryError<E>>
    where
        C: Classify<E>,
    {
        self.drive_blocking(Repeat::Yes, operation)
    }

    /// The same for operations that must not take effect twice: repeats only what was provably not executed.
    ///
    /// # Errors
    /// As [`run_blocking`](Retry::run_blocking).
    pub fn run_blocking_only_if_unprocessed<V, E>(
        &self,
        operation: impl FnMut(Attempt) -> Result<V, E>,
    ) -> Result<V, RetryError<E>>
    where
        C: Classify<E>,
    {
        let mut operation = operation;
        self.drive_blocking(Repeat::UnprocessedOnly, move |attempt, _last| operation(attempt))
    }

    fn drive_blocking<V, E>(
        &self,
        repeat: Repeat,
        mut operation: impl FnMut(Attempt, Option<&E>) -> Result<V, E>,
    ) -> Result<V, RetryError<E>>
    where
        C: Classify<E>,
    {
        let mut call = Call::<_>::new(self, repeat);
        let mut first = match call.open() {
            Ok(first) => first,
            Err(stop) => return Err(RetryError::new(stop, Duration::ZERO, Failures::new(false))),
        };
        let attempt = Attempt::new(&first.launch());
        match first.inside.enter_from(first.outside, || operation(attempt, None)) {
            Ok(value) => {
                call.succeeded_at_once(&first);
                Ok(value)
            }
            Err(error) => {
                call.goes_on(first);
                self.go_on_blocking(call, error, operation)
            }
        }
    }

    /// The first attempt failed.
    #[cold]
    fn go_on_blocking<V, E>(
        &self,
        mut call: Call<&Self>,
        error: E,
        mut operation: impl FnMut(Attempt, Option<&E>) -> Result<V, E>,
    ) -> Result<V, RetryError<E>>
    where
        C: Classify<E>,
    {
        let mut failures = Failures::new(self.shared.keep_errors);
        let mut outcome = Err(error);
        loop {
            let mut step = match outcome {
                Ok(value) => {
                    call.succeeded();
                    return Ok(value);
                }
                Err(error) => {
                    let failure = self.classify.classify(&error);
                    failures.add(error);
                    call.failed(failure)
                }
            };
            let launch = loop {
                match step {
                    Step::Launch(launch) => break launch,
                    Step::Stop(stop) => return Err(RetryError::new(stop, call.elapsed(), failures)),
                    Step::Wait { until } => {
                        self.shared.timer.block_until(until);
                        step = call.due();
                    }
                }
            };
            let last = failures.last();
            outcome = call.inside().enter(|| operation(Attempt::new(&launch), last));
        }
    }
}
