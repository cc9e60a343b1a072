//! The retries-only breaker, alone and in a call, and who is blamed for an attempt that was cut off.

use std::sync::Arc;
use std::time::Duration;

use relent_core::{
    Admission, Breaker, Budget, Failure, Health, Instant, Policy, Ratio, Repeat, RetriesOnly,
    RetriesOnlyConfig, RetriesOnlyState, Session, StopReason, Used, Verdict,
};

use super::spy::{SpyBreaker, SpyBudget};
use crate::rig::{Rig, StdLock, at, launched, millis, secs, stopped, waits};

type StdBreaker = RetriesOnly<StdLock<RetriesOnlyState>>;

fn breaker(failure_rate: Ratio, minimum_calls: u32) -> StdBreaker {
    let config = RetriesOnlyConfig { failure_rate, window: secs(10), minimum_calls };
    StdBreaker::new(config, at(0))
}

fn record(breaker: &StdBreaker, good: u32, bad: u32, now: Instant) {
    for _ in 0..good {
        breaker.record(Admission::ANY, Health::Good, Duration::ZERO, now);
    }
    for _ in 0..bad {
        breaker.record(Admission::ANY, Health::Bad, Duration::ZERO, now);
    }
}

#[test]
fn below_the_minimum_of_calls_it_says_nothing() {
    let breaker = breaker(Ratio::percent(50), 20);
    record(&breaker, 0, 19, at(10));
    assert!(breaker.admits_retry(at(10), at(20)) && !breaker.is_open(at(10)));
    record(&breaker, 0, 1, at(10));
    assert!(!breaker.admits_retry(at(10), at(20)) && breaker.is_open(at(10)));
}

#[test]
fn retries_go_while_the_rate_is_under_the_limit() {
    for (good, bad, admits) in
        [(51, 49, true), (50, 50, false), (49, 51, false), (100, 0, true), (0, 100, false)]
    {
        let breaker = breaker(Ratio::percent(50), 20);
        record(&breaker, good, bad, at(10));
        assert_eq!(breaker.admits_retry(at(10), at(10)), admits, "{bad} of {}", good + bad);
    }
    let tight = breaker(Ratio::percent(10), 1);
    record(&tight, 95, 5, at(10));
    assert!(tight.admits_retry(at(10), at(10)));
    record(&tight, 0, 6, at(10));
    assert!(!tight.admits_retry(at(10), at(10)));
}

#[test]
fn first_tries_always_go() {
    let breaker = breaker(Ratio::percent(50), 1);
    record(&breaker, 0, 1_000, at(10));
    assert!(breaker.is_open(at(10)) && breaker.admit_first(at(10)).is_some());
}

#[test]
fn it_forgets_after_its_window() {
    let breaker = breaker(Ratio::percent(50), 20);
    record(&breaker, 0, 100, at(1_000));
    assert!(breaker.is_open(at(1_000)) && breaker.is_open(at(10_900)));
    assert!(!breaker.is_open(at(11_100)));
    // Asked in advance, it says what it will say then.
    record(&breaker, 0, 100, at(12_000));
    assert!(!breaker.admits_retry(at(12_000), at(21_900)));
    assert!(breaker.admits_retry(at(12_000), at(22_100)));
}

#[test]
fn what_says_nothing_about_the_target_counts_for_neither_side() {
    let breaker = breaker(Ratio::percent(50), 20);
    for _ in 0..1_000 {
        breaker.record(Admission::ANY, Health::Unknown, Duration::ZERO, at(1));
    }
    record(&breaker, 0, 19, at(1));
    assert!(!breaker.is_open(at(1)), "19 calls, not 1019");
}

#[test]
fn a_jump_of_the_clock_in_either_direction_does_no_harm() {
    let breaker = breaker(Ratio::percent(50), 20);
    record(&breaker, 10, 30, at(100_000));
    assert!(breaker.is_open(at(50)), "back");
    record(&breaker, 30, 0, at(50));
    assert!(!breaker.is_open(at(100_000)));
    assert!(!breaker.is_open(Instant::from_nanos(u64::MAX - 1)), "forth");
}

