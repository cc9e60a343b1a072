//! Breakers as values.

use alloc::sync::Arc;
use core::time::Duration;

use super::PolicyError;
use crate::breaker::{BreakerChange, Classic, ClassicState, RetriesOnly, RetriesOnlyState};
use crate::sync::Locks;
use crate::{Breaker, Instant, Ratio, defaults};

/// Which breaker stands before a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerConfig {
    /// First tries always go; retries only while the failure rate is low. The one to recommend.
    RetriesOnly(RetriesOnlyConfig),
    /// Nothing goes while it is open.
    Classic(ClassicConfig),
}

impl BreakerConfig {
    /// A closed breaker; `seed` is what its jitter is drawn from, and `listener` hears of every change of state.
    pub fn build<L: Locks>(
        &self,
        seed: u64,
        now: Instant,
        listener: impl Fn(&BreakerChange) + Send + Sync + 'static,
    ) -> Arc<dyn Breaker> {
        match self {
            BreakerConfig::RetriesOnly(config) => {
                Arc::new(RetriesOnly::<L::Of<RetriesOnlyState>>::new(*config, now))
            }
            BreakerConfig::Classic(config) => {
                Arc::new(Classic::<L::Of<ClassicState>>::new(*config, seed, now).on_change(listener))
            }
        }
    }
}

impl From<RetriesOnlyConfig> for BreakerConfig {
    fn from(config: RetriesOnlyConfig) -> BreakerConfig {
        BreakerConfig::RetriesOnly(config)
    }
}

impl From<ClassicConfig> for BreakerConfig {
    fn from(config: ClassicConfig) -> BreakerConfig {
        BreakerConfig::Classic(config)
    }
}

/// The retries-only breaker: first tries always go, retries only while the failure rate is low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetriesOnlyConfig {
    /// Retries are refused at this share of failed attempts, and over it.
    pub failure_rate: Ratio,
    /// The sliding window.
    pub window: Duration,
    /// Attempts in the window before the rate says anything.
    pub minimum_calls: u32,
}

impl RetriesOnlyConfig {
    /// Half of at least 20 attempts over 10 s.
    pub const DEFAULT: RetriesOnlyConfig = RetriesOnlyConfig {
        failure_rate: defaults::BREAKER_FAILURE_RATE,
        window: defaults::BREAKER_WINDOW,
        minimum_calls: defaults::BREAKER_MINIMUM_CALLS,
    };
}

impl Default for RetriesOnlyConfig {
    fn default() -> RetriesOnlyConfig {
        RetriesOnlyConfig::DEFAULT
    }
}

/// What the rates of a classic breaker are taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BreakerWindow {
    /// The attempts of this much time.
    Time(Duration),
    /// The last so many attempts, at most [`BREAKER_MOST_CALLS`](crate::defaults::BREAKER_MOST_CALLS).
    Calls(u32),
}

/// The classic breaker: closed, open, half-open. Whichever of its conditions is reached first opens it.
///
/// *Defaults*: opens at a failure rate of 0.5 over 10 s, of at least 20 attempts; stays open for 5 s, and each time in a
/// row twice as long, up to 60 s, plus up to a tenth of jitter; closes after 3 good probes. Slow calls and failures in a
/// row are not asked unless set.
///
/// ```
/// use relent_core::{ClassicConfig, Policy, Ratio};
/// use std::time::Duration;
///
/// let breaker = ClassicConfig::new()
///     .failure_rate(Ratio::percent(40))
///     .slow_calls(Duration::from_secs(2), Ratio::percent(80))
///     .open_for(Duration::from_secs(10));
/// assert!(Policy::builder().breaker(breaker).build().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassicConfig {
    /// Opens at this share of failed attempts, and over it.
    pub failure_rate: Option<Ratio>,
    /// An attempt that takes so long is slow; `None`: nobody asks.
    pub slow_call: Option<Duration>,
    /// Opens at this share of slow attempts, and over it.
    pub slow_call_rate: Ratio,
    /// Opens at so many failures without a success between.
    pub consecutive_failures: Option<u32>,
    /// What the rates are taken over.
    pub window: BreakerWindow,
    /// Attempts in the window before the rates say anything.
    pub minimum_calls: u32,
    /// How long it stays open.
    pub open_for: Duration,
    /// What that grows by when the probes fail, time after time.
    pub open_multiplier: Ratio,
    /// The longest that it stays open, before jitter.
    pub open_cap: Duration,
    /// Up to this share of it is added at random, so that a fleet does not come back at once.
    pub open_jitter: Ratio,
    /// Probes that are admitted when its time is up, all of which have to be good.
    pub probes: u32,
}

