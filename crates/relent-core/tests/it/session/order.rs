//! After a failure everyone is asked in one order, the first "no" is the answer, and a refusal takes nothing.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use StopReason::{
    AttemptsExhausted, BreakerOpen, BudgetExhausted, CreditExhausted, DeadlineExceeded, DeadlineTooClose,
    HintTooLong, NotReplayable, NotRetryable, StoppedByPeer, TooManyWaiting, UnsafeToRepeat,
};
use relent_core::{
    Budget, Cause, Failure, Hint, Instant, Policy, Repeat, RetryOn, Session, Step, StopReason, StopScope,
    Verdict,
};

use super::spy::{SpyBreaker, SpyBudget};
use crate::rig::{Rig, at, launched, millis, secs, stopped, waits};

/// The order that the specification gives; the call's own end comes before all questions.
const ORDER: [StopReason; 12] = [
    DeadlineExceeded,
    NotRetryable,
    StoppedByPeer,
    UnsafeToRepeat,
    NotReplayable,
    AttemptsExhausted,
    CreditExhausted,
    HintTooLong,
    DeadlineTooClose,
    TooManyWaiting,
    BreakerOpen,
    BudgetExhausted,
];

const GRANTED: u32 = 5;
const TOKENS: u32 = 7;

/// A call whose first attempt fails so that each of these reasons holds, and what it left behind.
struct Asked {
    step: Step,
    waiting: u32,
    credit: u32,
    tokens: u64,
    withdrawals: usize,
}

fn ask(reasons: &[StopReason]) -> Asked {
    let holds = |reason| reasons.contains(&reason);
    let mut rig = Rig::new(policy(&holds));
    let budget = SpyBudget::with(if holds(BudgetExhausted) { 0 } else { TOKENS });
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    rig.breaker = Some(SpyBreaker::answering(true, !holds(BreakerOpen)));
    let credit = Cell::new(if holds(CreditExhausted) { 0 } else { GRANTED });
    let repeat = if holds(UnsafeToRepeat) { Repeat::No } else { Repeat::Yes };

    let failed_at = at(200);
    let deadline = match (holds(DeadlineExceeded), holds(DeadlineTooClose)) {
        (true, _) => failed_at,
        // 100 ms of backoff and 1 ms for the attempt: equality does not fit.
        (_, true) => failed_at + millis(101),
        _ => Instant::NEVER,
    };
    let mut session = Session::new(&rig.policy, repeat, deadline, at(0));
    let launch = launched(session.begin(&rig.context_under(&credit), at(0)));
    let step = session.failed(&rig.context_under(&credit), launch.id, failure(&holds), failed_at);
    Asked {
        step,
        waiting: rig.waiting.waiting(),
        credit: credit.get(),
        tokens: budget.balance(failed_at),
        withdrawals: budget.seen().asked.len(),
    }
}

fn policy(holds: &dyn Fn(StopReason) -> bool) -> Policy {
    let retry_on = RetryOn::nothing().status(if holds(NotRetryable) { 503 } else { 500 }).unwrap();
    Policy::constant(millis(100))
        .attempts(if holds(AttemptsExhausted) { 1 } else { 3 })
        .max_waiting(if holds(TooManyWaiting) { 0 } else { 10 })
        .retry_on(retry_on)
        .build()
        .unwrap()
}

fn failure(holds: &dyn Fn(StopReason) -> bool) -> Failure {
    let mut failure = Failure::new(Verdict::Transient).cause(Cause::Status(500));
    if holds(StoppedByPeer) {
        failure = failure.stop(StopScope::Host);
    }
    if holds(NotReplayable) {
        failure = failure.not_replayable();
    }
    if holds(HintTooLong) {
        failure = failure.hint(Hint::at_least(Duration::from_millis(30_001)));
    }
    failure
}

#[test]
fn of_two_reasons_the_earlier_one_is_named() {
    for (i, first) in ORDER.into_iter().enumerate() {
        for second in ORDER.into_iter().skip(i + 1) {
            let stop = stopped(ask(&[first, second]).step);
            assert_eq!(stop.reason, first, "{} before {}", first.name(), second.name());
        }
    }
}

#[test]
fn of_all_reasons_from_one_on_that_one_is_named() {
    for (i, first) in ORDER.into_iter().enumerate() {
        assert_eq!(stopped(ask(&ORDER[i..]).step).reason, first);
    }
}

#[test]
fn a_refusal_takes_nothing() {
    for reason in ORDER {
        let asked = ask(&[reason]);
        let stop = stopped(asked.step);
        assert_eq!((stop.reason, stop.attempts), (reason, 1));
        assert_eq!(asked.waiting, 0, "{}", reason.name());
        assert_eq!(asked.credit, if reason == CreditExhausted { 0 } else { GRANTED }, "{}", reason.name());
        let (tokens, withdrawals) = if reason == BudgetExhausted { (0, 1) } else { (u64::from(TOKENS), 0) };
        assert_eq!((asked.tokens, asked.withdrawals), (tokens, withdrawals), "{}", reason.name());
    }
}

