//! The handle: a policy, and what its calls share.

use std::fmt;
use std::sync::Arc;

use relent_core::{Breaker, Budget, BudgetCounts, Context, Instant, NoCredit, Opening, Policy, Repeat};

use crate::ambient::{AmbientCredit, Bound, Surroundings};
use crate::attempt::Attempt;
use crate::classify::Standard;
use crate::event::{Event, Listener};
use crate::handles::Handles;
use crate::observe::{Counts, Snapshot};
use crate::timer::{Clock, SystemTimer};

/// Retries calls by one [`Policy`]: the handle that you keep and clone.
///
/// Clones share one budget, one breaker and one bound on waiting calls: make one handle per target, not per call. `C` says
/// what an error means ([`Standard`] unless [`classify`](Retry::classify) is told otherwise), `T` where time comes from.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), relent::PolicyError> {
/// use std::time::Duration;
/// use relent::{Policy, Retry};
///
/// let policy = Policy::exponential(Duration::from_millis(50), Duration::from_secs(1)).attempts(4).build()?;
/// let retry = Retry::new(policy);
///
/// let answer = retry.run(|attempt| async move { Ok::<_, std::io::Error>(attempt.number()) }).await;
/// assert_eq!(answer.ok(), Some(1));
/// # Ok(()) }
/// ```
pub struct Retry<C = Standard, T = SystemTimer> {
    pub(crate) classify: C,
    pub(crate) shared: Arc<Shared<T>>,
}

/// How a handle's plain calls open, and what their first attempts grant to the calls inside them.
pub(crate) struct Plain {
    pub(crate) opening: Opening,
    pub(crate) inside: Surroundings,
    pub(crate) attempt: Attempt,
}

/// What all clones of a handle share.
pub(crate) struct Shared<T> {
    pub(crate) policy: Policy,
    pub(crate) timer: T,
    /// How every call opens that has no breaker, no layer above, and no budget that counts starts: always the same, so
    /// computed once, as if at the epoch.
    pub(crate) plain: Option<Plain>,
    /// The same where a breaker has to be asked first.
    pub(crate) guarded: Option<Plain>,
    pub(crate) handles: Handles,
    pub(crate) keep_errors: bool,
    pub(crate) listener: Option<Listener>,
    pub(crate) counts: Counts,
    pub(crate) name: Option<Arc<str>>,
    #[cfg(feature = "http")]
    pub(crate) memory: Arc<crate::http::ReplayMemory>,
}

impl<T> Retry<Standard, T>
where
    T: Clock,
{
    /// A handle on another timer: your runtime's, or virtual time for tests.
    pub fn with_timer(policy: Policy, timer: T) -> Retry<Standard, T> {
        Retry { classify: Standard, shared: Arc::new(Shared::new(policy, timer)) }
    }
}

impl Retry {
    /// A handle with a full budget, a closed breaker and no call waiting.
    pub fn new(policy: Policy) -> Retry {
        Retry::with_timer(policy, SystemTimer)
    }
}

impl Default for Retry {
    /// All defaults: see [`Policy`].
    fn default() -> Retry {
        Retry::new(Policy::default())
    }
}

impl<C, T: Clock> Retry<C, T> {
    /// Says what an error means: a closure, or your own [`Classify`](crate::Classify). Budget and breaker stay shared
    /// with the handle that this one was made from.
    pub fn classify<D>(self, classify: D) -> Retry<D, T> {
        Retry { classify, shared: self.shared }
    }

    /// Keeps every attempt's error (up to a hundred), not only the last, for [`RetryError::errors`](crate::RetryError::errors).
    ///
    /// # Panics
    /// If the handle has been cloned: tell it before.
    #[must_use]
    pub fn keep_errors(self) -> Self {
        self.configure(|shared| shared.keep_errors = true)
    }

