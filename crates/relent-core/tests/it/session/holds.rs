//! A server that says how long it is busy is left alone by all retries, and only by these.

use relent_core::{
    Cause, Failure, Hint, Hold, Holds, Instant, Policy, Session, StopReason, Verdict, WaitOrigin,
};

use crate::rig::{Rig, at, launched, millis, secs, stopped, waits};

fn policy(hold: Hold) -> Policy {
    Policy::constant(millis(100))
        .attempts(3)
        .attempt_timeout(secs(5))
        .deadline(secs(60))
        .max_hint(secs(20))
        .no_budget()
        .hold(hold)
        .build()
        .expect("the policy is good")
}

fn busy(wait: u64) -> Failure {
    Failure::new(Verdict::Transient).cause(Cause::Status(503)).hint(Hint::at_least(secs(wait)))
}

fn throttled(wait: u64) -> Failure {
    let hint = Some(Hint::at_least(secs(wait)));
    Failure::new(Verdict::Throttled { hint }).cause(Cause::Status(429))
}

fn plain() -> Failure {
    Verdict::Transient.into()
}

/// When another call's retry starts, its first attempt having failed at `now` without any hint.
fn others_retry(rig: &Rig, now: Instant) -> Instant {
    let (mut session, first) = rig.begun(now);
    waits(session.failed(&rig.context(), first.id, plain(), now))
}

#[test]
fn the_hint_of_a_503_holds_the_retries_of_every_call() {
    let rig = Rig::new(policy(Hold::Call));
    let (mut session, first) = rig.begun(at(0));
    waits(session.failed(&rig.context(), first.id, busy(4), at(0)));
    let until = others_retry(&rig, at(1000));
    assert!(until >= at(4000) && until <= at(5500), "{until:?}: what is left, and half of it as spread");
    assert_eq!(others_retry(&rig, at(4000)), at(4100), "the hold is over");
}

#[test]
fn first_tries_always_go() {
    let rig = Rig::new(policy(Hold::Target));
    rig.hold.hold(at(9000));
    let (session, first) = rig.begun(at(0));
    assert_eq!((first.number, session.launched()), (1, 1));
}

#[test]
fn the_hint_of_a_429_holds_its_own_call_unless_the_policy_says_otherwise() {
    for (hold, held) in [(Hold::Call, false), (Hold::Target, true)] {
        let rig = Rig::new(policy(hold));
        let (mut session, first) = rig.begun(at(0));
        assert!(waits(session.failed(&rig.context(), first.id, throttled(4), at(0))) >= at(4000));
        assert_eq!(others_retry(&rig, at(0)) >= at(4000), held, "{hold:?}");
    }
}

#[test]
fn a_hint_over_the_ceiling_holds_nobody() {
    let rig = Rig::new(policy(Hold::Target));
    let (mut session, first) = rig.begun(at(0));
    let stop = stopped(session.failed(&rig.context(), first.id, busy(21), at(0)));
    assert_eq!(stop.reason, StopReason::HintTooLong);
    assert_eq!(others_retry(&rig, at(0)), at(100));
}

#[test]
fn exact_pushback_is_the_calls_own() {
    let rig = Rig::new(policy(Hold::Target));
    let (mut session, first) = rig.begun(at(0));
    let pushback = plain().cause(Cause::Status(503)).hint(Hint::exactly(secs(4)));
    assert_eq!(waits(session.failed(&rig.context(), first.id, pushback, at(0))), at(4000));
    assert_eq!(others_retry(&rig, at(0)), at(100));
}

#[test]
fn a_hold_that_comes_during_the_wait_is_heeded_at_the_launch() {
    let rig = Rig::new(policy(Hold::Call));
    let (mut session, first) = rig.begun(at(0));
    assert_eq!(waits(session.failed(&rig.context(), first.id, plain(), at(0))), at(100));
    rig.hold.hold(at(2000));
    let until = waits(session.due(&rig.context(), at(100)));
    assert!(until >= at(2000) && until <= at(2950), "{until:?}");
    assert_eq!(session.wait_origin(), Some(WaitOrigin::Server));
    assert_eq!(rig.waiting.waiting(), 1, "it still has its seat");
    assert_eq!(launched(session.due(&rig.context(), until)).number, 2);
    assert_eq!(rig.waiting.waiting(), 0);
}

#[test]
fn a_hold_that_does_not_fit_before_the_deadline_ends_the_call_and_returns_its_token() {
    let mut rig = Rig::new(
        policy(Hold::Call)
            .rebuild()
            .budget(relent_core::RatioConfig::new(relent_core::Ratio::percent(10)))
            .build()
            .expect("the policy is good"),
    );
    rig.budget = rig.policy.budget().map(|config| crate::rig::budget_of(config, 3));
    let budget = rig.budget.clone().expect("it has one");
    let full = budget.balance(at(0));
    let mut session = Session::new(&rig.policy, relent_core::Repeat::Yes, at(1000), at(0));
    let first = launched(session.begin(&rig.context(), at(0)));
    waits(session.failed(&rig.context(), first.id, plain(), at(0)));
    assert_eq!(budget.balance(at(0)), full - 1);
    rig.hold.hold(at(2000));
    let stop = stopped(session.due(&rig.context(), at(100)));
    assert_eq!((stop.reason, stop.attempts), (StopReason::DeadlineTooClose, 1));
    assert_eq!((budget.balance(at(100)), rig.waiting.waiting()), (full, 0));
}

#[test]
fn a_call_is_not_held_back_for_ever() {
    let rig = Rig::new(policy(Hold::Call).rebuild().no_deadline().build().expect("the policy is good"));
    let (mut session, first) = rig.begun(at(0));
    let mut until = waits(session.failed(&rig.context(), first.id, plain(), at(0)));
    for _ in 0..1000 {
        rig.hold.hold(until + secs(1));
        match session.due(&rig.context(), until) {
            relent_core::Step::Wait { until: later } => until = later,
            step => {
                assert_eq!(stopped(step).reason, StopReason::HintTooLong);
                assert!(until <= at(22_000), "{until:?}");
                return;
            }
        }
    }
    panic!("it waits on and on");
}
