//! What an attempt's surroundings grant to the calls made inside it: attempt credit and a deadline.
//!
//! A thread-local value that is set around each poll of an attempt and put back after it, on any runtime. Inner calls on
//! the same task find it there; over a `spawn` it is carried by a [`Scope`].

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use relent_core::{Credit, Instant};

use crate::timer::{Clock, SystemTimer};

thread_local! {
    static CURRENT: Cell<Surroundings> = const { Cell::new(Surroundings::NONE) };
}

/// What is granted to the code that runs now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    /// Further attempts; `UNSAID` where no layer above said anything.
    left: u32,
    bound: Bound,
}

const UNSAID: u32 = u32::MAX;

/// When the layer above wants its answer: a point in time; or, while that layer has not read its clock yet, a length from
/// now on. One word, told apart by the top bit: 292 years are left for either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound(u64);

impl Bound {
    const NONE: Bound = Bound::at(Instant::NEVER);
    const RELATIVE: u64 = 1 << 63;

    pub(crate) const fn at(deadline: Instant) -> Bound {
        let nanos = deadline.as_nanos();
        Bound(if nanos >= Bound::RELATIVE { u64::MAX } else { nanos })
    }

    pub(crate) fn within(length: Duration) -> Bound {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        Bound((Bound::RELATIVE | nanos).min(u64::MAX - 1))
    }

    pub(crate) fn is_none(self) -> bool {
        self == Bound::NONE
    }

    /// The point in time, for one who knows what time it is.
    pub(crate) fn deadline(self, now: Instant) -> Instant {
        match self {
            Bound::NONE => Instant::NEVER,
            Bound(nanos) if nanos >= Bound::RELATIVE => now + Duration::from_nanos(nanos & !Bound::RELATIVE),
            Bound(nanos) => Instant::from_nanos(nanos),
        }
    }
}

impl Surroundings {
    pub(crate) const NONE: Surroundings = Surroundings { left: UNSAID, bound: Bound::NONE };

    #[inline]
    pub(crate) fn new(left: Option<u32>, bound: Bound) -> Surroundings {
        Surroundings { left: left.unwrap_or(UNSAID), bound }
    }

    #[inline]
    pub(crate) fn current() -> Surroundings {
        CURRENT.get()
    }

    /// Whether no layer above said anything, and nothing bounds the time.
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        self.left == UNSAID && self.bound.is_none()
    }

    #[inline]
    pub(crate) fn bound(&self) -> Bound {
        self.bound
    }

    /// The same with another bound.
    #[inline]
    pub(crate) fn bounded(mut self, bound: Bound) -> Surroundings {
        self.bound = bound;
        self
    }

    #[inline]
    pub(crate) fn left(&self) -> Option<u32> {
        if self.left == UNSAID { None } else { Some(self.left) }
    }

    /// `n` of it were used by somebody who does not share this thread.
    #[cfg(feature = "http")]
    pub(crate) fn spend(&mut self, n: u32) {
        if self.left != UNSAID {
            self.left = self.left.saturating_sub(n);
        }
    }

    /// Runs `work` inside these surroundings, and keeps what it left of them.
    #[inline]
    pub(crate) fn enter<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.enter_from(Surroundings::current(), work)
    }

    /// The same where it is known what is outside.
    #[inline]
    pub(crate) fn enter_from<R>(&mut self, outer: Surroundings, work: impl FnOnce() -> R) -> R {
        CURRENT.set(*self);
        let _restore = Restore { inner: self, outer };
        work()
    }
}

/// Puts the outer surroundings back, also when the work panics.
struct Restore<'a> {
    inner: &'a mut Surroundings,
    outer: Surroundings,
}

impl Drop for Restore<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.inner = CURRENT.replace(self.outer);
    }
}

/// The credit of the code that runs now, wherever it is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AmbientCredit;

impl Credit for AmbientCredit {
    #[inline]
    fn left(&self) -> Option<u32> {
        CURRENT.get().left()
    }

    #[inline]
    fn take(&self, n: u32) -> u32 {
        let mut current = CURRENT.get();
        let taken = current.left().map_or(0, |left| n.min(left));
        if taken > 0 {
            current.left -= taken;
            CURRENT.set(current);
        }
        taken
    }

    #[inline]
    fn give(&self, n: u32) {
        let mut current = CURRENT.get();
        if n > 0 && current.left != UNSAID {
            current.left = current.left.saturating_add(n).min(UNSAID - 1);
            CURRENT.set(current);
        }
    }
}

/// The credit and the deadline of one call, to be carried over a `spawn`.
///
/// The credit goes along: what a scope took is withheld from the calls that stay, until [`Scope::rejoin`] brings the rest
/// back. Dropped elsewhere, it counts as used, so that attempts never multiply.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use relent::{Policy, Retry, Scope, Verdict};
///
/// let inner = Retry::new(Policy::default()).classify(|_: &&str| Verdict::Transient);
/// let scope = Scope::take();
/// let task = tokio::spawn(async move {
///     let mut scope = scope;
///     let answer = scope.run(inner.run(|_| async { Ok::<_, &str>(5) })).await;
///     (answer, scope)
/// });
/// let (answer, scope) = task.await.expect("the task does not panic");
/// scope.rejoin();
/// assert_eq!(answer.ok(), Some(5));
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a scope carries credit: run something in it, or let it rejoin"]
pub struct Scope(Surroundings);

impl Scope {
    /// Takes the credit of the code that runs now, and a copy of its deadline. Outside any call it carries nothing.
    pub fn take() -> Scope {
        let taken = Surroundings::current();
        AmbientCredit.take(UNSAID);
        // A bound counts from now, not from when the scope is entered.
        let deadline = taken.bound().deadline(SystemTimer.now());
        Scope(taken.bounded(Bound::at(deadline)))
    }

    /// Runs `future` with what this scope carries.
    pub fn run<F: Future>(&mut self, future: F) -> InScope<'_, F> {
        InScope { scope: self, future: Some(future) }
    }

    /// Runs `work` with what this scope carries.
    pub fn run_blocking<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.0.enter(work)
    }

    /// Gives what is left to the code that runs now.
    pub fn rejoin(self) {
        AmbientCredit.give(self.0.left().unwrap_or(0));
    }
}

pin_project! {
    /// A future that runs in a [`Scope`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct InScope<'a, F> {
        scope: &'a mut Scope,
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for InScope<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            // Where it ran: the calls inside it give back what they hold to the scope.
            let mut this = this.project();
            this.scope.0.enter(|| this.future.set(None));
        }
    }
}

impl<F: Future> Future for InScope<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        this.scope.0.enter(|| {
            let outcome = this.future.as_mut().as_pin_mut().expect("not polled after its end").poll(cx);
            if outcome.is_ready() {
                this.future.set(None);
            }
            outcome
        })
    }
}
