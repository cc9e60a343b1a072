//! The deadline of the code that runs now: told once where work comes in, and known to every call made inside it.
//!
//! It is ambient, as attempt credit is: set around each poll, on any runtime. An attempt of a relent call sets it for what
//! runs inside it; a [`Deadline`] does so without a retry.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use relent_core::{Cause, Failure, Health, Instant, Verdict};

use crate::ambient::Surroundings;
use crate::run::poll_to_its_end;
use crate::timer::{Clock, SystemTimer, Timer, poll_until};

/// By when work has to be done: a point in time that goes along with the code that runs, and is only ever lowered.
///
/// Whoever takes work in says it once: [`enforce`](Deadline::enforce) or [`run`](Deadline::run). Every relent call inside
/// then fits its attempts and waits into it, whatever its policy says; [`Deadline::current`] tells it to everybody else. A
/// longer one inside has no effect. Inside an attempt of a relent call it is that attempt's end, less a margin of 5 ms or
/// 5 % in which the call outside can still answer.
///
/// It is lost over a `spawn`, unless a [`Scope`](crate::Scope) carries it.
///
/// Time is the system's, or that of tests: [`within_on`](Deadline::within_on). Deadlines of different clocks can't be
/// compared, so each clock sees its own only.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use std::future::pending;
/// use std::time::Duration;
/// use relent::{Deadline, Retry, StopReason};
///
/// let retry = Retry::default(); // by its policy a call may take 15 s
/// let deadline = Deadline::within(Duration::from_millis(200));
/// let gave_up = deadline.run(retry.run(|_| pending::<std::io::Result<()>>())).await.unwrap_err();
///
/// assert_eq!(gave_up.reason(), StopReason::DeadlineExceeded);
/// assert!(deadline.is_past());
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline<T = SystemTimer> {
    at: Instant,
    timer: T,
}

impl Deadline {
    /// `length` from now on, by the system's clock. A length of over 292 years is none.
    #[must_use]
    pub fn within(length: Duration) -> Deadline {
        Deadline::within_on(SystemTimer, length)
    }

    /// The deadline of the code that runs now, by the system's clock; `None` outside of all of them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relent::Deadline;
    ///
    /// assert_eq!(Deadline::current(), None);
    /// let deadline = Deadline::within(Duration::from_secs(2));
    /// let (same, never_later) = deadline.run_blocking(|| {
    ///     let longer = Deadline::within(Duration::from_secs(60));
    ///     (Deadline::current(), longer.run_blocking(Deadline::current))
    /// });
    /// assert_eq!((same, never_later), (Some(deadline), Some(deadline)));
    /// ```
    #[must_use]
    pub fn current() -> Option<Deadline> {
        Deadline::current_on(SystemTimer)
    }
}

impl<T: Clock> Deadline<T> {
    /// `length` from now on, by `timer`'s clock: for virtual time, and runtimes of your own.
    #[must_use]
    pub fn within_on(timer: T, length: Duration) -> Deadline<T> {
        Deadline { at: timer.now() + length, timer }
    }

    /// The deadline of the code that runs now, by `timer`'s clock.
    #[must_use]
    pub fn current_on(timer: T) -> Option<Deadline<T>> {
        let at = Surroundings::current().nearer(&timer, Instant::NEVER);
        (!at.is_never()).then_some(Deadline { at, timer })
    }

    #[cfg(feature = "http")]
    pub(crate) fn new(timer: T, at: Instant) -> Deadline<T> {
        Deadline { at, timer }
    }

    #[cfg(feature = "http")]
    pub(crate) fn timer(&self) -> &T {
        &self.timer
    }

    /// The point in time, by the clock that it was made with.
    #[must_use]
    pub fn at(&self) -> Instant {
        self.at
    }

    /// What is left of it; zero once it has passed.
    #[must_use]
    pub fn time_left(&self) -> Duration {
        self.at.since(self.timer.now())
    }

    /// Whether it has passed. At the very point it has.
    #[must_use]
    pub fn is_past(&self) -> bool {
        self.timer.now() >= self.at
    }

    /// The sooner of the two.
    #[must_use]
    pub fn sooner(self, other: Deadline<T>) -> Deadline<T> {
        if other.at < self.at { other } else { self }
    }

    /// For work that never awaits, between two of its steps.
    ///
    /// # Errors
    /// [`DeadlineExceeded`] once it has passed.
    ///
    /// ```
    /// use relent::{Deadline, DeadlineExceeded};
    ///
    /// fn sum(pages: &[u64]) -> Result<u64, DeadlineExceeded> {
    ///     let mut sum = 0;
    ///     for page in pages {
    ///         if let Some(deadline) = Deadline::current() {
    ///             deadline.check()?;
    ///         }
    ///         sum += page;
    ///     }
    ///     Ok(sum)
    /// }
    /// assert_eq!(sum(&[1, 2]), Ok(3));
    /// let passed = Deadline::within(std::time::Duration::ZERO);
    /// assert!(passed.run_blocking(|| sum(&[1, 2])).is_err());
    /// ```
    pub fn check(&self) -> Result<(), DeadlineExceeded> {
        if self.is_past() { Err(DeadlineExceeded::AMID) } else { Ok(()) }
    }

