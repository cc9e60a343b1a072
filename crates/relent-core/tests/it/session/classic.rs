//! Calls before a classic breaker: what it refuses, what a retry and a hedge may do as probes, and that every leave goes
//! back, whatever becomes of the attempt.

use std::sync::Arc;
use std::time::Duration;

use relent_core::{
    Breaker, BreakerState, BreakerWindow, Budget, Classic, ClassicConfig, ClassicState, Failure, Health,
    Hedge, HedgeConfig, Instant, Policy, PolicyBuilder, Ratio, Repeat, Session, StopReason, Used, Verdict,
};

use super::spy::{Lender, SpyBudget};
use crate::rig::{Rig, StdLock, at, launched, millis, secs, stopped, waits};

type StdClassic = Classic<StdLock<ClassicState>>;

/// Opens at the second failure in a row, for a second; one probe.
fn config() -> ClassicConfig {
    ClassicConfig::new()
        .no_failure_rate()
        .consecutive_failures(2)
        .window(BreakerWindow::Calls(10))
        .minimum_calls(1)
        .open_for(secs(1))
        .open_jitter(Ratio::ZERO)
        .probes(1)
}

fn behind(config: ClassicConfig, policy: PolicyBuilder) -> (Rig, Arc<StdClassic>) {
    let mut rig = Rig::new(policy.breaker(config).build().unwrap());
    let breaker = Arc::new(StdClassic::new(config, 1, at(0)));
    rig.breaker = Some(breaker.clone());
    (rig, breaker)
}

/// One that has opened at 0, after two failures.
fn open(policy: PolicyBuilder) -> (Rig, Arc<StdClassic>) {
    let (rig, breaker) = behind(config(), policy);
    for _ in 0..2 {
        let leave = breaker.admit_first(at(0)).unwrap();
        breaker.record(leave, Health::Bad, Duration::ZERO, at(0));
    }
    assert_eq!(breaker.state(), BreakerState::Open);
    (rig, breaker)
}

fn transient() -> Failure {
    Verdict::Transient.into()
}

/// Whether it would let a probe go now.
fn has_a_probe(breaker: &StdClassic, now: Instant) -> bool {
    breaker.admits_retry(now, now)
}

#[test]
fn a56_open_it_refuses_the_call_and_nobody_pays_or_sleeps() {
    let (mut rig, _) = open(Policy::builder().attempts(5));
    let budget = SpyBudget::with(9);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    let mut session = rig.session(at(10));
    let stop = stopped(session.begin(&rig.context(), at(10)));
    assert_eq!((stop.reason, stop.attempts, stop.ambiguous), (StopReason::BreakerOpen, 0, false));
    let seen = budget.seen();
    assert_eq!((seen.started, seen.tokens, seen.asked.len(), rig.waiting.waiting()), (0, 9, 0, 0));
}

/// A breaker inside the operation refuses: to the layer above that is one rejection, and no reason to knock again.
#[test]
fn a56_what_a_breaker_below_refused_is_not_tried_again() {
    let (mut rig, breaker) = behind(config(), Policy::builder().attempts(5));
    let budget = SpyBudget::with(9);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    for _ in 0..10 {
        let (mut session, launch) = rig.begun(at(0));
        let stop = stopped(session.failed(&rig.context(), launch.id, Verdict::Rejected.into(), at(0)));
        assert_eq!((stop.reason, stop.attempts), (StopReason::NotRetryable, 1));
    }
    assert_eq!((budget.seen().tokens, breaker.state()), (9, BreakerState::Closed));
}