#[test]
fn without_any_reason_the_call_waits_and_holds_what_it_needs() {
    let asked = ask(&[]);
    assert_eq!(waits(asked.step), at(300));
    assert_eq!((asked.waiting, asked.tokens, asked.withdrawals), (1, u64::from(TOKENS) - 1, 1));
    assert_eq!(asked.credit, GRANTED - 1);
}

#[test]
fn before_the_first_attempt_the_deadline_is_asked_then_the_breaker() {
    for (deadline, admits, expected) in [
        (at(0), false, Some(DeadlineExceeded)),
        (at(0), true, Some(DeadlineExceeded)),
        (at(9), false, Some(BreakerOpen)),
        (at(9), true, None),
    ] {
        let mut rig = Rig::new(Policy::default());
        rig.breaker = Some(SpyBreaker::answering(admits, true));
        let mut session = Session::new(&rig.policy, Repeat::Yes, deadline, at(0));
        let step = session.begin(&rig.context(), at(0));
        match expected {
            Some(reason) => {
                let stop = stopped(step);
                assert_eq!((stop.reason, stop.attempts, stop.ambiguous), (reason, 0, false));
            }
            None => assert_eq!(launched(step).number, 1),
        }
    }
}

#[test]
fn at_the_launch_deadline_and_breaker_are_asked_again_and_all_comes_back() {
    for (late, opens, expected) in [
        (secs(15), true, DeadlineExceeded),
        (secs(15) - millis(1), true, DeadlineTooClose),
        (millis(300), true, BreakerOpen),
    ] {
        let mut rig = Rig::new(policy(&|_| false));
        let (budget, breaker) = (SpyBudget::with(TOKENS), SpyBreaker::answering(true, true));
        rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
        rig.breaker = Some(breaker.clone());
        let credit = Cell::new(GRANTED);
        let context = rig.context_under(&credit);
        let mut session = rig.session(at(0));
        let launch = launched(session.begin(&context, at(0)));
        waits(session.failed(&context, launch.id, failure(&|_| false), at(200)));
        assert_eq!((budget.seen().tokens, rig.waiting.waiting(), credit.get()), (TOKENS - 1, 1, GRANTED - 1));
        if opens {
            breaker.opens();
        }
        let stop = stopped(session.due(&context, at(0) + late));
        assert_eq!((stop.reason, stop.attempts), (expected, 1));
        assert_eq!((budget.seen().tokens, rig.waiting.waiting(), credit.get()), (TOKENS, 0, GRANTED));
        assert_eq!(session.used(), 0);
    }
}

#[test]
fn the_repeat_rule_is_stricter_for_what_may_have_been_executed() {
    let rig = Rig::new(Policy::default());
    for (repeat, verdict, retried) in [
        (Repeat::Yes, Verdict::Transient, true),
        (Repeat::Yes, Verdict::Unprocessed, true),
        (Repeat::UnprocessedOnly, Verdict::Unprocessed, true),
        (Repeat::UnprocessedOnly, Verdict::Transient, false),
        (Repeat::UnprocessedOnly, Verdict::Throttled { hint: None }, false),
        (Repeat::No, Verdict::Unprocessed, false),
        (Repeat::No, Verdict::Transient, false),
    ] {
        let mut session = Session::new(&rig.policy, repeat, Instant::NEVER, at(0));
        let launch = launched(session.begin(&rig.context(), at(0)));
        let step = session.failed(&rig.context(), launch.id, verdict.into(), at(1));
        if retried {
            waits(step);
        } else {
            assert_eq!(stopped(step).reason, UnsafeToRepeat, "{repeat:?}, {verdict:?}");
        }
    }
}

#[test]
fn a56_what_was_refused_locally_is_not_retried_and_costs_nothing() {
    let mut rig = Rig::new(Policy::builder().attempts(5).build().unwrap());
    let (budget, breaker) = (SpyBudget::with(TOKENS), SpyBreaker::answering(true, true));
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    rig.breaker = Some(breaker.clone());
    let (mut session, launch) = rig.begun(at(0));
    let stop = stopped(session.failed(&rig.context(), launch.id, Verdict::Rejected.into(), at(0)));
    assert_eq!((stop.reason, stop.attempts), (NotRetryable, 1));
    assert!(budget.seen().asked.is_empty());
    assert_eq!(
        breaker.records(),
        [relent_core::Health::Unknown],
        "a local refusal says nothing about the target"
    );

    breaker.opens();
    let stop = stopped(rig.session(at(1)).begin(&rig.context(), at(1)));
    assert_eq!((stop.reason, stop.attempts), (BreakerOpen, 0), "nothing is run, and nobody waits");
    assert_eq!(budget.seen().started, 1, "a call that never started deposits nothing");
}
