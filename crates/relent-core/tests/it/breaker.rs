//! The classic breaker by itself: when it opens, how it closes again, what it does not listen to, and all of it in any order
//! against a simple model.

mod classic;
mod late;
mod model;
mod open_time;
mod probes;

use std::time::Duration;

use relent_core::{
    Admission, Breaker, BreakerState, BreakerWindow, Classic, ClassicConfig, ClassicState, Health, Instant,
    Ratio,
};

use crate::rig::{StdLock, at, secs};

type StdClassic = Classic<StdLock<ClassicState>>;

/// The last ten calls, judged from the first on; open for a second, each time, without jitter; one probe.
fn plain() -> ClassicConfig {
    ClassicConfig::new()
        .window(BreakerWindow::Calls(10))
        .minimum_calls(1)
        .open_for(secs(1))
        .open_growth(Ratio::ONE, secs(60))
        .open_jitter(Ratio::ZERO)
        .probes(1)
}

fn breaker(config: ClassicConfig) -> StdClassic {
    config.check().unwrap();
    StdClassic::new(config, 1, at(0))
}

/// One that opened at `now`.
fn open_since(config: ClassicConfig, now: Instant) -> StdClassic {
    let breaker = breaker(config.consecutive_failures(1));
    one(&breaker, Health::Bad, now);
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

/// An attempt that is admitted and ends at `now`.
fn one(breaker: &StdClassic, health: Health, now: Instant) {
    let admission = breaker.admit_first(now).expect("it is admitted");
    tell(breaker, admission, health, now);
}

fn tell(breaker: &StdClassic, admission: Admission, health: Health, now: Instant) {
    breaker.record(admission, health, Duration::ZERO, now);
}

/// What it still admits now.
fn admitted(breaker: &StdClassic, now: Instant) -> Vec<Admission> {
    (0..100).map_while(|_| breaker.admit_first(now)).collect()
}
