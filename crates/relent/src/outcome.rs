//! Values that are failures: an answer that says "busy", a lookup that found nothing yet.
//!
//! Such an attempt has succeeded as far as the language goes. [`Retry::map_outcome`] and [`Retry::retry_value_if`] say which
//! of them are to be retried. Where no retry is granted the last real value is what comes back, with the reason beside it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use relent_core::{Failure, Health, Stop, Verdict};

use crate::attempt::Attempt;
use crate::call::Handle;
use crate::classify::{Classify, Judgement};
use crate::error::RetryError;
use crate::retry::Retry;
use crate::run::{Operation, Run, Until};
use crate::timer::{BlockingTimer, Clock, Timer};

impl<C, T: Clock> Retry<C, T> {
    /// Says of whole outcomes, values included, which are failures. `None` leaves an error to the handle's classifier, and
    /// makes a value a success.
    ///
    /// ```
    /// use relent::{Policy, Retry, StopReason, Verdict};
    /// use std::io;
    ///
    /// struct Reply { code: u16 }
    ///
    /// let retry = Retry::new(Policy::constant(std::time::Duration::ZERO).build()?)
    ///     .map_outcome(|outcome: &io::Result<Reply>| match outcome {
    ///         Ok(reply) if reply.code == 503 => Some(Verdict::Transient),
    ///         _ => None,
    ///     });
    /// let answer = retry.run_blocking(|attempt| Ok(Reply { code: if attempt.is_retry() { 200 } else { 503 } })).unwrap();
    /// assert_eq!((answer.value.code, answer.stopped), (200, None));
    ///
    /// // The last real value comes back, with the reason.
    /// let answer = retry.run_blocking(|_| Ok(Reply { code: 503 })).unwrap();
    /// assert_eq!(answer.value.code, 503);
    /// assert_eq!(answer.stopped.map(|stop| stop.reason), Some(StopReason::AttemptsExhausted));
    /// # Ok::<(), relent::PolicyError>(())
    /// ```
    pub fn map_outcome<J>(self, judge: J) -> OutcomeRetry<C, J, T> {
        let retry = Retry { classify: ByOutcome(self.classify), shared: self.shared };
        OutcomeRetry { retry, judge }
    }

    /// Retries values for which `test` is true. They are transient, and say nothing about the target's health; to say more,
    /// take [`map_outcome`](Retry::map_outcome).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), relent::PolicyError> {
    /// use relent::{Policy, Retry};
    ///
    /// let patient = Retry::new(Policy::constant(std::time::Duration::ZERO).attempts(9).no_budget().build()?);
    /// let ready = patient.retry_value_if(|found: &Option<u32>| found.is_none());
    /// let found = ready.run(|attempt| async move { std::io::Result::Ok((attempt.number() == 4).then_some(7)) }).await;
    /// assert_eq!(found.unwrap().value, Some(7));
    /// # Ok(()) }
    /// ```
    pub fn retry_value_if<V, F: Fn(&V) -> bool>(self, test: F) -> OutcomeRetry<C, ValueIf<F>, T> {
        self.map_outcome(ValueIf(test))
    }
}

/// Says which outcomes are failures. Closures do: `|outcome: &Result<V, E>| …`, with an `Option` of a [`Verdict`] or of a
/// [`Failure`].
pub trait JudgeOutcome<V, E> {
    /// What `outcome` means; `None`: a value is a success, an error goes to the handle's classifier.
    fn judge(&self, outcome: &Result<V, E>) -> Option<Failure>;
}

impl<V, E, F: Fn(&Result<V, E>) -> R, R: Judgement> JudgeOutcome<V, E> for F {
    fn judge(&self, outcome: &Result<V, E>) -> Option<Failure> {
        self(outcome).failure()
    }
}

/// Takes values for failures by a test: see [`Retry::retry_value_if`].
#[derive(Clone, Copy, Debug)]
pub struct ValueIf<F>(F);

impl<V, E, F: Fn(&V) -> bool> JudgeOutcome<V, E> for ValueIf<F> {
    fn judge(&self, outcome: &Result<V, E>) -> Option<Failure> {
        let unwanted = outcome.as_ref().is_ok_and(&self.0);
        unwanted.then(|| Failure::new(Verdict::Transient).health(Health::Unknown))
    }
}

/// A handle that also retries values: see [`Retry::map_outcome`]. It shares budget and breaker with the handle that it was
/// made from.
#[derive(Clone)]
pub struct OutcomeRetry<C, J, T> {
    retry: Retry<ByOutcome<C>, T>,
    judge: J,
}

/// A value, and whether it is one that the call was after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer<V> {
    /// The value of the last attempt that came to one.
    pub value: V,
    /// Why no further attempt was made, if it is a value that should have been retried; `None`: it is a success.
    pub stopped: Option<Stop>,
}

impl<V> Answer<V> {
    /// The value, however it came about.
    pub fn into_value(self) -> V {
        self.value
    }
}