impl ClassicConfig {
    /// All defaults.
    #[must_use]
    pub const fn new() -> ClassicConfig {
        ClassicConfig {
            failure_rate: Some(defaults::BREAKER_FAILURE_RATE),
            slow_call: None,
            slow_call_rate: defaults::BREAKER_SLOW_CALL_RATE,
            consecutive_failures: None,
            window: BreakerWindow::Time(defaults::BREAKER_WINDOW),
            minimum_calls: defaults::BREAKER_MINIMUM_CALLS,
            open_for: defaults::BREAKER_OPEN_FOR,
            open_multiplier: defaults::BREAKER_OPEN_MULTIPLIER,
            open_cap: defaults::BREAKER_OPEN_CAP,
            open_jitter: defaults::BREAKER_OPEN_JITTER,
            probes: defaults::BREAKER_PROBES,
        }
    }

    /// Opens at this share of failed attempts (default 0.5).
    #[must_use]
    pub const fn failure_rate(mut self, rate: Ratio) -> ClassicConfig {
        self.failure_rate = Some(rate);
        self
    }

    /// The failure rate is not asked.
    #[must_use]
    pub const fn no_failure_rate(mut self) -> ClassicConfig {
        self.failure_rate = None;
        self
    }

    /// Opens at this share of attempts that take `limit` or longer (default: nobody asks). Costs a clock reading at the end
    /// of each attempt.
    #[must_use]
    pub const fn slow_calls(mut self, limit: Duration, rate: Ratio) -> ClassicConfig {
        self.slow_call = Some(limit);
        self.slow_call_rate = rate;
        self
    }

    /// Opens at so many failures without a success between (default: nobody asks).
    #[must_use]
    pub const fn consecutive_failures(mut self, failures: u32) -> ClassicConfig {
        self.consecutive_failures = Some(failures);
        self
    }

    /// What the rates are taken over (default: 10 s).
    #[must_use]
    pub const fn window(mut self, window: BreakerWindow) -> ClassicConfig {
        self.window = window;
        self
    }

    /// Attempts in the window before the rates say anything (default 20).
    #[must_use]
    pub const fn minimum_calls(mut self, calls: u32) -> ClassicConfig {
        self.minimum_calls = calls;
        self
    }

    /// How long it stays open (default 5 s). Without growth, say `open_growth(Ratio::ONE, …)`.
    #[must_use]
    pub const fn open_for(mut self, length: Duration) -> ClassicConfig {
        self.open_for = length;
        self
    }

    /// What the open time grows by when probes fail, and up to where (default: twice, 60 s).
    #[must_use]
    pub const fn open_growth(mut self, multiplier: Ratio, cap: Duration) -> ClassicConfig {
        self.open_multiplier = multiplier;
        self.open_cap = cap;
        self
    }

    /// Up to this share is added to the open time at random (default 0.1).
    #[must_use]
    pub const fn open_jitter(mut self, share: Ratio) -> ClassicConfig {
        self.open_jitter = share;
        self
    }

    /// Probes that have to be good before it closes (default 3).
    #[must_use]
    pub const fn probes(mut self, probes: u32) -> ClassicConfig {
        self.probes = probes;
        self
    }

