//! A budget and, beside it, plain lists of everything that happened: each grant is held against them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use relent_core::{Budget, Instant, Permit, Ratio, RatioConfig, TokenClass};

use crate::rig::{StdRatioBudget, secs};

/// The budget under audit.
pub(super) struct Books {
    pub(super) budget: Arc<StdRatioBudget>,
    pub(super) config: RatioConfig,
    pub(super) now: Instant,
    /// When calls succeeded, and when tokens that were not given back were granted.
    successes: VecDeque<u64>,
    grants: VecDeque<u64>,
    /// A token is spent by keeping it: dropped, it would come back.
    spent: Vec<Permit>,
    pub(super) succeeded: u64,
}

/// `RatioConfig` with its reserve said.
pub(super) fn config(ratio: Ratio, window: Duration, reserve: u32) -> RatioConfig {
    RatioConfig { window, reserve: Some(reserve), ..RatioConfig::new(ratio) }
}

impl Books {
    pub(super) fn of(config: RatioConfig) -> Books {
        let now = Instant::from_nanos(secs(1_000).as_nanos() as u64);
        Books {
            budget: Arc::new(StdRatioBudget::new(&config, 3, now)),
            config,
            now,
            successes: VecDeque::new(),
            grants: VecDeque::new(),
            spent: Vec::new(),
            succeeded: 0,
        }
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    /// A call succeeded, and the driver knows the time.
    pub(super) fn success(&mut self) {
        self.budget.on_success(1, Some(self.now));
        self.note_success();
    }

    /// A call succeeded, and nobody read the clock.
    pub(super) fn success_unclocked(&mut self) {
        self.budget.on_success(1, None);
        self.note_success();
    }

    fn note_success(&mut self) {
        self.successes.push_back(self.now.as_nanos());
        self.succeeded += 1;
    }

    /// Asks for a token and spends it; panics where it must not have been granted.
    pub(super) fn retry(&mut self) -> bool {
        let permit = self.take();
        let granted = permit.is_some();
        self.spent.extend(permit);
        granted
    }

    /// Asks for a token; panics where it must not have been granted.
    pub(super) fn take(&mut self) -> Option<Permit> {
        let permit = Arc::clone(&self.budget).withdraw(TokenClass::Transient, self.now)?;
        self.grants.push_back(self.now.as_nanos());
        let (granted, allowed) = (self.granted_in_window(), self.allowed());
        assert!(
            granted <= allowed,
            "{granted} retries in the window, where {} successes and a reserve of {:?} allow {allowed}: {:?}",
            self.successes.len(),
            self.config.reserve,
            self.budget,
        );
        Some(permit)
    }

    /// A token that was granted at `when` comes back.
    pub(super) fn give_back(&mut self, permit: Permit, when: Instant) {
        if let Some(place) = self.grants.iter().position(|granted| *granted == when.as_nanos()) {
            self.grants.remove(place);
        }
        drop(permit);
    }

    /// ⌊ratio × successes of the last window⌋ + reserve.
    pub(super) fn allowed(&mut self) -> u64 {
        self.share() + u64::from(self.config.reserve.unwrap_or(3))
    }

    pub(super) fn share(&mut self) -> u64 {
        let in_window = self.successes_in_window();
        in_window * u64::from(self.config.ratio.parts_per_million()) / 1_000_000
    }

    pub(super) fn successes_in_window(&mut self) -> u64 {
        Books::forget(&mut self.successes, self.now, self.config.window)
    }

    pub(super) fn granted_in_window(&mut self) -> u64 {
        Books::forget(&mut self.grants, self.now, self.config.window)
    }

    fn forget(times: &mut VecDeque<u64>, now: Instant, window: Duration) -> u64 {
        let window = window.as_nanos() as u64;
        while times.front().is_some_and(|time| now.as_nanos() - time >= window) {
            times.pop_front();
        }
        times.len() as u64
    }

    /// Spends all there is, and answers how many tokens that were.
    pub(super) fn drain(&mut self) -> u64 {
        let mut tokens = 0;
        while self.retry() {
            tokens += 1;
        }
        tokens
    }
}
