//! Late, doubled and misplaced inputs: each answers what stands, and changes nothing.

use std::cell::Cell;
use std::sync::Arc;

use relent_core::{Budget, Failure, Health, Policy, Step, StopReason, Used, Verdict};

use super::spy::{SpyBreaker, SpyBudget};
use crate::rig::{Rig, at, launched, millis, stopped, waits};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

#[test]
fn a53_an_old_attempts_outcome_changes_nothing() {
    let mut rig = Rig::new(Policy::constant(millis(100)).build().unwrap());
    let (budget, breaker) = (SpyBudget::with(9), SpyBreaker::answering(true, true));
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    rig.breaker = Some(breaker.clone());
    let credit = Cell::new(7);
    let context = rig.context_under(&credit);
    let mut session = rig.session(at(0));
    let first = launched(session.begin(&context, at(0)));
    let until = waits(session.failed(&context, first.id, TRANSIENT, at(50)));
    let second = launched(session.due(&context, until));
    let before = (budget.seen(), breaker.records(), credit.get(), session.used(), rig.waiting.waiting());

    let late = TRANSIENT.ambiguous().not_replayable().used(Used::Missing);
    assert_eq!(session.failed(&context, first.id, late, at(200)), Step::Wait { until: second.ends });
    assert_eq!(session.expired(&context, first.id, late, at(9_000)), Step::Wait { until: second.ends });
    session.succeeded(&context, first.id, Used::Reported(1), Some(at(200)));
    assert!(!session.is_over() && !session.is_ambiguous());
    let after = (budget.seen(), breaker.records(), credit.get(), session.used(), rig.waiting.waiting());
    assert_eq!(before, after);

    // The attempt that runs is heard as ever.
    waits(session.failed(&context, second.id, TRANSIENT, at(300)));
}

#[test]
fn a_doubled_outcome_counts_once() {
    let mut rig = Rig::new(Policy::constant(millis(100)).build().unwrap());
    let (budget, breaker) = (SpyBudget::with(9), SpyBreaker::answering(true, true));
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    rig.breaker = Some(breaker.clone());
    let (mut session, launch) = rig.begun(at(0));
    let step = session.failed(&rig.context(), launch.id, TRANSIENT, at(50));
    assert_eq!(session.failed(&rig.context(), launch.id, TRANSIENT, at(60)), step);
    session.succeeded(&rig.context(), launch.id, Used::Unsaid, Some(at(60)));
    assert_eq!((budget.seen().asked.len(), breaker.records()), (1, vec![Health::Bad]));
    assert_eq!(rig.waiting.waiting(), 1);
}

#[test]
fn after_the_end_every_input_answers_the_end() {
    let rig = Rig::new(Policy::builder().attempts(1).build().unwrap());
    let (mut session, launch) = rig.begun(at(0));
    let end = session.failed(&rig.context(), launch.id, TRANSIENT, at(1));
    assert_eq!(stopped(end).reason, StopReason::AttemptsExhausted);
    let context = rig.context();
    assert_eq!(session.failed(&context, launch.id, Verdict::Permanent.into(), at(2)), end);
    assert_eq!(session.expired(&context, launch.id, TRANSIENT, at(99_000)), end);
    assert_eq!(session.due(&context, at(99_000)), end);
    assert_eq!(session.abandon(&context, Used::Unsaid, Some(at(99_000))), stopped(end));
    session.succeeded(&context, launch.id, Used::Unsaid, None);
    assert_eq!(session.due(&context, at(99_000)), end);
}

#[test]
fn after_a_success_too() {
    let rig = Rig::new(Policy::default());
    let (mut session, launch) = rig.begun(at(0));
    session.succeeded(&rig.context(), launch.id, Used::Unsaid, None);
    let stop = stopped(session.failed(&rig.context(), launch.id, TRANSIENT, at(1)));
    assert_eq!((stop.reason, stop.attempts), (StopReason::Succeeded, 1));
    assert_eq!(session.abandon(&rig.context(), Used::Unsaid, None).reason, StopReason::Succeeded);
}

#[test]
fn a_wake_up_that_comes_early_waits_on() {
    let rig = Rig::new(Policy::constant(millis(100)).build().unwrap());
    let (mut session, launch) = rig.begun(at(0));
    assert_eq!(
        session.expired(&rig.context(), launch.id, TRANSIENT, at(4_999)),
        Step::Wait { until: at(5_000) }
    );
    assert_eq!(session.due(&rig.context(), at(1)), Step::Wait { until: at(5_000) }, "an attempt runs");
    let until = waits(session.failed(&rig.context(), launch.id, TRANSIENT, at(50)));
    assert_eq!(session.due(&rig.context(), at(149)), Step::Wait { until });
    assert_eq!(rig.waiting.waiting(), 1);
    assert_eq!(launched(session.due(&rig.context(), at(150))).number, 2);
}