    /// Runs `future` with this deadline around it: the calls inside keep to it. The future itself is not ended when the
    /// time is up; [`enforce`](Deadline::enforce) does that.
    pub fn run<F: Future>(&self, future: F) -> InDeadline<F, T> {
        InDeadline { deadline: self.clone(), future: Some(future) }
    }

    /// Runs `work` with this deadline around it. Work that blocks can't be interrupted: the calls inside keep to it.
    pub fn run_blocking<R>(&self, work: impl FnOnce() -> R) -> R {
        Surroundings::enter_until(&self.timer, self.at, work)
    }

    /// The same, and `future` is dropped when the time is up, with all that runs inside it. An answer that is there at that
    /// very moment counts.
    ///
    /// A nearer deadline around it ends it as well. Where the time has passed before, the future is not run at all.
    ///
    /// # Errors
    /// [`DeadlineExceeded`]. To relent's retries it is a timeout that blames nobody.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
    /// use std::future::pending;
    /// use std::time::Duration;
    /// use relent::Deadline;
    ///
    /// let soon = Deadline::within(Duration::from_millis(50));
    /// assert_eq!(soon.enforce(async { 7 }).await, Ok(7));
    /// let exceeded = soon.enforce(pending::<()>()).await.unwrap_err();
    /// assert!(exceeded.may_have_run());
    /// let too_late = soon.enforce(async { unreachable!("it is not run") }).await;
    /// assert!(!too_late.map_err(|exceeded| exceeded.may_have_run()).unwrap_err());
    /// # }
    /// ```
    pub fn enforce<F: Future>(&self, future: F) -> Enforced<F, T>
    where
        T: Timer,
    {
        Enforced { deadline: self.clone(), ends: None, future: Some(future), sleep: None }
    }
}

/// The time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the deadline has passed")]
pub struct DeadlineExceeded {
    ran: bool,
}

impl DeadlineExceeded {
    /// Nothing was run.
    pub(crate) const BEFORE: DeadlineExceeded = DeadlineExceeded { ran: false };
    /// Work was cut off.
    pub(crate) const AMID: DeadlineExceeded = DeadlineExceeded { ran: true };

    /// Whether the work had begun: then it may have taken effect. Otherwise it provably has not.
    #[must_use]
    pub fn may_have_run(&self) -> bool {
        self.ran
    }

    pub(crate) fn failure(self) -> Failure {
        let failure = if self.ran {
            Failure::new(Verdict::Transient).ambiguous()
        } else {
            Failure::new(Verdict::Unprocessed)
        };
        failure.cause(Cause::Timeout).health(Health::Unknown)
    }
}

pin_project! {
    /// A future with a [`Deadline`] around it.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct InDeadline<F, T = SystemTimer>
    where
        T: Clock,
    {
        deadline: Deadline<T>,
        #[pin]
        future: Option<F>,
    }

    impl<F, T> PinnedDrop for InDeadline<F, T>
    where
        T: Clock,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            this.deadline.run_blocking(|| this.future.set(None));
        }
    }
}

impl<F: Future, T: Clock> Future for InDeadline<F, T> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.deadline.run_blocking(|| poll_to_its_end(this.future, cx))
    }
}

pin_project! {
    /// A future that ends by a [`Deadline`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Enforced<F, T>
    where
        T: Timer,
    {
        deadline: Deadline<T>,
        // The nearer of this deadline and the one around it; known from the first poll on.
        ends: Option<Instant>,
        #[pin]
        future: Option<F>,
        #[pin]
        sleep: Option<T::Sleep>,
    }

    impl<F, T> PinnedDrop for Enforced<F, T>
    where
        T: Timer,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            this.deadline.run_blocking(|| this.future.set(None));
        }
    }
}

impl<F: Future, T: Timer> Future for Enforced<F, T> {
    type Output = Result<F::Output, DeadlineExceeded>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let timer = &this.deadline.timer;
        let ends = match *this.ends {
            Some(ends) => ends,
            None => {
                let ends = Surroundings::current().nearer(timer, this.deadline.at);
                if timer.now() >= ends {
                    this.deadline.run_blocking(|| this.future.set(None));
                    return Poll::Ready(Err(DeadlineExceeded::BEFORE));
                }
                *this.ends.insert(ends)
            }
        };
        let polled = this.deadline.run_blocking(|| poll_to_its_end(this.future.as_mut(), cx));
        if let Poll::Ready(output) = polled {
            this.sleep.set(None);
            return Poll::Ready(Ok(output));
        }
        ready!(poll_until(timer, ends, this.sleep, cx));
        this.deadline.run_blocking(|| this.future.set(None));
        // Whatever ran there: an attempt around it can't say that nothing was done.
        Surroundings::mark_ambiguous();
        Poll::Ready(Err(DeadlineExceeded::AMID))
    }
}

impl<F, T: Timer> std::fmt::Debug for Enforced<F, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Enforced").field("ends", &self.ends).finish_non_exhaustive()
    }
}
