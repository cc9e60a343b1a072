//! Doubles of the shared handles that remember what they were asked and told.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use relent_core::{Admission, Breaker, Budget, Grant, Health, Instant, Permit, TokenClass, Verdict};

/// A budget of some tokens that never refills.
#[derive(Debug, Default)]
pub(super) struct SpyBudget(Mutex<Ledger>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) tokens: u32,
    pub(super) started: u32,
    pub(super) ended: u32,
    /// The attempts of each call that succeeded.
    pub(super) succeeded: Vec<u32>,
    pub(super) failed: Vec<(Verdict, Health)>,
    /// The class of each token asked for, granted or not.
    pub(super) asked: Vec<TokenClass>,
    pub(super) given_back: u32,
    pub(super) finished: u32,
    /// Of those that finished, the tokens whose attempt succeeded.
    pub(super) paid_off: u32,
}

impl SpyBudget {
    pub(super) fn with(tokens: u32) -> Arc<SpyBudget> {
        Arc::new(SpyBudget(Mutex::new(Ledger { tokens, ..Ledger::default() })))
    }

    pub(super) fn seen(&self) -> Ledger {
        self.ledger().clone()
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap()
    }
}

impl Budget for SpyBudget {
    fn on_start(&self) {
        self.ledger().started += 1;
    }

    fn hears_ends(&self) -> bool {
        true
    }

    fn on_end(&self) {
        self.ledger().ended += 1;
    }

    fn on_success(&self, attempts: u32, _now: Option<Instant>) {
        self.ledger().succeeded.push(attempts);
    }

    fn on_failure(&self, verdict: Verdict, health: Health, _now: Instant) {
        self.ledger().failed.push((verdict, health));
    }

    fn withdraw(self: Arc<Self>, class: TokenClass, _now: Instant) -> Option<Permit> {
        let mut ledger = self.ledger();
        ledger.asked.push(class);
        ledger.tokens = ledger.tokens.checked_sub(1)?;
        drop(ledger);
        Some(Permit::new(self, Grant { source: 0, mark: 0 }))
    }

    fn give_back(&self, _grant: Grant) {
        let mut ledger = self.ledger();
        ledger.tokens += 1;
        ledger.given_back += 1;
    }

    fn finished(&self, _grant: Grant) {
        self.ledger().finished += 1;
    }

    fn succeeded(&self, _grant: Grant) {
        let mut ledger = self.ledger();
        ledger.finished += 1;
        ledger.paid_off += 1;
    }

    fn balance(&self, _now: Instant) -> u64 {
        u64::from(self.ledger().tokens)
    }
}

/// A breaker that knows which leaves are out, and refuses every so many times.
#[derive(Debug)]
pub(super) struct Lender {
    refuses: u32,
    asked: AtomicU32,
    out: Mutex<BTreeSet<u32>>,
}

impl Lender {
    /// One that refuses every `refuses`th time; never if that is 0.
    pub(super) fn refusing(refuses: u32) -> Arc<Lender> {
        Arc::new(Lender { refuses, asked: AtomicU32::new(0), out: Mutex::default() })
    }

    /// How many leaves are out.
    pub(super) fn out(&self) -> usize {
        self.out.lock().unwrap().len()
    }

    /// How often it was asked, if it agrees.
    fn agrees(&self) -> Option<u32> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        (self.refuses == 0 || !asked.is_multiple_of(self.refuses)).then_some(asked)
    }

    fn lend(&self) -> Option<Admission> {
        let number = self.agrees()?;
        self.out.lock().unwrap().insert(number);
        Some(Admission::of(number, true))
    }
}

impl Breaker for Lender {
    fn admit_first(&self, _now: Instant) -> Option<Admission> {
        self.lend()
    }

    fn admits_retry(&self, _now: Instant, _at: Instant) -> bool {
        self.agrees().is_some()
    }

    fn admit_retry(&self, _now: Instant) -> Option<Admission> {
        self.lend()
    }

    fn record(&self, admission: Admission, _health: Health, _took: Duration, _now: Instant) {
        let known = admission == Admission::ANY || self.out.lock().unwrap().remove(&admission.generation());
        assert!(known, "{admission:?} was told of before, or never given");
    }
}

/// A breaker that answers as told.
#[derive(Debug)]
pub(super) struct SpyBreaker {
    admits: Mutex<(bool, bool)>,
    records: Mutex<Vec<Health>>,
}

impl SpyBreaker {
    pub(super) fn answering(first: bool, retry: bool) -> Arc<SpyBreaker> {
        Arc::new(SpyBreaker { admits: Mutex::new((first, retry)), records: Mutex::default() })
    }

    pub(super) fn opens(&self) {
        *self.admits.lock().unwrap() = (false, false);
    }

    pub(super) fn records(&self) -> Vec<Health> {
        self.records.lock().unwrap().clone()
    }
}

impl Breaker for SpyBreaker {
    fn admit_first(&self, _now: Instant) -> Option<Admission> {
        self.admits.lock().unwrap().0.then_some(Admission::ANY)
    }

    fn admits_retry(&self, _now: Instant, _at: Instant) -> bool {
        self.admits.lock().unwrap().1
    }

    fn admit_retry(&self, _now: Instant) -> Option<Admission> {
        self.admits.lock().unwrap().1.then_some(Admission::ANY)
    }

    fn record(&self, _admission: Admission, health: Health, _took: Duration, _now: Instant) {
        self.records.lock().unwrap().push(health);
    }
}
