//! What every test drives a session with: handles around a policy, a seeded generator, and the unpacking of steps.

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use relent_core::{
    Breaker, Budget, BudgetConfig, Context, Credit, FreeRepeats, Instant, Latencies, Launch, Lock, Locks,
    NoCredit, Policy, Random, RatioBudget, RatioState, Repeat, Rng, Session, Step, Stop, TargetHold,
    WaitingRoom,
};

/// The lock that the engine is lent.
#[derive(Debug)]
pub(crate) struct StdLock<T>(Mutex<T>);

impl<T: Send> Lock<T> for StdLock<T> {
    fn new(value: T) -> Self {
        StdLock(Mutex::new(value))
    }

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap())
    }

    fn try_with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.0.try_lock().ok().map(|mut state| work(&mut state))
    }
}

/// The locks that the engine is lent.
pub(crate) struct StdLocks;

impl Locks for StdLocks {
    type Of<T: Debug + Send + 'static> = StdLock<T>;
}

pub(crate) type StdRatioBudget = RatioBudget<StdLock<RatioState>>;

/// A generator that can be lent by `&`, and counts.
#[derive(Debug)]
pub(crate) struct Bits {
    seed: Cell<u64>,
    drawn: Cell<u32>,
}

impl Bits {
    pub(crate) fn seeded(seed: u64) -> Bits {
        Bits { seed: Cell::new(seed), drawn: Cell::new(0) }
    }

    /// How often it was asked.
    pub(crate) fn drawn(&self) -> u32 {
        self.drawn.get()
    }

    /// A number in `0..below`.
    pub(crate) fn below(&self, below: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(below)) >> 64) as u64
    }

    /// True with this probability.
    pub(crate) fn chance(&self, probability: f64) -> bool {
        (self.next_u64() as f64) < probability * (u64::MAX as f64)
    }
}

impl Random for Bits {
    fn next_u64(&self) -> u64 {
        let mut rng = Rng::seeded(self.seed.get());
        let bits = rng.next();
        self.seed.set(rng.into_seed());
        self.drawn.set(self.drawn.get() + 1);
        bits
    }
}

/// A policy and its handles.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) policy: Policy,
    pub(crate) budget: Option<Arc<dyn Budget>>,
    pub(crate) breaker: Option<Arc<dyn Breaker>>,
    pub(crate) waiting: Arc<WaitingRoom>,
    pub(crate) free_repeats: FreeRepeats,
    pub(crate) hold: TargetHold,
    pub(crate) latencies: Option<Latencies>,
    pub(crate) bits: Bits,
}

impl Rig {
    /// The handles that the policy describes, fresh at time zero; no breaker.
    pub(crate) fn new(policy: Policy) -> Rig {
        let budget = policy.budget().map(|config| budget_of(config, policy.attempts()));
        Rig {
            policy,
            budget,
            breaker: None,
            waiting: Arc::new(WaitingRoom::new()),
            free_repeats: FreeRepeats::default(),
            hold: TargetHold::new(),
            latencies: None,
            bits: Bits::seeded(1),
        }
    }

    pub(crate) fn context(&self) -> Context<'_, NoCredit> {
        self.context_under(&NoCredit)
    }

    /// The context of a call that a layer above granted something to.
    pub(crate) fn context_under<'a, C: Credit + ?Sized>(&'a self, credit: &'a C) -> Context<'a, C> {
        Context {
            policy: &self.policy,
            budget: self.budget.as_ref(),
            breaker: self.breaker.as_deref(),
            waiting: &self.waiting,
            free_repeats: &self.free_repeats,
            credit,
            hold: Some(&self.hold),
            latencies: self.latencies.as_ref(),
            random: &self.bits,
        }
    }

    /// A repeatable call that starts at `now`.
    pub(crate) fn session(&self, now: Instant) -> Session {
        Session::new(&self.policy, Repeat::Yes, Instant::NEVER, now)
    }

    /// A repeatable call whose first attempt runs.
    pub(crate) fn begun(&self, now: Instant) -> (Session, Launch) {
        let mut session = self.session(now);
        let launch = launched(session.begin(&self.context(), now));
        (session, launch)
    }
}

pub(crate) fn budget_of(config: &BudgetConfig, attempts: u32) -> Arc<dyn Budget> {
    config.build::<StdLocks>(attempts, Instant::ZERO)
}

pub(crate) fn launched(step: Step) -> Launch {
    match step {
        Step::Launch(launch) => launch,
        other => panic!("a launch was expected, not {other:?}"),
    }
}

pub(crate) fn waits(step: Step) -> Instant {
    match step {
        Step::Wait { until } => until,
        other => panic!("a wait was expected, not {other:?}"),
    }
}

pub(crate) fn stopped(step: Step) -> Stop {
    match step {
        Step::Stop(stop) => stop,
        other => panic!("a stop was expected, not {other:?}"),
    }
}

pub(crate) const fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// So many milliseconds after the start.
pub(crate) const fn at(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}
