//! What a classic breaker keeps under its lock, and the moves from one state to the next.

use core::fmt;
use core::mem;
use core::time::Duration;

use super::super::Admission;
use super::super::counts::{Counts, Kind, Sums, grown};
use crate::time::nanos;
use crate::{ClassicConfig, Health, Instant, Rng, defaults};

/// The state that a breaker is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerState {
    /// Everything goes.
    Closed,
    /// Nothing goes, until its time is up.
    Open,
    /// A few probes go.
    HalfOpen,
    /// Nothing goes, until somebody closes it.
    ForcedOpen,
}

impl BreakerState {
    /// The name in logs, metrics and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half-open",
            BreakerState::ForcedOpen => "forced-open",
        }
    }
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a breaker changed its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TripReason {
    /// Too large a share of attempts failed.
    FailureRate,
    /// Too large a share of attempts was slow.
    SlowCallRate,
    /// Too many failed in a row.
    ConsecutiveFailures,
    /// Its time is up.
    OpenTimeOver,
    /// A probe failed, or was slow.
    ProbeFailed,
    /// All probes were good.
    ProbesSucceeded,
    /// Probes were admitted and never reported.
    ProbesLost,
    /// Somebody said so.
    ByHand,
}

impl TripReason {
    /// The name in logs, metrics and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TripReason::FailureRate => "failure-rate",
            TripReason::SlowCallRate => "slow-call-rate",
            TripReason::ConsecutiveFailures => "consecutive-failures",
            TripReason::OpenTimeOver => "open-time-over",
            TripReason::ProbeFailed => "probe-failed",
            TripReason::ProbesSucceeded => "probes-succeeded",
            TripReason::ProbesLost => "probes-lost",
            TripReason::ByHand => "by-hand",
        }
    }
}

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BreakerChange {
    /// What it was.
    pub from: BreakerState,
    /// What it is.
    pub to: BreakerState,
    /// Why.
    pub why: TripReason,
    /// When, by the driver's clock.
    pub at: Instant,
}

/// An attempt that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) admission: Admission,
    pub(super) health: Health,
    pub(super) slow: bool,
    /// Bad attempts up to this one without a good one between.
    pub(super) in_a_row: u32,
}

/// What a [`Classic`](super::Classic) breaker keeps under its lock.
pub struct ClassicState {
    state: BreakerState,
    generation: u32,
    counts: Counts,
    /// Good attempts that are not in the counts yet.
    unsettled: u64,
    /// While it is open: until when. `NEVER` while somebody holds it open.
    until: Instant,
    /// How often it opened since it was last closed.
    openings: u32,
    probes: Probes,
    rng: Rng,
    change: Option<BreakerChange>,
}

/// The probes of a half-open breaker.
#[derive(Clone, Copy, Debug, Default)]
struct Probes {
    out: u32,
    good: u32,
    /// When the last one was admitted.
    last: Instant,
}

