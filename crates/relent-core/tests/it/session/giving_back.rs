//! A token is taken at the decision and spent at the launch; a call dropped between the two leaves nothing behind.

use std::cell::Cell;
use std::sync::Arc;

use relent_core::{
    Budget, Cause, Failure, Health, Instant, Opening, Policy, Repeat, RetryOn, Session, Step, StopReason,
    TokenClass, Used, Verdict,
};

use super::spy::SpyBudget;
use crate::rig::{Rig, at, launched, millis, stopped, waits};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

fn spied(tokens: u32) -> (Rig, Arc<SpyBudget>) {
    let mut rig = Rig::new(Policy::constant(millis(100)).attempts(5).build().unwrap());
    let budget = SpyBudget::with(tokens);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    (rig, budget)
}

/// A call that waits for its second attempt.
fn waiting(rig: &Rig, credit: &Cell<u32>) -> Session {
    let mut session = rig.session(at(0));
    let launch = launched(session.begin(&rig.context_under(credit), at(0)));
    waits(session.failed(&rig.context_under(credit), launch.id, TRANSIENT, at(0)));
    session
}

#[test]
fn a52_dropped_in_its_wait_a_call_frees_token_and_seat() {
    let (rig, budget) = spied(3);
    let session = waiting(&rig, &Cell::new(9));
    assert_eq!((budget.seen().tokens, rig.waiting.waiting()), (2, 1));
    drop(session);
    assert_eq!((budget.seen().tokens, budget.seen().given_back, rig.waiting.waiting()), (3, 1, 0));
}

#[test]
fn a52_given_up_in_its_wait_it_returns_the_credit_too() {
    let (rig, budget) = spied(3);
    let credit = Cell::new(9);
    let mut session = waiting(&rig, &credit);
    assert_eq!(credit.get(), 8);
    let stop = session.abandon(&rig.context_under(&credit), Used::Unsaid, Some(at(50)));
    assert_eq!((stop.reason, stop.attempts, stop.ambiguous), (StopReason::Cancelled, 1, false));
    assert_eq!((budget.seen().tokens, rig.waiting.waiting(), credit.get()), (3, 0, 9));
    assert_eq!(session.used(), 0);
}

#[test]
fn once_launched_a_token_is_spent_whatever_becomes_of_the_attempt() {
    let (rig, budget) = spied(3);
    let credit = Cell::new(9);
    let mut session = waiting(&rig, &credit);
    launched(session.due(&rig.context_under(&credit), at(100)));
    assert_eq!((budget.seen().tokens, rig.waiting.waiting()), (2, 0));
    let stop = session.abandon(&rig.context_under(&credit), Used::Unsaid, Some(at(150)));
    assert_eq!((stop.reason, stop.attempts, stop.ambiguous), (StopReason::Cancelled, 2, true));
    assert_eq!(budget.seen().tokens, 2, "a cancelled retry refunds nothing");
    assert_eq!(credit.get(), 8, "what was lent is back, the retry's own is spent");
}

#[test]
fn a_budget_that_counts_concurrency_hears_when_the_attempt_ends() {
    for ending in ["success", "failure", "expiry", "abandon", "drop"] {
        let (rig, budget) = spied(3);
        let mut session = waiting(&rig, &Cell::new(9));
        let launch = launched(session.due(&rig.context(), at(100)));
        assert_eq!(budget.seen().finished, 0);
        match ending {
            "success" => session.succeeded(&rig.context(), launch.id, Used::Unsaid, None),
            "failure" => _ = session.failed(&rig.context(), launch.id, Verdict::Permanent.into(), at(150)),
            "expiry" => _ = session.expired(&rig.context(), launch.id, Failure::timed_out(), launch.ends),
            "abandon" => _ = session.abandon(&rig.context(), Used::Unsaid, None),
            _ => {
                drop(session);
                assert_eq!((budget.seen().finished, budget.seen().ended), (1, 1), "{ending}");
                continue;
            }
        }
        assert_eq!(budget.seen().finished, 1, "{ending}");
        drop(session);
        assert_eq!((budget.seen().finished, budget.seen().ended), (1, 1), "{ending}: once");
        assert_eq!(budget.seen().paid_off, u32::from(ending == "success"), "{ending}");
    }
}

