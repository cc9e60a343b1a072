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
    /// In the low bits, further attempts; `UNSAID` where no layer above said anything. In the high bits, marks.
    word: u32,
    bound: Bound,
}

const UNSAID: u32 = (1 << 29) - 1;
/// The code that runs now is inside an attempt.
const INSIDE: u32 = 1 << 31;
/// A call inside that attempt may have been executed without an answer.
const AMBIGUOUS: u32 = 1 << 30;
/// The bound is by the system's clock.
const SYSTEM: u32 = 1 << 29;

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

    fn is_relative(self) -> bool {
        self.0 >= Bound::RELATIVE && !self.is_none()
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
    pub(crate) const NONE: Surroundings = Surroundings { word: UNSAID, bound: Bound::NONE };

    #[inline]
    pub(crate) fn new(left: Option<u32>, bound: Bound) -> Surroundings {
        let left = left.map_or(UNSAID, |left| left.min(UNSAID - 1));
        Surroundings { word: left | INSIDE, bound }
    }

    #[inline]
    pub(crate) fn current() -> Surroundings {
        CURRENT.get()
    }

    /// Whether no layer above said anything, and nothing bounds the time.
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        self.word == UNSAID && self.bound.is_none()
    }

    /// The bound, for one whose clock is the system's or another: clocks can't be compared, so a bound by the other kind
    /// says nothing.
    #[inline]
    pub(crate) fn bound(&self, system: bool) -> Bound {
        if system == (self.word & SYSTEM != 0) { self.bound } else { Bound::NONE }
    }

    /// The same by the system's clock, or by another.
    pub(crate) fn on(mut self, system: bool) -> Surroundings {
        self.word |= if system { SYSTEM } else { 0 };
        self
    }

    /// Whether a call inside may have been executed without an answer: then nobody outside can say that nothing was.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.word & AMBIGUOUS != 0
    }

    /// A call has ended that may have been executed without an answer: the attempt around it, if any, hears of it, whatever
    /// error comes out of it.
    pub(crate) fn mark_ambiguous() {
        let mut current = CURRENT.get();
        if current.word & INSIDE != 0 {
            current.word |= AMBIGUOUS;
            CURRENT.set(current);
        }
    }

    /// The same with another bound.
    #[inline]
    pub(crate) fn bounded(mut self, bound: Bound) -> Surroundings {
        self.bound = bound;
        self
    }

    #[inline]
    pub(crate) fn left(&self) -> Option<u32> {
        let left = self.word & UNSAID;
        if left == UNSAID { None } else { Some(left) }
    }

    /// `n` of it were used by somebody who does not share this thread.
    #[cfg(feature = "http")]
    pub(crate) fn spend(&mut self, n: u32) {
        if let Some(left) = self.left() {
            self.word -= n.min(left);
        }
    }

    /// Runs `work` until `deadline`, or until the bound around it where that is nearer. Credit and marks stay those of the
    /// code outside.
    pub(crate) fn enter_until<T: Clock, R>(timer: &T, deadline: Instant, work: impl FnOnce() -> R) -> R {
        let (outer, system) = (Surroundings::current(), timer.is_system());
        let mut inner = outer.bounded(Bound::at(outer.nearer(timer, deadline)));
        inner.word = inner.word & !SYSTEM | if system { SYSTEM } else { 0 };
        CURRENT.set(inner);
        let _restore = RestoreBound { outer };
        work()
    }

    /// `deadline`, or the bound where that is nearer. The clock is read only where the bound is a length.
    pub(crate) fn nearer<T: Clock>(&self, timer: &T, deadline: Instant) -> Instant {
        match self.bound(timer.is_system()) {
            bound if bound.is_relative() => bound.deadline(timer.now()).min(deadline),
            bound => bound.deadline(Instant::ZERO).min(deadline),
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

/// Puts the outer bound back, and nothing else of what the work left.
struct RestoreBound {
    outer: Surroundings,
}

impl Drop for RestoreBound {
    fn drop(&mut self) {
        let mut left = CURRENT.get();
        left.word = left.word & !SYSTEM | self.outer.word & SYSTEM;
        CURRENT.set(left.bounded(self.outer.bound));
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
            current.word -= taken;
            CURRENT.set(current);
        }
        taken
    }

    #[inline]
    fn give(&self, n: u32) {
        let mut current = CURRENT.get();
        if let Some(left) = current.left()
            && n > 0
        {
            current.word += n.min(UNSAID - 1 - left);
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
        if taken.bound(true).is_none() {
            return Scope(taken);
        }
        let deadline = taken.bound(true).deadline(SystemTimer.now());
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
        if self.0.is_ambiguous() {
            Surroundings::mark_ambiguous();
        }
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
