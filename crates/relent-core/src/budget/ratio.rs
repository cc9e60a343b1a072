//! The default budget: retries ≤ ratio × successful calls over a sliding window, and a small reserve.

use alloc::sync::Arc;
use core::fmt;
use core::time::Duration;

use super::meter::Meter;
use super::{Budget, BudgetCounts, Grant, Permit, TokenClass};
use crate::ratio::MILLION;
use crate::sync::{AtomicU64, Lock, Ordering, Tally};
use crate::time::nanos;
use crate::window::Window;
use crate::{Deposit, Health, Instant, Ratio, RatioConfig, Verdict};

/// What the window counts.
const DEPOSITS: usize = 0;
const FROM_SHARE: usize = 1;
const FROM_RESERVE: usize = 2;

/// What is tallied between two turns: deposits by drivers that know the time and turn when it has come, deposits by others,
/// and successes that deposit nothing (where the request did).
const CLOCKED: usize = 0;
const UNCLOCKED: usize = 1;
const UNDEPOSITED: usize = 2;

/// Retries as a share of successful calls, exact, with a reserve for callers of few calls.
///
/// Two sources. The *share*: over the window, retries ≤ ⌊ratio × successful calls⌋; a call deposits once, however many
/// attempts it took. The *reserve*: a few tokens, full at the start, refilled by one per successful call but at most
/// `reserve_per_second`, asked when the share is empty; in any window at most the reserve's size is spent from it.
///
/// A success costs one relaxed add on a cache line of the thread's own. Without successes nothing refills, so in a total
/// outage the load factor falls to 1.
///
/// Deposits whose time is known within a tenth of the window count from the earliest time that they can have, so that
/// never a token too many is granted; of a longer time without any turn they are taken to have come evenly.
#[derive(Debug)]
pub struct RatioBudget<L> {
    deposit: Deposit,
    /// A hundredth of the window: how old it may get before a success that knows the time turns it.
    turn_every: u64,
    deposits: Tally<3>,
    turned: AtomicU64,
    state: L,
    meter: Meter,
}

/// What a [`RatioBudget`] keeps under its lock.
pub struct RatioState {
    deposit: Deposit,
    ratio: Ratio,
    window: Window<3>,
    tenth: Duration,
    reserve: u32,
    reserve_size: u32,
    per_second: Ratio,
    /// Successes that may each put a token back as soon as the rate allows; never more than are missing.
    owed: u32,
    /// What the reserve may take up, in parts per million × nanoseconds: exact, however often it is asked.
    allowance: u128,
}

impl<L: Lock<RatioState>> RatioBudget<L> {
    /// A budget with a full reserve (for calls of so many attempts, where the configuration leaves its size open).
    #[must_use]
    pub fn new(config: &RatioConfig, attempts: u32, now: Instant) -> RatioBudget<L> {
        let reserve = config.reserve_for(attempts);
        RatioBudget {
            deposit: config.deposit,
            turn_every: nanos(config.window) / 100,
            deposits: Tally::new(),
            turned: AtomicU64::new(now.as_nanos()),
            state: L::new(RatioState {
                deposit: config.deposit,
                ratio: config.ratio,
                window: Window::new(config.window, now),
                tenth: config.window / 10,
                reserve,
                reserve_size: reserve,
                per_second: config.reserve_per_second,
                owed: 0,
                allowance: 0,
            }),
            meter: Meter::new(),
        }
    }

    fn turned_state<R>(&self, now: Instant, work: impl FnOnce(&mut RatioState) -> R) -> R {
        self.state.with(|state| {
            self.turn(state, now);
            work(state)
        })
    }

    fn turn(&self, state: &mut RatioState, now: Instant) {
        state.turn(self.deposits.collect(), now);
        self.turned.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// A success whose time is known turns the window where that is due.
    #[inline(never)]
    fn succeeded_at(&self, now: Instant) {
        let old = now.as_nanos().saturating_sub(self.turned.load(Ordering::Relaxed)) >= self.turn_every;
        if !(old && self.turn_and_deposit(now)) {
            self.deposits.add_one(self.kind_of_success(CLOCKED));
        }
    }

    /// What a success is tallied as, if it would be `kind` where successes deposit.
    #[inline]
    fn kind_of_success(&self, kind: usize) -> usize {
        if self.deposit == Deposit::Success { kind } else { UNDEPOSITED }
    }

    /// Turns and deposits at `now`, unless somebody else is at it.
    #[cold]
    fn turn_and_deposit(&self, now: Instant) -> bool {
        let turned = self.state.try_with(|state| {
            self.turn(state, now);
            match self.deposit {
                Deposit::Success => state.deposit(now),
                Deposit::Request => state.refill(1),
            }
        });
        turned.is_some()
    }
}

impl<L: Lock<RatioState> + fmt::Debug + 'static> Budget for RatioBudget<L> {
    fn on_start(&self) {
        if self.deposit == Deposit::Request {
            self.deposits.add_one(UNCLOCKED);
        }
    }

    fn hears_starts(&self) -> bool {
        self.deposit == Deposit::Request
    }

