//! What all calls of a handle share beside the policy: budget, breaker, bounds on waiting, and the source of jitter.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use relent_core::{
    Breaker, BreakerChange, Budget, Context, FreeRepeats, HedgeConfig, HedgeDelay, Instant, Latencies, Lock,
    Locks, Policy, Random, Rng, TargetHold, WaitingRoom,
};

use crate::event::{Event, Listener};
use crate::random::PerThread;

/// What the calls to one target share: for authors of drivers, who drive a [`Session`](relent_core::Session) themselves.
///
/// Everybody else has it inside a [`Retry`](crate::Retry).
///
/// ```
/// use relent::{Handles, Instant, Policy, Repeat};
/// use relent_core::{NoCredit, Session, Step};
///
/// let policy = Policy::default();
/// let handles = Handles::new(&policy, Instant::ZERO);
/// let context = handles.context(&policy, &NoCredit);
///
/// let mut session = Session::new(&policy, Repeat::Yes, Instant::NEVER, Instant::ZERO);
/// assert!(matches!(session.begin(&context, Instant::ZERO), Step::Launch(launch) if launch.number == 1));
/// ```
pub struct Handles {
    budget: Option<Arc<dyn Budget>>,
    /// Which of the two was given by the caller, who means it to be shared.
    given: Given,
    breaker: Option<Arc<dyn Breaker>>,
    /// Whether breaker or hedges want to know how long a success took.
    hears_times: bool,
    changes: Arc<Changes>,
    waiting: Arc<WaitingRoom>,
    free_repeats: FreeRepeats,
    hold: TargetHold,
    /// Only where hedges go by a measured quantile.
    latencies: Option<Latencies>,
    random: Source,
}

/// What the caller gave.
#[derive(Clone, Copy, Default)]
struct Given {
    budget: bool,
    breaker: bool,
}

impl Handles {
    /// A full budget, a closed breaker and no call waiting, as `policy` asks for them.
    #[must_use]
    pub fn new(policy: &Policy, now: Instant) -> Handles {
        let budget = policy.budget().map(|config| config.build::<Mutexes>(policy.attempts(), now));
        let changes = Arc::new(Changes::default());
        let breaker = policy.breaker().map(|config| {
            let told = Arc::clone(&changes);
            config.build::<Mutexes>(PerThread.next_u64(), now, move |change| told.tell(change))
        });
        let measured = |hedge: &HedgeConfig| matches!(hedge.delay, HedgeDelay::Quantile { .. });
        let latencies = policy.hedge().is_some_and(measured).then(|| Latencies::new(now));
        let mut handles = Handles { budget, breaker, latencies, changes, ..Handles::unpaid() };
        handles.note_times();
        handles
    }

    /// Neither budget nor breaker.
    pub(crate) fn unpaid() -> Handles {
        Handles {
            budget: None,
            given: Given::default(),
            breaker: None,
            hears_times: false,
            changes: Arc::default(),
            waiting: Arc::new(WaitingRoom::new()),
            free_repeats: FreeRepeats::default(),
            hold: TargetHold::new(),
            latencies: None,
            random: Source::PerThread,
        }
    }

    /// What a session decides by.
    #[inline]
    pub fn context<'a, C: ?Sized>(&'a self, policy: &'a Policy, credit: &'a C) -> Context<'a, C> {
        Context {
            policy,
            budget: self.budget.as_ref(),
            breaker: self.breaker.as_deref(),
            waiting: &self.waiting,
            free_repeats: &self.free_repeats,
            credit,
            hold: Some(&self.hold),
            latencies: self.latencies.as_ref(),
            random: &self.random,
        }
    }

    /// Who pays for retries; `None` without a budget.
    #[inline]
    pub fn budget(&self) -> Option<&Arc<dyn Budget>> {
        self.budget.as_ref()
    }

    /// How many calls are in backoff now.
    pub fn waiting(&self) -> u32 {
        self.waiting.waiting()
    }

    /// Whether the target is well enough; `None` without a breaker.
    #[inline]
    pub fn breaker(&self) -> Option<&Arc<dyn Breaker>> {
        self.breaker.as_ref()
    }

    /// Whether a driver has to read its clock at the end of a success.
    #[inline]
    pub fn hears_times(&self) -> bool {
        self.hears_times
    }

    pub(crate) fn set_breaker(&mut self, breaker: Arc<dyn Breaker>) {
        self.breaker = Some(breaker);
        self.given.breaker = true;
        self.note_times();
    }

    /// Who hears of the breaker's changes.
    pub(crate) fn tell_changes_to(&self, listener: Listener) {
        *self.changes.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    fn note_times(&mut self) {
        let asked = self.breaker.as_ref().is_some_and(|breaker| breaker.hears_times());
        self.hears_times = asked || self.latencies.is_some();
    }

    pub(crate) fn set_budget(&mut self, budget: Arc<dyn Budget>) {
        self.budget = Some(budget);
        self.given.budget = true;
    }

    /// What the caller gave to these handles goes to others like them, too: budget, breaker, and a seed for their jitter.
    #[cfg(feature = "http")]
    pub(crate) fn lend_given(&self, others: &mut Handles) {
        if let (true, Some(budget)) = (self.given.budget, &self.budget) {
            others.set_budget(Arc::clone(budget));
        }
        if let (true, Some(breaker)) = (self.given.breaker, &self.breaker) {
            others.set_breaker(Arc::clone(breaker));
        }
        if let Source::Seeded(_) = self.random {
            others.seed(self.random.next_u64());
        }
    }

    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = Source::Seeded(Mutex::new(Rng::seeded(seed)));
    }
}

impl fmt::Debug for Handles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handles").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// Who is told of the breaker's changes: known only after the breaker was made.
#[derive(Debug, Default)]
struct Changes(Mutex<Option<Listener>>);

impl Changes {
    fn tell(&self, change: &BreakerChange) {
        let listener = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener.tell(&Event::Breaker(*change));
        }
    }
}

/// Where the jitter's bits come from.
enum Source {
    PerThread,
    Seeded(Mutex<Rng>),
}

impl Random for Source {
    fn next_u64(&self) -> u64 {
        match self {
            Source::PerThread => PerThread.next_u64(),
            Source::Seeded(rng) => rng.lock().unwrap_or_else(PoisonError::into_inner).next(),
        }
    }
}

/// The locks that the engine is lent.
pub(crate) struct Mutexes;

impl Locks for Mutexes {
    type Of<T: fmt::Debug + Send + 'static> = Guarded<T>;
}

/// The lock that the engine is lent. A panic under it can't leave the counts half changed, so poison is ignored.
#[derive(Debug)]
pub(crate) struct Guarded<S>(Mutex<S>);

impl<S: Send> Lock<S> for Guarded<S> {
    fn new(value: S) -> Self {
        Guarded(Mutex::new(value))
    }

    fn with<R>(&self, work: impl FnOnce(&mut S) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn try_with<R>(&self, work: impl FnOnce(&mut S) -> R) -> Option<R> {
        match self.0.try_lock() {
            Ok(mut state) => Some(work(&mut state)),
            Err(TryLockError::Poisoned(state)) => Some(work(&mut state.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
