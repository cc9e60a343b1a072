//! The classic breaker under every interleaving of two threads, and of three with a bound on preemptions.

use alloc::sync::Arc;
use core::time::Duration;

use loom::thread;

use super::{BreakerState, Classic, ClassicState};
use crate::sync::loom_lock::LoomLock;
use crate::{Admission, Breaker, BreakerWindow, ClassicConfig, Health, Instant, Ratio, defaults};

type LoomBreaker = Classic<LoomLock<ClassicState>>;

const NOW: Instant = Instant::from_nanos(1_000_000_000);
/// When what opened at [`NOW`] lets probes go.
const LATER: Instant = Instant::from_nanos(2_000_000_000);

/// Opens at the first failure, for a second.
fn config(probes: u32) -> ClassicConfig {
    ClassicConfig::new()
        .no_failure_rate()
        .consecutive_failures(1)
        .window(BreakerWindow::Calls(4))
        .minimum_calls(1)
        .open_for(Duration::from_secs(1))
        .open_growth(Ratio::ONE, Duration::from_secs(1))
        .open_jitter(Ratio::ZERO)
        .probes(probes)
}

fn closed(probes: u32) -> Arc<LoomBreaker> {
    Arc::new(LoomBreaker::new(config(probes), 1, Instant::ZERO))
}

fn tell(breaker: &LoomBreaker, admission: Admission, health: Health, now: Instant) {
    breaker.record(admission, health, Duration::ZERO, now);
}

/// Open since [`NOW`].
fn open(probes: u32) -> Arc<LoomBreaker> {
    let breaker = closed(probes);
    let admission = breaker.admit_first(NOW).expect("it is closed");
    tell(&breaker, admission, Health::Bad, NOW);
    assert_eq!(breaker.state(), BreakerState::Open);
    breaker
}

/// Half-open, with all its probes under way.
fn probed<const N: usize>() -> (Arc<LoomBreaker>, [Admission; N]) {
    let breaker = open(N as u32);
    let probes = [(); N].map(|()| breaker.admit_first(LATER).expect("there is a probe left"));
    assert_eq!(breaker.admit_first(LATER), None);
    (breaker, probes)
}

fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// How many probes it still admits.
fn probes_left(breaker: &LoomBreaker, now: Instant) -> usize {
    let mut left = 0;
    while let Some(admission) = breaker.admit_first(now) {
        assert!(admission.is_probe());
        left += 1;
    }
    left
}

#[test]
fn loom_two_that_ask_for_one_probe() {
    explore(None, || {
        let breaker = open(1);
        let other = Arc::clone(&breaker);
        let there = thread::spawn(move || other.admit_first(LATER));
        let here = breaker.admit_first(LATER);
        let there = there.join().unwrap();
        assert!(here.is_some() != there.is_some(), "one gets it");
        let probe = here.or(there).unwrap();
        tell(&breaker, probe, Health::Good, LATER);
        assert_eq!(breaker.state(), BreakerState::Closed);
    });
}

#[test]
fn loom_three_that_ask_for_two_probes() {
    explore(Some(2), || {
        let breaker = open(2);
        let others = [0, 1].map(|_| {
            let breaker = Arc::clone(&breaker);
            thread::spawn(move || breaker.admit_first(LATER))
        });
        let mut admitted = alloc::vec![breaker.admit_retry(LATER)];
        admitted.extend(others.map(|other| other.join().unwrap()));
        assert_eq!(admitted.iter().flatten().count(), 2);
    });
}

#[test]
fn loom_a_probe_that_is_given_up_while_another_asks() {
    explore(None, || {
        let (breaker, [probe]) = probed::<1>();
        let other = Arc::clone(&breaker);
        let giver = thread::spawn(move || tell(&other, probe, Health::Unknown, LATER));
        let here = breaker.admit_first(LATER);
        giver.join().unwrap();
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        let left = probes_left(&breaker, LATER);
        assert_eq!(left + usize::from(here.is_some()), 1, "neither lost nor doubled");
    });
}