    /// Checks it by itself, as [`PolicyBuilder::build`](super::PolicyBuilder::build) does.
    ///
    /// # Errors
    /// The first contradiction found.
    pub fn check(&self) -> Result<(), PolicyError> {
        let at_least_one = [
            ("breaker.minimum_calls", self.minimum_calls),
            ("breaker.probes", self.probes),
            ("breaker.consecutive_failures", self.consecutive_failures.unwrap_or(1)),
            ("breaker.calls", if let BreakerWindow::Calls(calls) = self.window { calls } else { 1 }),
        ];
        if let Some((field, _)) = at_least_one.into_iter().find(|(_, value)| *value == 0) {
            return Err(PolicyError::Zero(field));
        }
        let window = if let BreakerWindow::Time(length) = self.window { length } else { Duration::MAX };
        let lengths = [
            ("breaker.window", window),
            ("breaker.open_for", self.open_for),
            ("breaker.slow_call", self.slow_call.unwrap_or(Duration::MAX)),
        ];
        if let Some((field, _)) = lengths.into_iter().find(|(_, value)| value.is_zero()) {
            return Err(PolicyError::Zero(field));
        }
        for (field, rate) in [
            ("breaker.failure_rate", self.failure_rate),
            ("breaker.slow_call_rate", Some(self.slow_call_rate)),
        ] {
            check_rate(field, rate)?;
        }
        self.check_growth()
    }

    fn check_growth(&self) -> Result<(), PolicyError> {
        if self.failure_rate.is_none() && self.slow_call.is_none() && self.consecutive_failures.is_none() {
            return Err(PolicyError::BreakerNeverOpens);
        }
        if self.open_multiplier < Ratio::ONE {
            return Err(PolicyError::OpenMultiplierBelowOne(self.open_multiplier));
        }
        if self.open_jitter > Ratio::ONE {
            return Err(PolicyError::OpenJitterAboveOne(self.open_jitter));
        }
        if self.open_cap < self.open_for {
            return Err(PolicyError::OpenCapBelowOpenFor { cap: self.open_cap, open_for: self.open_for });
        }
        match self.window {
            BreakerWindow::Calls(calls) if calls > defaults::BREAKER_MOST_CALLS => {
                Err(PolicyError::TooManyCalls(calls))
            }
            BreakerWindow::Calls(calls) if calls < self.minimum_calls => {
                Err(PolicyError::MinimumCallsAboveWindow { minimum_calls: self.minimum_calls, calls })
            }
            _ => Ok(()),
        }
    }
}

impl Default for ClassicConfig {
    fn default() -> ClassicConfig {
        ClassicConfig::new()
    }
}

pub(super) fn check(config: &BreakerConfig) -> Result<(), PolicyError> {
    match config {
        BreakerConfig::Classic(classic) => classic.check(),
        BreakerConfig::RetriesOnly(breaker) => {
            if breaker.window.is_zero() {
                return Err(PolicyError::Zero("breaker.window"));
            }
            if breaker.minimum_calls == 0 {
                return Err(PolicyError::Zero("minimum_calls"));
            }
            check_rate("failure_rate", Some(breaker.failure_rate))
        }
    }
}

/// The longest length in it, for the check of all lengths.
pub(super) fn longest(config: &BreakerConfig) -> (&'static str, Duration) {
    match config {
        BreakerConfig::RetriesOnly(breaker) => ("breaker.window", breaker.window),
        BreakerConfig::Classic(classic) => {
            let window =
                if let BreakerWindow::Time(length) = classic.window { length } else { Duration::ZERO };
            let slow = classic.slow_call.unwrap_or_default();
            let lengths = [
                ("breaker.window", window),
                ("breaker.slow_call", slow),
                ("breaker.open_cap", classic.open_cap),
            ];
            lengths
                .into_iter()
                .fold(("breaker.open_for", classic.open_for), |a, b| if b.1 > a.1 { b } else { a })
        }
    }
}

fn check_rate(field: &'static str, rate: Option<Ratio>) -> Result<(), PolicyError> {
    match rate {
        Some(rate) if rate == Ratio::ZERO => Err(PolicyError::Zero(field)),
        Some(rate) if rate > Ratio::ONE && field == "breaker.slow_call_rate" => {
            Err(PolicyError::SlowCallRateAboveOne(rate))
        }
        Some(rate) if rate > Ratio::ONE => Err(PolicyError::FailureRateAboveOne(rate)),
        _ => Ok(()),
    }
}
