//! The async driver: `retry.run(operation).await`.

mod hedged;
mod hedges;
mod until;

pub use until::Until;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use relent_core::{Failure, Repeat, Step, Stop};

use crate::ambient::Surroundings;
use crate::attempt::Attempt;
use crate::call::{Call, Handle};
use crate::classify::Classify;
use crate::error::{Errors, Failures, RetryError};
use crate::retry::Retry;
use crate::timer::{Clock, Timer, poll_until};
#[cfg(feature = "http")]
pub(crate) use hedges::EndedHedge;
pub(crate) use hedges::Hedges;

impl<C, T: Clock> Retry<C, T> {
    /// Runs `operation` until it succeeds or the policy says stop. Handing it over is your word that it may be repeated;
    /// see [`Run::only_if_unprocessed`] for the narrower one.
    ///
    /// Each attempt is a fresh future from `operation`. The first allocates nothing and, without timeouts, reads no clock.
    /// An attempt whose time is up is dropped. Dropping the returned future cancels everything.
    ///
    /// # Errors
    /// [`RetryError`], with the last error and the reason for stopping.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use relent::{Retry, StopReason};
    /// use std::io::{Error, ErrorKind};
    ///
    /// let retry = Retry::default();
    /// let missing = retry.run(|_| async { Err::<(), _>(Error::from(ErrorKind::NotFound)) }).await.unwrap_err();
    /// assert_eq!((missing.reason(), missing.attempts()), (StopReason::NotRetryable, 1));
    /// # }
    /// ```
    #[inline]
    pub fn run<F, Fut, V, E>(&self, operation: F) -> Run<&Self, F, Fut, E>
    where
        T: Timer,
        C: Classify<E>,
        F: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        Run::new(self, operation)
    }

    /// The same for an operation that wants to see the error of the attempt before: to log in again after a 401, say. What
    /// an attempt needs of it is taken out before its future is made.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), relent::PolicyError> {
    /// use relent::{Policy, Retry, Verdict};
    ///
    /// let policy = Policy::constant(std::time::Duration::ZERO).build()?;
    /// let retry = Retry::new(policy).classify(|_: &&str| Verdict::Transient);
    /// let answer = retry.run_seeing(|_, last: Option<&&str>| {
    ///     let fresh = last == Some(&"token expired");
    ///     async move { if fresh { Ok("welcome") } else { Err("token expired") } }
    /// });
    /// assert_eq!(answer.await.unwrap(), "welcome");
    /// # Ok(()) }
    /// ```
    pub fn run_seeing<F, Fut, V, E>(&self, operation: F) -> Run<&Self, Seeing<F>, Fut, E>
    where
        T: Timer,
        C: Classify<E>,
        F: FnMut(Attempt, Option<&E>) -> Fut,
        Fut: Future<Output = Result<V, E>>,
    {
        Run::new(self, Seeing(operation))
    }
}

/// What is retried: a function from an [`Attempt`] to a future, or a layer's own kind.
pub trait Operation<E> {
    /// One attempt.
    type Future;

    /// Starts an attempt; `last` is the last error that an earlier one came to.
    fn start(&mut self, attempt: Attempt, last: Option<&E>) -> Self::Future;
}

impl<F: FnMut(Attempt) -> Fut, Fut, E> Operation<E> for F {
    type Future = Fut;

    #[inline]
    fn start(&mut self, attempt: Attempt, _last: Option<&E>) -> Fut {
        self(attempt)
    }
}

/// An operation that is shown the last error: see [`Retry::run_seeing`].
#[derive(Clone, Copy, Debug)]
pub struct Seeing<F>(F);

impl<F: FnMut(Attempt, Option<&E>) -> Fut, Fut, E> Operation<E> for Seeing<F> {
    type Future = Fut;

    fn start(&mut self, attempt: Attempt, last: Option<&E>) -> Fut {
        (self.0)(attempt, last)
    }
}

pin_project! {
    /// A call that is retried: the future that [`Retry::run`] returns.
    #[must_use = "futures do nothing unless polled"]
    pub struct Run<H: Handle, F, Fut, E>
    where
        H::Timer: Timer,
    {
        call: Call<H, Kept<E, Fut>>,
        operation: F,
        phase: Phase,
        // The attempt that ended last was ended by its time.
        timed_out: bool,
        #[pin]
        attempt: Option<Fut>,
        #[pin]
        sleep: Option<<H::Timer as Timer>::Sleep>,
    }

    impl<H: Handle, F, Fut, E> PinnedDrop for Run<H, F, Fut, E>
    where
        H::Timer: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            // Before that nothing is granted to an attempt: it can be dropped anywhere.
            if this.call.is_under_way() {
                end_all(this.call, this.attempt);
            }
        }
    }
}

