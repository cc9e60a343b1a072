//! A result that was admitted by an older state changes nothing.

use relent_core::{Breaker, BreakerState, Health, Ratio};

use super::{breaker, one, open_since, plain, tell};
use crate::rig::{at, secs};

#[test]
fn a53_a_slow_call_from_before_says_nothing_to_a_later_state() {
    for late in [Health::Good, Health::Bad, Health::Unknown] {
        let config = plain().consecutive_failures(1).probes(2);
        let breaker = breaker(config);
        let slow = breaker.admit_first(at(0)).unwrap();
        one(&breaker, Health::Bad, at(10));
        tell(&breaker, slow, late, at(20));
        assert_eq!(breaker.state(), BreakerState::Open, "{late:?}");
        assert_eq!(breaker.opens_again(at(20)), Some(at(1_010)), "and not for longer");

        let first = breaker.admit_first(at(1_010)).unwrap();
        tell(&breaker, slow, late, at(1_020));
        assert_eq!(breaker.state(), BreakerState::HalfOpen, "{late:?}");
        let second = breaker.admit_first(at(1_020)).unwrap();
        assert!(breaker.admit_first(at(1_020)).is_none(), "two probes, as ever");
        tell(&breaker, first, Health::Good, at(1_030));
        tell(&breaker, second, Health::Good, at(1_030));
        assert_eq!(breaker.state(), BreakerState::Closed);

        tell(&breaker, slow, late, at(1_040));
        tell(&breaker, first, late, at(1_040));
        assert_eq!(
            (breaker.state(), breaker.counts(at(1_040))),
            (BreakerState::Closed, (0, 0, 0)),
            "{late:?}"
        );
    }
}

#[test]
fn a53_a_probe_from_before_says_nothing_to_later_probes() {
    let breaker = open_since(plain().probes(2), at(0));
    let late = breaker.admit_first(at(1_000)).unwrap();
    let failed = breaker.admit_first(at(1_000)).unwrap();
    tell(&breaker, failed, Health::Bad, at(1_010));
    assert_eq!(breaker.state(), BreakerState::Open);
    let second_round = [(); 2].map(|()| breaker.admit_first(at(2_010)).unwrap());
    for health in [Health::Unknown, Health::Bad, Health::Good] {
        tell(&breaker, late, health, at(2_020));
    }
    assert_eq!(breaker.state(), BreakerState::HalfOpen);
    assert!(breaker.admit_first(at(2_020)).is_none(), "it gave nothing back");
    for probe in second_round {
        tell(&breaker, probe, Health::Good, at(2_030));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a53_late_failures_take_no_part_in_a_row() {
    let breaker = breaker(plain().no_failure_rate().consecutive_failures(2));
    let late = [(); 3].map(|()| breaker.admit_first(at(0)).unwrap());
    breaker.close(at(1));
    for admission in late {
        tell(&breaker, admission, Health::Bad, at(2));
    }
    one(&breaker, Health::Bad, at(3));
    assert_eq!(breaker.state(), BreakerState::Closed);
    let late = breaker.admit_first(at(4)).unwrap();
    one(&breaker, Health::Bad, at(4));
    assert_eq!(breaker.state(), BreakerState::Open);
    // Nor does a late success break one.
    breaker.close(at(5));
    one(&breaker, Health::Bad, at(6));
    tell(&breaker, late, Health::Good, at(6));
    one(&breaker, Health::Bad, at(7));
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a53_late_results_do_not_take_the_counts_along() {
    let breaker = breaker(plain().failure_rate(Ratio::percent(50)).slow_calls(secs(1), Ratio::ONE));
    let late = breaker.admit_first(at(0)).unwrap();
    breaker.close(at(1));
    for _ in 0..5 {
        one(&breaker, Health::Good, at(2));
    }
    for health in [Health::Bad, Health::Good, Health::Unknown] {
        tell(&breaker, late, health, at(3));
        breaker.record(late, health, secs(2), at(3));
    }
    one(&breaker, Health::Bad, at(4));
    assert_eq!((breaker.state(), breaker.counts(at(4))), (BreakerState::Closed, (6, 1, 0)));
}