impl<C, J, T: Clock> OutcomeRetry<C, J, T> {
    /// As [`Retry::run`], for values too.
    ///
    /// # Errors
    /// [`RetryError`] where the last real outcome was an error.
    #[expect(clippy::type_complexity, reason = "the call, its operation and its attempts, each judged")]
    pub fn run<'a, F, Fut, V, E>(
        &'a self,
        operation: F,
    ) -> OutcomeRun<Run<&'a Retry<ByOutcome<C>, T>, Judging<'a, F, J>, Judged<'a, Fut, J>, Unwanted<V, E>>>
    where
        T: Timer,
        C: Classify<E>,
        J: JudgeOutcome<V, E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        OutcomeRun { run: Run::new(&self.retry, Judging { operation, judge: &self.judge }) }
    }

    /// As [`Retry::run_blocking`], for values too.
    ///
    /// # Errors
    /// [`RetryError`] where the last real outcome was an error.
    pub fn run_blocking<V, E>(
        &self,
        mut operation: impl FnMut(Attempt) -> Result<V, E>,
    ) -> Result<Answer<V>, RetryError<E>>
    where
        T: BlockingTimer,
        C: Classify<E>,
        J: JudgeOutcome<V, E>,
    {
        settle(self.retry.run_blocking(|attempt| judged(&self.judge, operation(attempt))))
    }
}

impl<C, J, T> fmt::Debug for OutcomeRetry<C, J, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutcomeRetry").field("retry", &self.retry).finish_non_exhaustive()
    }
}

/// An outcome that was taken for a failure, on its way through the driver.
#[derive(Debug)]
pub enum Unwanted<V, E> {
    /// A value, and what it means.
    Value(V, Failure),
    /// An error, and what it means if the judge said so.
    Error(E, Option<Failure>),
}

/// The handle's classifier, for what the judge has not said.
#[derive(Clone, Copy, Debug)]
pub struct ByOutcome<C>(C);

impl<V, E, C: Classify<E>> Classify<Unwanted<V, E>> for ByOutcome<C> {
    fn classify(&self, outcome: &Unwanted<V, E>) -> Failure {
        match outcome {
            Unwanted::Value(_, failure) | Unwanted::Error(_, Some(failure)) => *failure,
            Unwanted::Error(error, None) => self.0.classify(error),
        }
    }
}

fn judged<V, E>(judge: &impl JudgeOutcome<V, E>, outcome: Result<V, E>) -> Result<V, Unwanted<V, E>> {
    match (judge.judge(&outcome), outcome) {
        (None, Ok(value)) => Ok(value),
        (Some(failure), Ok(value)) => Err(Unwanted::Value(value, failure)),
        (failure, Err(error)) => Err(Unwanted::Error(error, failure)),
    }
}

/// What the call came to: the last real outcome is the caller's, a value as a value.
fn settle<V, E>(outcome: Result<V, RetryError<Unwanted<V, E>>>) -> Result<Answer<V>, RetryError<E>> {
    let gave_up = match outcome {
        Ok(value) => return Ok(Answer { value, stopped: None }),
        Err(gave_up) => gave_up,
    };
    let stop = gave_up.stop();
    let mut value = None;
    let gave_up = gave_up.filter_map(|unwanted| match unwanted {
        Unwanted::Error(error, _) => Some(error),
        Unwanted::Value(last, _) => {
            value = Some(last);
            None
        }
    });
    match (gave_up.last().is_none(), value) {
        (true, Some(value)) => Ok(Answer { value, stopped: Some(stop) }),
        _ => Err(gave_up),
    }
}

/// An operation whose outcomes are judged.
#[derive(Debug)]
pub struct Judging<'a, F, J> {
    operation: F,
    judge: &'a J,
}

impl<'a, F: FnMut(Attempt) -> Fut, Fut, J, E> Operation<E> for Judging<'a, F, J> {
    type Future = Judged<'a, Fut, J>;

    fn start(&mut self, attempt: Attempt, _last: Option<&E>) -> Judged<'a, Fut, J> {
        Judged { attempt: (self.operation)(attempt), judge: self.judge }
    }
}

pin_project! {
    /// One attempt whose outcome is judged.
    #[derive(Debug)]
    pub struct Judged<'a, Fut, J> {
        #[pin]
        attempt: Fut,
        judge: &'a J,
    }
}

impl<V, E, Fut: Future<Output = Result<V, E>>, J: JudgeOutcome<V, E>> Future for Judged<'_, Fut, J> {
    type Output = Result<V, Unwanted<V, E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        this.attempt.poll(cx).map(|outcome| judged(*this.judge, outcome))
    }
}

pin_project! {
    /// A call whose values may be failures: the future of [`OutcomeRetry::run`].
    #[must_use = "futures do nothing unless polled"]
    #[derive(Debug)]
    pub struct OutcomeRun<R> {
        #[pin]
        run: R,
    }
}

impl<H, F, Fut, V, E> OutcomeRun<Run<H, F, Fut, Unwanted<V, E>>>
where
    H: Handle,
    H::Timer: Timer,
    F: Operation<Unwanted<V, E>, Future = Fut>,
    Fut: Future<Output = Result<V, Unwanted<V, E>>>,
{
    /// As [`Run::only_if_unprocessed`].
    pub fn only_if_unprocessed(self) -> Self {
        OutcomeRun { run: self.run.only_if_unprocessed() }
    }

    /// As [`Run::until`]. A value that the call has waited to improve upon comes back then, too.
    #[expect(clippy::type_complexity, reason = "the call, and what it is wrapped in")]
    pub fn until<S: Future>(self, signal: S) -> OutcomeRun<Until<Run<H, F, Fut, Unwanted<V, E>>, S>> {
        OutcomeRun { run: self.run.until(signal) }
    }
}

impl<V, E, R: Future<Output = Result<V, RetryError<Unwanted<V, E>>>>> Future for OutcomeRun<R> {
    type Output = Result<Answer<V>, RetryError<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(settle(ready!(self.project().run.poll(cx))))
    }
}