#[test]
fn a_call_is_in_flight_from_its_start_to_its_end_whatever_that_is() {
    let (rig, budget) = spied(3);
    let in_flight = || budget.seen().started - budget.seen().ended;
    let opening = || Opening::begin(&rig.context(), Repeat::Yes, Instant::NEVER, at(0)).unwrap();
    let ends: [(&str, &dyn Fn()); 7] = [
        ("an opening that succeeds", &|| {
            let opening = opening();
            assert_eq!(in_flight(), 1);
            opening.succeeded(&rig.context(), None);
        }),
        ("an opening that is dropped", &|| {
            let opening = opening();
            assert_eq!(in_flight(), 1);
            drop(opening);
        }),
        ("an opening that goes on", &|| {
            let session = opening().into_session(&rig.policy, Repeat::Yes);
            assert_eq!(in_flight(), 1);
            drop(session);
        }),
        ("a call dropped while it waits", &|| {
            let session = waiting(&rig, &Cell::new(9));
            assert_eq!(in_flight(), 1, "also while it waits");
            drop(session);
        }),
        ("a call whose deadline passes", &|| {
            let (mut session, launch) = rig.begun(at(0));
            session.shorten(&rig.context(), at(10));
            session.failed(&rig.context(), launch.id, TRANSIENT, at(20));
            assert!(session.is_over());
            assert_eq!(in_flight(), 0, "its end is its end, not its drop");
        }),
        ("a call refused at its launch", &|| {
            let mut session = waiting(&rig, &Cell::new(9));
            session.shorten(&rig.context(), at(10));
            assert_eq!(in_flight(), 0);
        }),
        ("a call that never began", &|| drop(rig.session(at(0)))),
    ];
    for (end, act) in ends {
        act();
        assert_eq!(in_flight(), 0, "{end}");
    }
    assert_eq!((budget.seen().started, budget.seen().ended), (6, 6));
}

#[test]
fn given_up_before_it_began_or_while_its_first_attempt_runs() {
    let (rig, budget) = spied(3);
    let mut unborn = rig.session(at(0));
    let stop = unborn.abandon(&rig.context(), Used::Unsaid, None);
    assert_eq!((stop.reason, stop.attempts, stop.ambiguous), (StopReason::Cancelled, 0, false));

    let credit = Cell::new(9);
    let mut session = rig.session(at(0));
    let launch = launched(session.begin(&rig.context_under(&credit), at(0)));
    assert_eq!((launch.left, credit.get()), (Some(3), 6));
    let stop = session.abandon(&rig.context_under(&credit), Used::Unsaid, Some(at(1)));
    assert_eq!((stop.attempts, stop.ambiguous, credit.get()), (1, true, 9));
    assert_eq!(budget.seen().tokens, 3);
}

#[test]
fn a46_a_token_is_held_from_the_decision_on() {
    let (rig, budget) = spied(200);
    let mut calls: Vec<_> = (0..1_000).map(|_| rig.begun(at(0))).collect();
    let mut granted = 0;
    for (call, launch) in &mut calls {
        match call.failed(&rig.context(), launch.id, TRANSIENT, at(1)) {
            Step::Wait { .. } => granted += 1,
            step => assert_eq!(stopped(step).reason, StopReason::BudgetExhausted),
        }
    }
    assert_eq!((granted, budget.seen().tokens, rig.waiting.waiting()), (200, 0, 200));
    drop(calls);
    assert_eq!((budget.seen().tokens, rig.waiting.waiting()), (200, 0));
}

#[test]
fn the_budget_hears_what_kind_of_retry_it_pays_for() {
    let (rig, budget) = spied(9);
    for failure in [TRANSIENT, Failure::timed_out(), Verdict::Throttled { hint: None }.into()] {
        let (mut session, launch) = rig.begun(at(0));
        waits(session.failed(&rig.context(), launch.id, failure, at(1)));
    }
    assert_eq!(budget.seen().asked, [TokenClass::Transient, TokenClass::Timeout, TokenClass::Throttled]);
    assert_eq!((budget.seen().started, budget.seen().failed.len()), (3, 3));
}

#[test]
fn a_call_that_ends_in_good_work_of_the_target_deposits_once() {
    let not_found = Failure::new(Verdict::Permanent).cause(Cause::Status(404)).health(Health::Good);
    let conflict = TRANSIENT.cause(Cause::Status(409)).health(Health::Good);
    let retry_on = RetryOn::default().status(409).unwrap();
    for (failures, deposits) in [
        (vec![not_found], vec![1]),
        (vec![conflict, not_found], vec![2]),
        (vec![TRANSIENT, conflict, conflict], vec![3]),
        (vec![not_found.health(Health::Bad)], vec![]),
        (vec![not_found.health(Health::Unknown)], vec![]),
        (vec![conflict, TRANSIENT, TRANSIENT], vec![]),
    ] {
        let policy = Policy::constant(millis(100)).retry_on(retry_on);
        let mut rig = Rig::new(policy.build().unwrap());
        let budget = SpyBudget::with(9);
        rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
        let (mut session, mut launch) = rig.begun(at(0));
        for failure in failures {
            if let Step::Wait { until } = session.failed(&rig.context(), launch.id, failure, at(1)) {
                launch = launched(session.due(&rig.context(), until));
            }
        }
        assert!(session.is_over());
        assert_eq!(budget.seen().succeeded, deposits);
    }
}