#[test]
fn open_it_refuses_the_retry_and_not_the_call() {
    let mut rig = Rig::new(Policy::builder().breaker(RetriesOnlyConfig::DEFAULT).build().unwrap());
    assert!(rig.policy.is_timed());
    let budget = SpyBudget::with(9);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    rig.breaker = Some(Arc::new(breaker(Ratio::percent(50), 20)));
    let mut reasons = Vec::new();
    for n in 0..30 {
        let (mut call, launch) = rig.begun(at(n));
        let step = call.failed(&rig.context(), launch.id, Verdict::Transient.into(), at(n));
        if let relent_core::Step::Stop(stop) = step {
            reasons.push(stop.reason);
        }
    }
    // Nine retries were granted and dropped with their calls; from the twentieth failure on the breaker refuses.
    assert_eq!(reasons, [StopReason::BreakerOpen; 11]);
    assert_eq!(budget.seen().tokens, 9);
}

#[test]
fn it_is_asked_again_at_the_launch_and_the_token_comes_back() {
    let mut rig = Rig::new(Policy::constant(millis(100)).build().unwrap());
    let budget = SpyBudget::with(9);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    let breaker = Arc::new(breaker(Ratio::percent(50), 20));
    rig.breaker = Some(Arc::clone(&breaker) as Arc<dyn Breaker>);
    let (mut call, launch) = rig.begun(at(0));
    let until = waits(call.failed(&rig.context(), launch.id, Verdict::Transient.into(), at(10)));
    record(&breaker, 0, 30, at(50));
    let stop = stopped(call.due(&rig.context(), until));
    assert_eq!((stop.reason, stop.attempts), (StopReason::BreakerOpen, 1));
    assert_eq!((budget.seen().tokens, rig.waiting.waiting()), (9, 0));
}

/// How an attempt is judged that began at 0 and was cut off by its caller `after` so long.
fn blamed(policy: &Policy, after: Duration, by_deadline: bool) -> Health {
    let mut rig = Rig::new(policy.clone());
    let breaker = SpyBreaker::answering(true, true);
    rig.breaker = Some(breaker.clone());
    let deadline = if by_deadline { at(0) + after } else { Instant::NEVER };
    let mut call = Session::new(&rig.policy, Repeat::Yes, deadline, at(0));
    let launch = launched(call.begin(&rig.context(), at(0)));
    if by_deadline {
        let stop = stopped(call.expired(&rig.context(), launch.id, Failure::timed_out(), at(0) + after));
        assert_eq!((stop.reason, stop.ambiguous), (StopReason::DeadlineExceeded, true));
    } else {
        call.abandon(&rig.context(), Used::Unsaid, Some(at(0) + after));
    }
    breaker.records()[0]
}

#[test]
fn a_tiny_deadline_blames_nobody_and_a_black_hole_stays_visible() {
    let own = Policy::builder().attempt_timeout(secs(4)).build().unwrap();
    let by_call = Policy::builder().no_attempt_timeout().deadline(secs(4)).build().unwrap();
    for by_deadline in [true, false] {
        for (after, health) in [
            (millis(1), Health::Unknown),
            (millis(1_999), Health::Unknown),
            (millis(2_000), Health::Bad),
            (millis(3_999), Health::Bad),
        ] {
            assert_eq!(blamed(&own, after, by_deadline), health, "{after:?} of 4 s");
            assert_eq!(blamed(&by_call, after, by_deadline), health, "{after:?} of a call's 4 s");
        }
    }
    let unbounded = Policy::builder().no_attempt_timeout().no_deadline().build().unwrap();
    assert_eq!(blamed(&unbounded, secs(3_600), false), Health::Unknown, "no time of its own to have overrun");
}

#[test]
fn an_attempts_own_timeout_is_a_failure() {
    let mut rig = Rig::new(Policy::default());
    let breaker = SpyBreaker::answering(true, true);
    rig.breaker = Some(breaker.clone());
    let (mut call, launch) = rig.begun(at(0));
    waits(call.expired(&rig.context(), launch.id, Failure::timed_out(), launch.ends));
    assert_eq!(breaker.records(), [Health::Bad]);
}

#[test]
fn health_is_told_apart_from_whether_it_is_retried() {
    let mut rig = Rig::new(Policy::default());
    let breaker = SpyBreaker::answering(true, true);
    rig.breaker = Some(breaker.clone());
    for failure in [
        Failure::new(Verdict::Permanent).health(Health::Bad),
        Failure::new(Verdict::Permanent).health(Health::Good),
        Failure::new(Verdict::Permanent),
        Failure::new(Verdict::Throttled { hint: None }),
        Failure::new(Verdict::Transient),
    ] {
        let (mut call, launch) = rig.begun(at(0));
        call.failed(&rig.context(), launch.id, failure, at(1));
    }
    let [bad, good, unknown] = [Health::Bad, Health::Good, Health::Unknown];
    assert_eq!(breaker.records(), [bad, good, unknown, unknown, bad]);
}
