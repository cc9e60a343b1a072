//! Half-open: how many go, and how none of them can wedge it.

use std::sync::{Arc, Barrier};
use std::thread;

use relent_core::{Breaker, BreakerState, Health, Ratio, defaults};

use super::{admitted, open_since, plain, tell};
use crate::rig::{at, secs};

#[test]
fn a55_b16_exactly_as_many_probes_as_configured() {
    for probes in [1, 2, 7] {
        let breaker = Arc::new(open_since(plain().probes(probes).minimum_calls(10), at(0)));
        assert!(admitted(&breaker, at(999)).is_empty());
        let (threads, asks) = (8, 125);
        let start = Arc::new(Barrier::new(threads));
        let asking = (0..threads).map(|_| {
            let (breaker, start) = (Arc::clone(&breaker), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                (0..asks).filter_map(|_| breaker.admit_first(at(1_000))).collect::<Vec<_>>()
            })
        });
        let asking: Vec<_> = asking.collect();
        let got: Vec<_> = asking.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(got.len(), probes as usize, "of a thousand at once");
        assert!(got.iter().all(|probe| probe.is_probe()));
    }
}

/// `minimum_calls` is about the closed state: fewer probes than that decide all the same.
#[test]
fn a55_the_minimum_of_calls_does_not_hold_up_the_probes() {
    for (health, state) in [(Health::Good, BreakerState::Closed), (Health::Bad, BreakerState::Open)] {
        let breaker = open_since(plain().minimum_calls(10), at(0));
        let probe = breaker.admit_first(at(1_000)).unwrap();
        tell(&breaker, probe, health, at(1_001));
        assert_eq!(breaker.state(), state);
    }
}

#[test]
fn all_probes_have_to_be_good() {
    let breaker = open_since(plain().probes(3), at(0));
    let probes = admitted(&breaker, at(1_000));
    tell(&breaker, probes[0], Health::Good, at(1_001));
    assert!(breaker.admit_first(at(1_001)).is_none(), "a good one is not replaced: three in all");
    tell(&breaker, probes[1], Health::Good, at(1_002));
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    tell(&breaker, probes[2], Health::Bad, at(1_003));
    assert_eq!(breaker.state(), BreakerState::Open);
    assert_eq!(breaker.opens_again(at(1_003)), Some(at(2_003)));
}

#[test]
fn a_slow_probe_has_failed() {
    let breaker = open_since(plain().slow_calls(secs(1), Ratio::ONE), at(0));
    let probe = breaker.admit_first(at(1_000)).unwrap();
    breaker.record(probe, Health::Good, secs(1), at(2_000));
    assert_eq!(breaker.state(), BreakerState::Open);
}

/// Cancelled, ignored (a 429, say), or cancelled before it began: it neither closes nor opens anything, and the next one
/// goes.
#[test]
fn a52_b19_a_probe_that_says_nothing_gives_its_leave_back() {
    let breaker = open_since(plain().probes(2), at(0));
    for round in 0..100 {
        let probes = admitted(&breaker, at(1_000));
        assert_eq!(probes.len(), 2, "round {round}");
        for probe in probes {
            tell(&breaker, probe, Health::Unknown, at(1_000));
            assert_eq!(breaker.state(), BreakerState::HalfOpen);
        }
    }
    for probe in admitted(&breaker, at(1_000)) {
        tell(&breaker, probe, Health::Good, at(1_001));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a52_probes_that_never_end_are_given_up_for_lost() {
    let breaker = open_since(plain().probes(2), at(0));
    let lost = admitted(&breaker, at(1_000));
    let lease = at(1_000) + defaults::PROBE_LEASE;
    assert!(admitted(&breaker, at(999) + defaults::PROBE_LEASE).is_empty());
    assert!(!breaker.admits_retry(at(1_000), at(2_000)) && breaker.admits_retry(at(1_000), lease));
    let others = admitted(&breaker, lease);
    assert_eq!(others.len(), 2);
    // The lost ones come home after all: too late for a word, and for their leave.
    for (probe, health) in lost.into_iter().zip([Health::Bad, Health::Unknown]) {
        tell(&breaker, probe, health, lease);
    }
    assert!(admitted(&breaker, lease).is_empty());
    for probe in others {
        tell(&breaker, probe, Health::Good, lease);
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

/// One probe leaks, the other is good: the lease frees that place too.
#[test]
fn a52_one_leaked_probe_of_several() {
    let breaker = open_since(plain().probes(2), at(0));
    let probes = admitted(&breaker, at(1_000));
    tell(&breaker, probes[0], Health::Good, at(1_001));
    assert!(admitted(&breaker, at(1_001)).is_empty());
    assert!(!admitted(&breaker, at(1_000) + defaults::PROBE_LEASE).is_empty());
}