    /// Draws the jitter from a seeded sequence, one for all clones, so that a test sees the same waits every time.
    ///
    /// # Panics
    /// If the handle has been cloned: tell it before.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.configure(|shared| shared.handles.seed(seed))
    }

    /// Tells `listener` of everything that happens to the handle's calls and to its own breaker. It runs on the calling task:
    /// it must be quick. Several listeners are told one after another.
    ///
    /// # Panics
    /// If the handle has been cloned: tell it before.
    #[must_use]
    pub fn on_event(self, listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.configure(|shared| {
            let listener = Listener::after(shared.listener.take(), listener);
            shared.handles.tell_changes_to(listener.clone());
            shared.listener = Some(listener);
        })
    }

    /// Names the handle, for what is told of it.
    ///
    /// # Panics
    /// If the handle has been cloned: tell it before.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        self.configure(|shared| shared.name = Some(name.into()))
    }

    /// Writes what happens as events of `tracing`, target `relent`, with the handle's name as `handle`: give that before.
    ///
    /// # Panics
    /// If the handle has been cloned: tell it before.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn traced(self) -> Self {
        let name = self.shared.name.clone().unwrap_or_else(|| "-".into());
        self.on_event(move |event| crate::observe::trace(&name, event))
    }

    /// Counts what happens with `metrics`, under the label `handle` and this name.
    ///
    /// # Panics
    /// If the handle has been cloned: tell it before.
    #[cfg(feature = "metrics")]
    #[must_use]
    pub fn metered(self, name: &'static str) -> Self {
        self.named(name).on_event(move |event| crate::observe::meter(name, event))
    }

    /// What its calls came to since it was made.
    ///
    /// ```
    /// use relent::{Policy, Retry, Verdict};
    ///
    /// let policy = Policy::constant(std::time::Duration::ZERO).build()?;
    /// let retry = Retry::new(policy).named("shop").classify(|_: &&str| Verdict::Transient);
    /// let _ = retry.run_blocking(|_| Err::<(), _>("down"));
    /// let seen = retry.snapshot();
    /// assert_eq!((seen.failed_attempts, seen.retries, seen.stops.len()), (3, 2, 1));
    /// # Ok::<(), relent::PolicyError>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            name: self.shared.name.clone(),
            waiting: self.waiting(),
            budget_balance: self.budget_balance(),
            budget: self.budget_counts(),
            breaker: self.shared.handles.breaker().and_then(|breaker| breaker.state()),
            ..self.shared.counts.snapshot()
        }
    }

    /// Takes its tokens from `budget`: your own, or one shared with other handles.
    ///
    /// # Panics
    /// If the handle has been cloned: tell it before.
    #[must_use]
    pub fn budget(self, budget: Arc<dyn Budget>) -> Self {
        self.configure(|shared| {
            shared.handles.set_budget(budget);
            shared.arrange();
        })
    }

    /// Asks `breaker` in place of the policy's own: your own, or one shared with other handles, such as a
    /// [`CircuitBreaker`](crate::CircuitBreaker). A shared breaker tells its changes where it was made.
    ///
    /// # Panics
    /// If the handle has been cloned: tell it before.
    #[must_use]
    pub fn breaker(self, breaker: impl Into<Arc<dyn Breaker>>) -> Self {
        self.configure(|shared| {
            shared.handles.set_breaker(breaker.into());
            shared.arrange();
        })
    }

    /// The policy that calls are retried by.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// How many retries the budget would grant now; `None` without a budget.
    pub fn budget_balance(&self) -> Option<u64> {
        let budget = self.shared.handles.budget()?;
        Some(budget.balance(self.shared.timer.now()))
    }

    /// How many tokens the budget has granted, refused and taken back so far; `None` without a budget, or where yours does
    /// not count. Counted where tokens are asked for: a success costs nothing.
    ///
    /// ```
    /// use relent::{Policy, Retry};
    ///
    /// let retry = Retry::new(Policy::constant(std::time::Duration::ZERO).attempts(2).build().unwrap());
    /// let failed = retry.run_blocking(|_| Err::<(), _>(std::io::Error::from(std::io::ErrorKind::ConnectionReset)));
    /// let counts = retry.budget_counts().unwrap();
    /// assert_eq!((failed.is_err(), counts.granted, counts.refused), (true, 1, 0));
    /// ```
    pub fn budget_counts(&self) -> Option<BudgetCounts> {
        self.shared.handles.budget()?.counts()
    }

    /// A handle with the same policy, timer, listener and memory, and with a budget, breaker and waiting room of its own;
    /// a budget or breaker that was given to this one is that one's, too.
    #[cfg(feature = "http")]
    pub(crate) fn alike(&self) -> Retry<C, T>
    where
        C: Clone,
    {
        let shared = &*self.shared;
        let mut alike = Shared::new(shared.policy.clone(), shared.timer.clone());
        shared.handles.lend_given(&mut alike.handles);
        alike.arrange();
        alike.keep_errors = shared.keep_errors;
        alike.listener = shared.listener.clone();
        alike.name = shared.name.clone();
        if let Some(listener) = &alike.listener {
            alike.handles.tell_changes_to(listener.clone());
        }
        alike.memory = Arc::clone(&shared.memory);
        Retry { classify: self.classify.clone(), shared: Arc::new(alike) }
    }

    /// How many calls are in backoff now.
    pub fn waiting(&self) -> u32 {
        self.shared.handles.waiting()
    }

    fn configure(mut self, change: impl FnOnce(&mut Shared<T>)) -> Self {
        let shared = Arc::get_mut(&mut self.shared).expect("a handle is configured before it is cloned");
        change(shared);
        self
    }
}

