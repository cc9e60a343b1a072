//! When a closed breaker opens.

use std::sync::{Arc, Mutex};

use relent_core::{Breaker, BreakerState, BreakerWindow, ClassicConfig, Health, Ratio, TripReason};

use super::{StdClassic, breaker, one, plain, tell};
use crate::rig::{at, millis, secs};

/// After so many good and then so many bad attempts.
fn after(config: ClassicConfig, good: u32, bad: u32) -> BreakerState {
    let breaker = breaker(config);
    for _ in 0..good {
        one(&breaker, Health::Good, at(10));
    }
    for n in 0..bad {
        assert_eq!(breaker.state(), BreakerState::Closed, "before failure {n}");
        one(&breaker, Health::Bad, at(10));
    }
    breaker.state()
}

#[test]
fn it_opens_at_the_rate_and_not_below() {
    for window in [BreakerWindow::Calls(100), BreakerWindow::Time(secs(10))] {
        let config = plain().window(window).minimum_calls(20).failure_rate(Ratio::percent(50));
        assert_eq!(after(config, 50, 49), BreakerState::Closed, "{window:?}");
        assert_eq!(after(config, 50, 50), BreakerState::Open, "{window:?}");
        assert_eq!(after(config, 0, 19), BreakerState::Closed, "19 are too few: {window:?}");
        assert_eq!(after(config, 0, 20), BreakerState::Open, "{window:?}");
    }
}

#[test]
fn the_last_calls_push_out_those_before() {
    let breaker = breaker(plain().minimum_calls(10).failure_rate(Ratio::percent(40)));
    for _ in 0..3 {
        one(&breaker, Health::Bad, at(1));
    }
    for _ in 0..9 {
        one(&breaker, Health::Good, at(2));
    }
    assert_eq!(breaker.counts(at(2)), (10, 1, 0));
    for _ in 0..3 {
        assert_eq!(breaker.state(), BreakerState::Closed);
        one(&breaker, Health::Bad, at(3));
    }
    assert_eq!((breaker.state(), breaker.counts(at(3))), (BreakerState::Closed, (10, 3, 0)));
    one(&breaker, Health::Bad, at(3));
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_window_of_time_forgets() {
    let config = plain().window(BreakerWindow::Time(secs(10))).minimum_calls(20);
    let breaker = breaker(config);
    for _ in 0..19 {
        one(&breaker, Health::Bad, at(1_000));
    }
    assert_eq!(breaker.counts(at(10_900)), (19, 19, 0));
    assert_eq!(breaker.counts(at(11_100)), (0, 0, 0));
    for _ in 0..19 {
        one(&breaker, Health::Bad, at(11_100));
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
    one(&breaker, Health::Bad, at(11_100));
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn failures_in_a_row_open_it_without_any_rate() {
    let config = plain().no_failure_rate().consecutive_failures(3).minimum_calls(10);
    assert_eq!(after(config, 100, 2), BreakerState::Closed);
    assert_eq!(after(config, 100, 3), BreakerState::Open);
    let breaker = breaker(config);
    for health in [Health::Bad, Health::Bad, Health::Good, Health::Bad, Health::Unknown, Health::Bad] {
        one(&breaker, health, at(1));
    }
    assert_eq!(breaker.state(), BreakerState::Closed, "a success lay between");
    one(&breaker, Health::Bad, at(1));
    assert_eq!(breaker.state(), BreakerState::Open, "what says nothing breaks no run");
}

#[test]
fn a_slow_success_breaks_the_run_of_failures() {
    let config = plain().no_failure_rate().consecutive_failures(2).slow_calls(secs(1), Ratio::ONE);
    let breaker = breaker(config);
    let ended = |health, took| {
        let admission = breaker.admit_first(at(1)).unwrap();
        breaker.record(admission, health, took, at(1));
    };
    ended(Health::Bad, millis(1));
    ended(Health::Good, secs(2));
    ended(Health::Bad, millis(1));
    assert_eq!(breaker.state(), BreakerState::Closed);
    ended(Health::Bad, millis(1));
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn slow_calls_open_it_whether_they_fail_or_not() {
    let config = plain().no_failure_rate().minimum_calls(4).slow_calls(millis(100), Ratio::percent(50));
    for (took, state) in [(millis(99), BreakerState::Closed), (millis(100), BreakerState::Open)] {
        let breaker = breaker(config);
        for _ in 0..2 {
            one(&breaker, Health::Good, at(1));
        }
        for health in [Health::Good, Health::Bad] {
            let admission = breaker.admit_first(at(1)).unwrap();
            breaker.record(admission, health, took, at(1));
        }
        assert_eq!(breaker.state(), state, "{took:?}");
    }
    assert!(breaker(config).hears_times() && !breaker(plain()).hears_times());
}

#[test]
fn whichever_is_reached_first_is_the_reason() {
    let told = |config: ClassicConfig, took| {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&changes);
        let listener = move |change: &_| heard.lock().unwrap().push(*change);
        let breaker = StdClassic::new(config, 1, at(0)).on_change(listener);
        for _ in 0..4 {
            if let Some(admission) = breaker.admit_first(at(7)) {
                breaker.record(admission, Health::Bad, took, at(7));
            }
        }
        let changes = changes.lock().unwrap().clone();
        let [change] = changes[..] else { panic!("{changes:?}") };
        assert_eq!((change.from, change.to, change.at), (BreakerState::Closed, BreakerState::Open, at(7)));
        change.why
    };
    let all = plain().minimum_calls(4).consecutive_failures(4).slow_calls(secs(1), Ratio::ONE);
    assert_eq!(told(all.consecutive_failures(2), secs(2)), TripReason::ConsecutiveFailures);
    assert_eq!(told(all.consecutive_failures(5), secs(2)), TripReason::FailureRate);
    assert_eq!(told(all.consecutive_failures(5).no_failure_rate(), secs(2)), TripReason::SlowCallRate);
}

#[test]
fn what_says_nothing_counts_for_neither_side() {
    let breaker = breaker(plain());
    for _ in 0..1_000 {
        one(&breaker, Health::Unknown, at(1));
    }
    assert_eq!((breaker.state(), breaker.counts(at(1))), (BreakerState::Closed, (0, 0, 0)));
}

#[test]
fn by_hand_it_stays_open_until_it_is_closed() {
    let breaker = breaker(plain());
    for _ in 0..3 {
        one(&breaker, Health::Good, at(1));
    }
    breaker.open(at(1));
    assert_eq!(breaker.state(), BreakerState::ForcedOpen);
    for now in [at(1), at(2_000), at(1_000_000_000)] {
        assert!(breaker.admit_first(now).is_none() && breaker.admit_retry(now).is_none());
        assert!(!breaker.admits_retry(now, now) && breaker.opens_again(now).is_none());
    }
    breaker.close(at(2));
    assert_eq!((breaker.state(), breaker.counts(at(2))), (BreakerState::Closed, (0, 0, 0)));
    assert!(breaker.admits_retry(at(2), at(2)));
    one(&breaker, Health::Good, at(3));
}

#[test]
fn a_clock_that_jumps_does_no_harm() {
    let breaker = breaker(plain().window(BreakerWindow::Time(secs(10))).minimum_calls(4));
    let admission = breaker.admit_first(at(1)).unwrap();
    for now in [at(100_000), at(5), at(100_000), relent_core::Instant::from_nanos(u64::MAX - 1)] {
        tell(&breaker, admission, Health::Bad, now);
    }
    assert_eq!(breaker.state(), BreakerState::Closed, "never four within ten seconds");
}