#[test]
fn the_failure_that_opens_it_is_the_last_real_outcome() {
    let (rig, breaker) = behind(config(), Policy::constant(millis(100)).attempts(5));
    let (mut session, first) = rig.begun(at(0));
    assert_eq!(waits(session.failed(&rig.context(), first.id, transient(), at(10))), at(110));
    let second = launched(session.due(&rig.context(), at(110)));
    let stop = stopped(session.failed(&rig.context(), second.id, transient(), at(120)));
    assert_eq!((stop.reason, stop.attempts), (StopReason::BreakerOpen, 2));
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_retry_that_comes_after_the_open_time_is_the_probe() {
    let (rig, breaker) = behind(config(), Policy::constant(secs(2)).attempts(5));
    let (mut session, first) = rig.begun(at(0));
    let until = waits(session.failed(&rig.context(), first.id, transient(), at(10)));
    let other = breaker.admit_first(at(20)).unwrap();
    breaker.record(other, Health::Bad, Duration::ZERO, at(20));
    assert_eq!((breaker.state(), until), (BreakerState::Open, at(2_010)));
    let probe = launched(session.due(&rig.context(), until));
    assert_eq!((breaker.state(), has_a_probe(&breaker, until)), (BreakerState::HalfOpen, false));
    session.succeeded(&rig.context(), probe.id, Used::Unsaid, Some(at(2_020)));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a_retry_that_finds_the_probe_taken_ends_with_the_last_real_outcome() {
    let (mut rig, breaker) = behind(config(), Policy::constant(secs(2)).attempts(5));
    let budget = SpyBudget::with(9);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    let (mut session, first) = rig.begun(at(0));
    let until = waits(session.failed(&rig.context(), first.id, transient(), at(10)));
    let other = breaker.admit_first(at(20)).unwrap();
    breaker.record(other, Health::Bad, Duration::ZERO, at(20));
    let _probe = breaker.admit_first(at(2_000)).unwrap();
    let stop = stopped(session.due(&rig.context(), until));
    assert_eq!((stop.reason, stop.attempts), (StopReason::BreakerOpen, 1));
    assert_eq!((budget.seen().tokens, rig.waiting.waiting()), (9, 0), "token and seat came back");
}

#[test]
fn a52_b19_a_probe_given_up_early_gives_its_leave_back_and_late_it_has_failed() {
    let policy = || Policy::builder().attempt_timeout(secs(4));
    for (after, state) in [(secs(1), BreakerState::HalfOpen), (secs(2), BreakerState::Open)] {
        for by_deadline in [true, false] {
            let (rig, breaker) = open(policy());
            let start = at(1_000);
            let deadline = if by_deadline { start + after } else { Instant::NEVER };
            let mut session = Session::new(&rig.policy, Repeat::Yes, deadline, start);
            let probe = launched(session.begin(&rig.context(), start));
            assert!(!has_a_probe(&breaker, start));
            if by_deadline {
                stopped(session.expired(&rig.context(), probe.id, Failure::timed_out(), start + after));
            } else {
                session.abandon(&rig.context(), Used::Unsaid, Some(start + after));
            }
            assert_eq!(breaker.state(), state, "{after:?} of 4 s");
            assert_eq!(has_a_probe(&breaker, start + after), state == BreakerState::HalfOpen);
        }
    }
}

#[test]
fn cut_off_after_the_limit_an_attempt_was_slow_and_before_it_says_nothing() {
    let slow = config().slow_calls(secs(1), Ratio::percent(50));
    for (after, counts) in [(millis(999), (0, 0, 0)), (millis(1_000), (1, 0, 1)), (secs(3), (1, 1, 1))] {
        let (rig, breaker) = behind(slow.minimum_calls(2), Policy::builder().attempt_timeout(secs(4)));
        let (mut session, _) = rig.begun(at(0));
        session.abandon(&rig.context(), Used::Unsaid, Some(at(0) + after));
        assert_eq!(breaker.counts(at(5_000)), counts, "{after:?}");
    }
}

#[test]
fn whoever_loses_to_a_hedge_was_not_slow() {
    let hedged = Policy::builder().hedge(HedgeConfig::after(millis(50)));
    let (rig, breaker) = behind(config().slow_calls(secs(1), Ratio::percent(50)).minimum_calls(3), hedged);
    let (mut session, _first) = rig.begun(at(0));
    let Hedge::Launch(hedge) = session.hedge(&rig.context(), true, at(1_500)) else { panic!("it is due") };
    session.succeeded(&rig.context(), hedge.id, Used::Unsaid, Some(at(1_510)));
    assert_eq!(breaker.counts(at(1_510)), (1, 0, 0));
}

#[test]
fn a_hedge_needs_leave_too() {
    let policy = || Policy::builder().hedge(HedgeConfig::after(millis(50)));
    let (rig, breaker) = open(policy());
    let (mut session, probe) = rig.begun(at(1_000));
    assert_eq!(session.hedge(&rig.context(), true, at(1_050)), Hedge::Refused(StopReason::BreakerOpen));
    session.succeeded(&rig.context(), probe.id, Used::Unsaid, Some(at(1_060)));
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn every_leave_is_told_of_once_however_a_hedged_call_ends() {
    let policy = Policy::constant(millis(100))
        .attempts(4)
        .attempt_timeout(secs(2))
        .hedge(HedgeConfig::after(millis(50)).most(2))
        .build()
        .unwrap();
    for ending in ["first", "hedge", "permanent", "expired", "abandoned", "all but one", "all"] {
        let mut rig = Rig::new(policy.clone());
        let lender = Lender::refusing(0);
        rig.breaker = Some(lender.clone());
        let context = rig.context();
        let (mut session, first) = rig.begun(at(0));
        let hedge = |session: &mut Session, now| match session.hedge(&context, true, now) {
            Hedge::Launch(launch) => launch,
            other => panic!("a hedge was expected, not {other:?}"),
        };
        let second = hedge(&mut session, at(50));
        let third = hedge(&mut session, at(100));
        assert_eq!(lender.out(), 3);
        match ending {
            "first" => session.succeeded(&context, first.id, Used::Unsaid, None),
            "hedge" => session.succeeded(&context, third.id, Used::Unsaid, Some(at(110))),
            "permanent" => {
                stopped(session.failed(&context, second.id, Verdict::Permanent.into(), at(110)));
            }
            "expired" => {
                session.shorten(&context, at(5_000));
                waits(session.expired(&context, first.id, Failure::timed_out(), at(2_000)));
                assert_eq!(lender.out(), 2);
                session.abandon(&context, Used::Unsaid, Some(at(2_010)));
            }
            "abandoned" => _ = session.abandon(&context, Used::Unsaid, Some(at(1_000))),
            "all but one" => {
                waits(session.failed(&context, first.id, transient(), at(110)));
                waits(session.failed(&context, third.id, transient(), at(120)));
                assert_eq!(lender.out(), 1);
                session.succeeded(&context, second.id, Used::Unsaid, Some(at(130)));
            }
            _ => {
                for (n, launch) in [first, second, third].into_iter().enumerate() {
                    waits(session.failed(&context, launch.id, transient(), at(110)));
                    assert_eq!(lender.out(), 2 - n);
                }
                let retry = launched(session.due(&context, at(210)));
                assert_eq!(lender.out(), 1);
                session.succeeded(&context, retry.id, Used::Unsaid, None);
            }
        }
        assert_eq!(lender.out(), 0, "{ending}");
    }
}

#[test]
fn a_free_repeat_of_a_probe_is_a_probe() {
    let (rig, breaker) = open(Policy::builder());
    let (mut session, probe) = rig.begun(at(1_000));
    let again = launched(session.failed(
        &rig.context(),
        probe.id,
        Failure::new(Verdict::Unprocessed).free().health(Health::Unknown),
        at(1_001),
    ));
    assert_eq!((breaker.state(), has_a_probe(&breaker, at(1_001))), (BreakerState::HalfOpen, false));
    session.succeeded(&rig.context(), again.id, Used::Unsaid, Some(at(1_002)));
    assert_eq!(breaker.state(), BreakerState::Closed);
}