impl ClassicState {
    pub(super) fn new(config: &ClassicConfig, seed: u64, now: Instant) -> ClassicState {
        ClassicState {
            state: BreakerState::Closed,
            generation: 0,
            counts: Counts::new(config.window, now),
            unsettled: 0,
            until: Instant::ZERO,
            openings: 0,
            probes: Probes::default(),
            rng: Rng::seeded(seed),
            change: None,
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        self.state
    }

    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// What is published of the state.
    pub(super) fn word(&self) -> u32 {
        self.generation << 1 | u32::from(self.state != BreakerState::Closed)
    }

    pub(super) fn take_change(&mut self) -> Option<BreakerChange> {
        self.change.take()
    }

    /// So many more good attempts, at some time since the last that was told.
    pub(super) fn gather(&mut self, good: u64) {
        self.unsettled = self.unsettled.saturating_add(good);
    }

    pub(super) fn settle(&mut self, now: Instant) -> Sums {
        self.counts.settle(mem::take(&mut self.unsettled), now)
    }

    /// Whether this leave is from the state that it is in now.
    pub(super) fn is_current(&self, admission: Admission) -> bool {
        admission.generation() == self.generation
    }

    /// Leave for an attempt that starts now.
    pub(super) fn admit(&mut self, config: &ClassicConfig, now: Instant) -> Option<Admission> {
        match self.state {
            BreakerState::Closed => return Some(Admission::of(self.generation, false)),
            BreakerState::ForcedOpen => return None,
            BreakerState::Open if now < self.until => return None,
            BreakerState::Open => self.half_open(TripReason::OpenTimeOver, now),
            BreakerState::HalfOpen if self.are_lost(config, now) => {
                self.half_open(TripReason::ProbesLost, now)
            }
            BreakerState::HalfOpen => {}
        }
        if self.probes.out + self.probes.good >= config.probes {
            return None;
        }
        self.probes.out += 1;
        self.probes.last = now;
        Some(Admission::of(self.generation, true))
    }

    /// Whether an attempt at `at` would get leave, as things stand.
    pub(super) fn would_admit(&self, config: &ClassicConfig, at: Instant) -> bool {
        match self.state {
            BreakerState::Closed => true,
            BreakerState::ForcedOpen => false,
            BreakerState::Open => at >= self.until,
            BreakerState::HalfOpen => {
                self.probes.out + self.probes.good < config.probes || self.are_lost(config, at)
            }
        }
    }

    /// An attempt ended that the state it is in now gave leave to.
    pub(super) fn record(&mut self, config: &ClassicConfig, ended: Ended, now: Instant) {
        match self.state {
            BreakerState::Closed => self.record_closed(config, ended, now),
            BreakerState::HalfOpen if ended.admission.is_probe() => self.record_probe(config, ended, now),
            _ => {}
        }
    }

    pub(super) fn force_open(&mut self, now: Instant) {
        self.until = Instant::NEVER;
        self.go(BreakerState::ForcedOpen, TripReason::ByHand, now);
    }

    pub(super) fn close(&mut self, why: TripReason, now: Instant) {
        self.until = Instant::ZERO;
        self.openings = 0;
        self.unsettled = 0;
        self.counts.clear(now);
        self.go(BreakerState::Closed, why, now);
    }

    fn record_closed(&mut self, config: &ClassicConfig, ended: Ended, now: Instant) {
        if ended.health == Health::Unknown {
            return;
        }
        let good = mem::take(&mut self.unsettled);
        let kind = Kind { bad: ended.health == Health::Bad, slow: ended.slow };
        let sums = self.counts.add(good, kind, now);
        if let Some(why) = trips(config, &sums, ended.in_a_row) {
            self.trip(config, why, now);
        }
    }

    fn record_probe(&mut self, config: &ClassicConfig, ended: Ended, now: Instant) {
        self.probes.out = self.probes.out.saturating_sub(1);
        match ended.health {
            Health::Unknown => {}
            Health::Good if !ended.slow => {
                self.probes.good += 1;
                if self.probes.good >= config.probes {
                    self.close(TripReason::ProbesSucceeded, now);
                }
            }
            Health::Good | Health::Bad => self.trip(config, TripReason::ProbeFailed, now),
        }
    }

    fn trip(&mut self, config: &ClassicConfig, why: TripReason, now: Instant) {
        let open = grown(config.open_for, config.open_multiplier, self.openings, config.open_cap);
        self.openings = self.openings.saturating_add(1);
        let widest = config.open_jitter.of_nanos(nanos(open));
        let jitter = crate::rng::uniform(0, widest, self.rng.next());
        self.until = now + open + Duration::from_nanos(jitter);
        self.go(BreakerState::Open, why, now);
    }

    fn half_open(&mut self, why: TripReason, now: Instant) {
        self.until = Instant::ZERO;
        self.probes = Probes::default();
        self.go(BreakerState::HalfOpen, why, now);
    }

    /// Probes that were admitted long ago and have said nothing since.
    fn are_lost(&self, config: &ClassicConfig, now: Instant) -> bool {
        let full = self.probes.out + self.probes.good >= config.probes;
        full && now >= self.probes.last + defaults::PROBE_LEASE
    }

    fn go(&mut self, to: BreakerState, why: TripReason, at: Instant) {
        self.change = Some(BreakerChange { from: self.state, to, why, at });
        self.state = to;
        self.generation = (self.generation + 1) & (u32::MAX >> 1);
    }
}

/// What of the configuration is reached.
fn trips(config: &ClassicConfig, sums: &Sums, in_a_row: u32) -> Option<TripReason> {
    if config.consecutive_failures.is_some_and(|most| in_a_row >= most) {
        return Some(TripReason::ConsecutiveFailures);
    }
    if sums.all < u64::from(config.minimum_calls) {
        return None;
    }
    if config.failure_rate.is_some_and(|rate| sums.reaches(sums.bad, rate)) {
        return Some(TripReason::FailureRate);
    }
    let slow = config.slow_call.is_some() && sums.reaches(sums.slow, config.slow_call_rate);
    slow.then_some(TripReason::SlowCallRate)
}

impl fmt::Debug for ClassicState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassicState")
            .field("state", &self.state)
            .field("probes", &self.probes)
            .finish_non_exhaustive()
    }
}