#[test]
fn loom_two_probes_that_end_at_once() {
    use Health::{Bad, Good, Unknown};
    let checks = [
        ((Good, Good), BreakerState::Closed),
        ((Good, Bad), BreakerState::Open),
        ((Bad, Bad), BreakerState::Open),
        ((Good, Unknown), BreakerState::HalfOpen),
        ((Unknown, Unknown), BreakerState::HalfOpen),
        ((Unknown, Bad), BreakerState::Open),
    ];
    for ((here, there), expected) in checks {
        explore(None, move || {
            let (breaker, [first, second]) = probed::<2>();
            let other = Arc::clone(&breaker);
            let thread = thread::spawn(move || tell(&other, second, there, LATER));
            tell(&breaker, first, here, LATER);
            thread.join().unwrap();
            assert_eq!(breaker.state(), expected, "{here:?} and {there:?}");
            let again = LATER + Duration::from_secs(1);
            match expected {
                BreakerState::Closed => assert!(!breaker.admit_first(again).unwrap().is_probe()),
                BreakerState::Open => assert_eq!(probes_left(&breaker, again), 2),
                _ => {
                    let good = usize::from(here == Good) + usize::from(there == Good);
                    assert_eq!(probes_left(&breaker, again), 2 - good);
                }
            }
        });
    }
}

#[test]
fn loom_a_success_while_it_opens() {
    explore(None, || {
        let breaker = closed(1);
        let admissions = [(); 2].map(|()| breaker.admit_first(NOW).unwrap());
        let other = Arc::clone(&breaker);
        let there = thread::spawn(move || {
            tell(&other, admissions[0], Health::Good, NOW);
            other.admit_first(NOW)
        });
        tell(&breaker, admissions[1], Health::Bad, NOW);
        let admitted = there.join().unwrap();
        assert!(admitted.is_none_or(|admission| !admission.is_probe()));
        assert_eq!((breaker.state(), breaker.admit_first(NOW)), (BreakerState::Open, None));
        if let Some(late) = admitted {
            tell(&breaker, late, Health::Bad, LATER);
        }
        assert_eq!(probes_left(&breaker, LATER), 1, "not stuck, and not open for longer");
    });
}

#[test]
fn loom_no_attempt_is_lost_between_the_tally_and_the_window() {
    explore(None, || {
        let breaker = Arc::new(LoomBreaker::new(config(1).consecutive_failures(9), 1, Instant::ZERO));
        let admission = breaker.admit_first(NOW).unwrap();
        let other = Arc::clone(&breaker);
        let there = thread::spawn(move || {
            tell(&other, admission, Health::Good, NOW);
            tell(&other, admission, Health::Good, NOW);
        });
        tell(&breaker, admission, Health::Bad, NOW);
        there.join().unwrap();
        assert_eq!(breaker.counts(NOW), (3, 1, 0));
    });
}

#[test]
fn loom_a_hand_on_it_has_the_last_word_over_probes() {
    for health in [Health::Good, Health::Bad, Health::Unknown] {
        explore(None, move || {
            let (breaker, [probe]) = probed::<1>();
            let other = Arc::clone(&breaker);
            let there = thread::spawn(move || tell(&other, probe, health, LATER));
            breaker.close(LATER);
            there.join().unwrap();
            assert_eq!(breaker.state(), BreakerState::Closed);
            assert!(breaker.admit_first(LATER).is_some_and(|admission| !admission.is_probe()));
        });
        explore(None, move || {
            let (breaker, [probe]) = probed::<1>();
            let other = Arc::clone(&breaker);
            let there = thread::spawn(move || tell(&other, probe, health, LATER));
            breaker.open(LATER);
            there.join().unwrap();
            assert_eq!(breaker.state(), BreakerState::ForcedOpen);
            assert_eq!(breaker.admit_first(Instant::from_nanos(u64::MAX - 1)), None);
        });
    }
}

#[test]
fn loom_a_lost_probe_is_replaced_once() {
    explore(None, || {
        let (breaker, [lost]) = probed::<1>();
        let after = LATER + defaults::PROBE_LEASE;
        let other = Arc::clone(&breaker);
        let there = thread::spawn(move || other.admit_first(after));
        let here = breaker.admit_first(after);
        let there = there.join().unwrap();
        assert!(here.is_some() != there.is_some(), "one gets it");
        // The lost one comes home after all: too late to say anything.
        tell(&breaker, lost, Health::Bad, after);
        assert_eq!((breaker.state(), probes_left(&breaker, after)), (BreakerState::HalfOpen, 0));
    });
}