    fn on_success(&self, _attempts: u32, now: Option<Instant>) {
        match now {
            Some(now) => self.succeeded_at(now),
            None => self.deposits.add_one(self.kind_of_success(UNCLOCKED)),
        }
    }

    fn on_failure(&self, _verdict: Verdict, _health: Health, _now: Instant) {}

    fn withdraw(self: Arc<Self>, _class: TokenClass, now: Instant) -> Option<Permit> {
        let grant = self.meter.answered(self.turned_state(now, RatioState::take))?;
        Some(Permit::new(self, grant))
    }

    fn give_back(&self, grant: Grant) {
        self.state.with(|state| state.give_back(grant));
        self.meter.returned();
    }

    fn balance(&self, now: Instant) -> u64 {
        self.turned_state(now, |state| state.share_left() + u64::from(state.reserve_left()))
    }

    /// The share is earned anew; what is lowered is the reserve.
    fn lower_to(&self, balance: u64, now: Instant) {
        self.turned_state(now, |state| {
            let balance = balance.saturating_sub(state.share_left());
            state.reserve = state.reserve.min(u32::try_from(balance).unwrap_or(u32::MAX));
        });
    }

    fn counts(&self) -> Option<BudgetCounts> {
        Some(self.meter.counts())
    }
}

impl RatioState {
    fn turn(&mut self, tallied: [u64; 3], now: Instant) {
        let (clocked, unclocked) = (tallied[CLOCKED], tallied[UNCLOCKED]);
        let since = self.window.turn(now);
        // Whoever knows the time would have turned since, had it not been at once after the last turn.
        self.window.place(DEPOSITS, clocked, since.from());
        if since.length() <= self.tenth {
            self.window.place(DEPOSITS, unclocked, since.from());
        } else {
            self.window.spread(DEPOSITS, unclocked, since);
        }
        let full = u128::from(self.reserve_size) * TOKEN;
        let earned = u128::from(self.per_second.parts_per_million()) * u128::from(nanos(since.length()));
        self.allowance = self.allowance.saturating_add(earned).min(full);
        self.refill(match self.deposit {
            Deposit::Success => clocked.saturating_add(unclocked),
            Deposit::Request => tallied[UNDEPOSITED],
        });
    }

    /// One success, now.
    fn deposit(&mut self, now: Instant) {
        self.window.place(DEPOSITS, 1, now);
        self.refill(1);
    }

    /// So many successes put back what the reserve has room for, as its rate allows. In an outage that follows a calm in
    /// which the reserve was full, nothing is owed, and so nothing comes back.
    fn refill(&mut self, successes: u64) {
        let room = self.reserve_size - self.reserve;
        let successes = u32::try_from(successes).unwrap_or(u32::MAX);
        self.owed = self.owed.saturating_add(successes).min(room);
        let affordable = u32::try_from(self.allowance / TOKEN).unwrap_or(u32::MAX);
        let refill = self.owed.min(affordable);
        self.reserve += refill;
        self.owed -= refill;
        self.allowance -= u128::from(refill) * TOKEN;
    }

    fn take(&mut self) -> Option<Grant> {
        if self.share_left() > 0 {
            return Some(Grant { source: FROM_SHARE as u8, mark: self.window.add(FROM_SHARE) });
        }
        if self.reserve_left() > 0 {
            self.reserve -= 1;
            return Some(Grant { source: FROM_RESERVE as u8, mark: self.window.add(FROM_RESERVE) });
        }
        None
    }

    fn give_back(&mut self, grant: Grant) {
        self.window.take_back(usize::from(grant.source), grant.mark);
        if usize::from(grant.source) == FROM_RESERVE {
            self.reserve = (self.reserve + 1).min(self.reserve_size);
            self.owed = self.owed.min(self.reserve_size - self.reserve);
        }
    }

    /// What the share still affords.
    fn share_left(&self) -> u64 {
        self.earned().saturating_sub(self.window.at_most(FROM_SHARE))
    }

    /// What the reserve still affords. It makes up for successes that have left the window before the retries that they
    /// paid for, so that both sources together stay exact.
    fn reserve_left(&self) -> u32 {
        let overdrawn = self.window.at_most(FROM_SHARE).saturating_sub(self.earned());
        let spent = u32::try_from(self.window.at_most(FROM_RESERVE) + overdrawn).unwrap_or(u32::MAX);
        self.reserve.min(self.reserve_size.saturating_sub(spent))
    }

    /// ⌊ratio × deposits⌋: deposits rounded down at the window's edge, as retries are rounded up.
    fn earned(&self) -> u64 {
        let earned = u128::from(self.window.at_least(DEPOSITS)) * u128::from(self.ratio.parts_per_million());
        u64::try_from(earned / u128::from(MILLION)).unwrap_or(u64::MAX)
    }
}

/// One token, in parts per million × nanoseconds.
const TOKEN: u128 = MILLION as u128 * Duration::from_secs(1).as_nanos();

impl fmt::Debug for RatioState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RatioState")
            .field("ratio", &self.ratio)
            .field("deposits", &self.window.at_least(DEPOSITS))
            .field("retries", &(self.window.at_most(FROM_SHARE) + self.window.at_most(FROM_RESERVE)))
            .field("reserve", &self.reserve)
            .finish_non_exhaustive()
    }
}