/// What a call keeps that takes its time.
struct Kept<E, Fut> {
    errors: Option<Errors<E>>,
    /// Attempts beside the first; a box, since most calls have none.
    hedges: Option<Box<Hedges<Fut>>>,
}

impl<E, Fut> Default for Kept<E, Fut> {
    fn default() -> Kept<E, Fut> {
        Kept { errors: None, hedges: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not polled yet, and perhaps a plain call.
    Plain,
    /// Not polled yet, and less may be repeated.
    Narrow,
    Attempt,
    Wait,
    Done,
}

impl<H, F, Fut, V, E> Run<H, F, Fut, E>
where
    H: Handle,
    H::Timer: Timer,
    F: Operation<E, Future = Fut>,
    Fut: Future<Output = Result<V, E>>,
{
    #[inline]
    pub(crate) fn new(handle: H, operation: F) -> Self {
        let call = Call::new(handle, Repeat::Yes);
        Run { call, operation, phase: Phase::Plain, timed_out: false, attempt: None, sleep: None }
    }

    /// Repeats only what was provably not executed (a refused connection, [`Verdict::Unprocessed`]): for operations that
    /// must not take effect twice.
    ///
    /// [`Verdict::Unprocessed`]: relent_core::Verdict::Unprocessed
    pub fn only_if_unprocessed(mut self) -> Self {
        self.call.narrow(Repeat::UnprocessedOnly);
        self.phase = Phase::Narrow;
        self
    }

    /// Ends the call with [`StopReason::Cancelled`] when `signal` completes, during an attempt or a wait, and keeps the
    /// last real error.
    ///
    /// [`StopReason::Cancelled`]: relent_core::StopReason::Cancelled
    pub fn until<S: Future>(self, signal: S) -> Until<Self, S> {
        Until::new(self, signal)
    }
}

impl<H, F, Fut, V, E> Future for Run<H, F, Fut, E>
where
    H: Handle,
    H::Timer: Timer,
    H::Classifier: Classify<E>,
    F: Operation<E, Future = Fut>,
    Fut: Future<Output = Result<V, E>>,
{
    type Output = Result<V, RetryError<E>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.phase {
            Phase::Plain => match self.call.opens_plain().map(|plain| (plain.inside, plain.attempt)) {
                Some((inside, attempt)) => self.poll_plain(inside, attempt, cx),
                None => self.poll_guarded(cx),
            },
            Phase::Narrow => self.poll_first(cx),
            Phase::Attempt | Phase::Wait | Phase::Done => self.poll_on(cx),
        }
    }
}

impl<H, F, Fut, V, E> Run<H, F, Fut, E>
where
    H: Handle,
    H::Timer: Timer,
    H::Classifier: Classify<E>,
    F: Operation<E, Future = Fut>,
    Fut: Future<Output = Result<V, E>>,
{
    /// The light path: a plain call whose first attempt succeeds at once leaves no trace, and reads no clock.
    #[inline]
    fn poll_plain(
        mut self: Pin<&mut Self>,
        mut inside: Surroundings,
        attempt: Attempt,
        cx: &mut Context<'_>,
    ) -> Poll<Result<V, RetryError<E>>> {
        match self.as_mut().start(&mut inside, Surroundings::NONE, attempt, cx) {
            Poll::Ready(Ok(value)) => {
                self.call.plain_success();
                self.succeed();
                Poll::Ready(Ok(value))
            }
            other => {
                self.as_mut().project().call.plain_goes_on(inside, None);
                self.after_first(other, cx)
            }
        }
    }

    /// The same where a breaker stands before the call.
    #[inline(never)]
    fn poll_guarded(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<V, RetryError<E>>> {
        let Some((mut inside, attempt)) =
            self.call.opens_guarded().map(|plain| (plain.inside, plain.attempt))
        else {
            return self.poll_first(cx);
        };
        let leave = match self.as_mut().project().call.plain_leave() {
            Ok(leave) => leave,
            Err(stop) => return Poll::Ready(Err(self.give_up(stop))),
        };
        match self.as_mut().start(&mut inside, Surroundings::NONE, attempt, cx) {
            Poll::Ready(Ok(value)) => {
                self.as_mut().project().call.admitted_success(leave);
                self.succeed();
                Poll::Ready(Ok(value))
            }
            other => {
                self.as_mut().project().call.plain_goes_on(inside, leave);
                self.after_first(other, cx)
            }
        }
    }

    /// The same for calls with a layer above, or with something that wants to hear times.
    #[inline(never)]
    fn poll_first(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<V, RetryError<E>>> {
        let mut first = match self.as_mut().project().call.open() {
            Ok(first) => first,
            Err(stop) => return Poll::Ready(Err(self.give_up(stop))),
        };
        let attempt = Attempt::new(&first.launch());
        let outside = first.outside;
        match self.as_mut().start(&mut first.inside, outside, attempt, cx) {
            Poll::Ready(Ok(value)) => {
                self.as_mut().project().call.succeeded_at_once(&first);
                self.succeed();
                Poll::Ready(Ok(value))
            }
            other => {
                self.as_mut().project().call.goes_on(first);
                self.after_first(other, cx)
            }
        }
    }

    /// The first poll did not end the call.
    #[inline(never)]
    fn after_first(
        mut self: Pin<&mut Self>,
        outcome: Poll<Result<V, E>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<V, RetryError<E>>> {
        *self.as_mut().project().phase = Phase::Attempt;
        match self.as_mut().ended(outcome, cx) {
            Poll::Ready(Ok(value)) => Poll::Ready(Ok(value)),
            Poll::Ready(Err(step)) => self.drive(step, cx),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Starts the first attempt and polls it once.
    #[inline]
    fn start(
        self: Pin<&mut Self>,
        inside: &mut Surroundings,
        outside: Surroundings,
        attempt: Attempt,
        cx: &mut Context<'_>,
    ) -> Poll<Result<V, E>> {
        let mut this = self.project();
        let operation = this.operation;
        inside.enter_from(outside, || {
            this.attempt.set(Some(operation.start(attempt, None)));
            poll_to_its_end(this.attempt, cx)
        })
    }

    #[inline]
    fn succeed(self: Pin<&mut Self>) {
        *self.project().phase = Phase::Done;
    }

    /// Everything after the first poll.
    #[inline(never)]
    fn poll_on(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<V, RetryError<E>>> {
        let polled = match self.phase {
            Phase::Attempt => self.as_mut().poll_attempt(cx),
            Phase::Wait => self.as_mut().poll_wait(cx).map(Err),
            Phase::Plain | Phase::Narrow | Phase::Done => panic!("a call was polled after its end"),
        };
        match polled {
            Poll::Ready(Ok(value)) => Poll::Ready(Ok(value)),
            Poll::Ready(Err(step)) => self.drive(step, cx),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Follows the session's answers until the call ends or has to wait.
    #[cold]
    fn drive(
        mut self: Pin<&mut Self>,
        mut step: Step,
        cx: &mut Context<'_>,
    ) -> Poll<Result<V, RetryError<E>>> {
        loop {
            if let Some(stop) = self.as_mut().follow(step) {
                return Poll::Ready(Err(self.give_up(stop)));
            }
            let polled = match self.phase {
                Phase::Wait => self.as_mut().poll_wait(cx).map(Err),
                _ => self.as_mut().poll_attempt(cx),
            };
            step = match polled {
                Poll::Ready(Ok(value)) => return Poll::Ready(Ok(value)),
                Poll::Ready(Err(step)) => step,
                Poll::Pending => return Poll::Pending,
            };
        }
    }

    fn poll_attempt(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<V, Step>> {
        let this = self.as_mut().project();
        let attempt = this.attempt;
        if attempt.is_none() {
            return self.poll_hedged(cx);
        }
        let outcome = this.call.inside().enter(|| poll_to_its_end(attempt, cx));
        self.ended(outcome, cx)
    }

    /// What an attempt's poll came to. Only if it is not ready its time is asked: at equal times an answer beats the clock.
    fn ended(
        mut self: Pin<&mut Self>,
        outcome: Poll<Result<V, E>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<V, Step>> {
        let this = self.as_mut().project();
        match outcome {
            Poll::Ready(Ok(value)) => {
                drop_hedges(this.call);
                this.call.succeeded();
                self.succeed();
                Poll::Ready(Ok(value))
            }
            Poll::Ready(Err(error)) => {
                let failure = this.call.handle().retry().classify.classify(&error);
                *this.timed_out = false;
                errors(this.call).add(error);
                Poll::Ready(Err(this.call.failed(failure)))
            }
            Poll::Pending if this.call.may_be_hedged() => self.poll_hedged(cx),
            Poll::Pending => self.poll_time(cx).map(Err),
        }
    }

    /// The attempt is pending: asks whether its time is up.
    fn poll_time(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let this = self.project();
        let Some(ends) = this.call.ends() else { return Poll::Pending };
        ready!(poll_until(&this.call.shared().timer, ends, this.sleep, cx));
        end_attempt(this.call, this.attempt);
        *this.timed_out = true;
        Poll::Ready(this.call.expired(Failure::timed_out()))
    }
}

impl<H, F, Fut, V, E> Run<H, F, Fut, E>
where
    H: Handle,
    H::Timer: Timer,
    F: Operation<E, Future = Fut>,
    Fut: Future<Output = Result<V, E>>,
{
    #[cold]
    fn poll_wait(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Step> {
        let mut this = self.project();
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut()
            && sleep.poll(cx).is_pending()
        {
            return Poll::Pending;
        }
        this.sleep.set(None);
        Poll::Ready(this.call.due())
    }

    /// Does what the session answered; the end of the call is the caller's to tell.
    #[inline]
    fn follow(self: Pin<&mut Self>, step: Step) -> Option<Stop> {
        let mut this = self.project();
        match step {
            Step::Launch(launch) => {
                this.sleep.set(None);
                let operation = this.operation;
                let (inside, kept) = this.call.inside_and_kept();
                let last = kept.errors.as_ref().and_then(Errors::last);
                let attempt = inside.enter(|| operation.start(Attempt::new(&launch), last));
                this.attempt.set(Some(attempt));
                *this.phase = Phase::Attempt;
                None
            }
            Step::Wait { until } => {
                let hedges = this.call.kept().and_then(|kept| kept.hedges.as_ref());
                let hedged = hedges.is_some_and(|hedges| !hedges.is_empty());
                if hedged || this.attempt.is_some() {
                    *this.phase = Phase::Attempt;
                    this.sleep.set(None);
                } else {
                    *this.phase = Phase::Wait;
                    let sleep = this.call.shared().timer.sleep_until(until);
                    this.sleep.set(Some(sleep));
                }
                None
            }
            Step::Stop(stop) => Some(stop),
        }
    }

    #[cold]
    fn cancel(mut self: Pin<&mut Self>) -> RetryError<E> {
        let this = self.as_mut().project();
        end_all(this.call, this.attempt);
        let stop = this.call.cancel();
        self.give_up(stop)
    }

    /// Whether an attempt is in flight.
    fn is_attempting(&self) -> bool {
        self.phase == Phase::Attempt
    }

    #[cold]
    fn give_up(self: Pin<&mut Self>, stop: Stop) -> RetryError<E> {
        let mut this = self.project();
        *this.phase = Phase::Done;
        end_all(this.call, this.attempt.as_mut());
        this.sleep.set(None);
        let errors =
            this.call.kept().and_then(|kept| kept.errors.take()).unwrap_or_else(|| Errors::new(false));
        RetryError::new(stop, this.call.elapsed(), Failures::of(errors, *this.timed_out))
    }
}

/// Polls the attempt; one that has ended is dropped where it ran.
#[inline]
pub(crate) fn poll_to_its_end<Fut: Future>(
    mut attempt: Pin<&mut Option<Fut>>,
    cx: &mut Context<'_>,
) -> Poll<Fut::Output> {
    let outcome = attempt.as_mut().as_pin_mut().expect("not polled after its end").poll(cx);
    if outcome.is_ready() {
        attempt.set(None);
    }
    outcome
}

/// Drops an attempt before its end, where it ran: the calls inside it give back what they hold to it, not to the layers
/// above, which have lent it.
#[inline]
fn end_attempt<H: Handle, K, Fut>(call: &mut Call<H, K>, attempt: Pin<&mut Option<Fut>>) {
    if attempt.is_some() {
        end_running_attempt(call, attempt);
    }
}

/// Drops every attempt that is in flight.
#[cold]
#[inline(never)]
fn end_all<H: Handle, E, Fut>(call: &mut Call<H, Kept<E, Fut>>, attempt: Pin<&mut Option<Fut>>) {
    drop_hedges(call);
    end_attempt(call, attempt);
}

#[cold]
#[inline(never)]
fn drop_hedges<H: Handle, E, Fut>(call: &mut Call<H, Kept<E, Fut>>) {
    if let Some(kept) = call.kept() {
        kept.hedges = None;
    }
}

/// Apart, so that the end of a call that succeeded at once stays small enough to be inlined.
#[cold]
#[inline(never)]
fn end_running_attempt<H: Handle, K, Fut>(call: &mut Call<H, K>, mut attempt: Pin<&mut Option<Fut>>) {
    call.inside_it(|| attempt.set(None));
}

/// The errors of a call that is under way.
fn errors<H: Handle, E, Fut>(call: &mut Call<H, Kept<E, Fut>>) -> &mut Errors<E> {
    let keep_all = call.shared().keep_errors;
    let kept = call.kept().expect("an attempt of a call under way has failed");
    kept.errors.get_or_insert_with(|| Errors::new(keep_all))
}

impl<H: Handle, F, Fut, E> fmt::Debug for Run<H, F, Fut, E>
where
    H::Timer: Timer,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("phase", &self.phase).finish_non_exhaustive()
    }
}