impl<T: Clock> Shared<T> {
    fn new(policy: Policy, timer: T) -> Shared<T> {
        let now = timer.now();
        let handles = Handles::new(&policy, now);
        let mut shared = Shared {
            #[cfg(feature = "http")]
            memory: Arc::new(crate::http::ReplayMemory::new(policy.replay_total())),
            plain: None,
            guarded: None,
            policy,
            timer,
            handles,
            keep_errors: false,
            listener: None,
            counts: Counts::default(),
            name: None,
        };
        shared.arrange();
        shared
    }

    /// Works out how calls open, as far as that is always the same; to be done again when a handle is exchanged.
    fn arrange(&mut self) {
        let hears =
            self.handles.hears_times() || self.handles.budget().is_some_and(|budget| budget.hears_starts());
        let guarded = self.handles.breaker().is_some();
        // A breaker by another clock than the system's would be asked before the clock is read.
        let known = !hears && (!guarded || self.timer.is_system());
        let plain = plain(&self.policy, &self.timer).filter(|_| known);
        (self.plain, self.guarded) = if guarded { (None, plain) } else { (plain, None) };
    }

    /// What a session decides by.
    #[inline]
    pub(crate) fn context(&self) -> Context<'_, AmbientCredit> {
        self.handles.context(&self.policy, &AmbientCredit)
    }

    /// Whether somebody wants to know how long a success took.
    #[inline]
    pub(crate) fn hears_times(&self) -> bool {
        self.handles.hears_times()
    }

    #[inline]
    pub(crate) fn tell(&self, event: &Event) {
        self.counts.note(event);
        if let Some(listener) = &self.listener {
            listener.tell(event);
        }
    }
}

#[cfg(feature = "http")]
impl<C, T> Retry<C, T> {
    /// Whether anybody else holds it: a clone, or a call.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.shared) > 1
    }
}

impl<C: Clone, T> Clone for Retry<C, T> {
    fn clone(&self) -> Self {
        Retry { classify: self.classify.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<C, T> fmt::Debug for Retry<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("policy", &self.shared.policy)
            .field("handles", &self.shared.handles)
            .finish_non_exhaustive()
    }
}

fn plain<T: Clock>(policy: &Policy, timer: &T) -> Option<Plain> {
    if policy.is_timed() && !timer.is_system() {
        return None;
    }
    let unshared = Handles::unpaid();
    let context = unshared.context(policy, &NoCredit);
    let opening = Opening::begin(&context, Repeat::Yes, Instant::NEVER, Instant::ZERO).ok()?;
    let launch = opening.launch();
    let bound = launch.time_below().map_or(Bound::at(Instant::NEVER), Bound::within);
    Some(Plain {
        opening,
        inside: Surroundings::new(launch.left, bound).on(timer.is_system()),
        attempt: Attempt::new(&launch),
    })
}
