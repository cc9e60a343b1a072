//! One layer's account: what it tells, what it may still do itself, and what it answers.

use std::cell::Cell;

use relent_core::{Failure, Instant, Nested, Policy, Repeat, Session, StopReason, Used, Verdict};

use crate::rig::{Rig, at, launched, millis, stopped, waits};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

fn rig(attempts: u32, nested: Nested) -> Rig {
    Rig::new(Policy::constant(millis(1)).attempts(attempts).nested(nested).no_budget().build().unwrap())
}

/// What each attempt of a call that keeps failing is told, when the layers below say nothing.
fn told(rig: &Rig, repeat: Repeat, granted: Option<u32>) -> (Vec<Option<u32>>, StopReason) {
    let cell = Cell::new(granted.unwrap_or(0));
    let credit: &dyn relent_core::Credit = if granted.is_some() { &cell } else { &relent_core::NoCredit };
    let context = rig.context_under(credit);
    let mut session = Session::new(&rig.policy, repeat, Instant::NEVER, at(0));
    let mut launch = launched(session.begin(&context, at(0)));
    let mut told = vec![launch.left];
    loop {
        match session.failed(&context, launch.id, TRANSIENT, at(0)) {
            relent_core::Step::Stop(stop) => return (told, stop.reason),
            step => launch = launched(session.due(&context, waits(step))),
        }
        told.push(launch.left);
    }
}

#[test]
fn a_layer_that_can_retry_tells_what_it_can_make_and_keeps_one_back() {
    for (attempts, granted, expected, reason) in [
        (3, None, vec![Some(1), Some(0), Some(0)], StopReason::AttemptsExhausted),
        (5, None, vec![Some(3), Some(2), Some(1), Some(0), Some(0)], StopReason::AttemptsExhausted),
        (2, None, vec![Some(0), Some(0)], StopReason::AttemptsExhausted),
        (1, None, vec![None], StopReason::AttemptsExhausted),
        (5, Some(2), vec![Some(1), Some(0), Some(0)], StopReason::CreditExhausted),
        (3, Some(2), vec![Some(1), Some(0), Some(0)], StopReason::AttemptsExhausted),
        (3, Some(9), vec![Some(1), Some(0), Some(0)], StopReason::AttemptsExhausted),
        (3, Some(0), vec![Some(0)], StopReason::CreditExhausted),
    ] {
        let what = format!("{attempts} attempts, granted {granted:?}");
        assert_eq!(told(&rig(attempts, Nested::Credit), Repeat::Yes, granted), (expected, reason), "{what}");
    }
}

#[test]
fn a_layer_that_cant_retry_hands_on_what_it_received() {
    for granted in [None, Some(0), Some(7)] {
        let three = rig(3, Nested::Credit);
        for repeat in [Repeat::No, Repeat::UnprocessedOnly] {
            assert_eq!(told(&three, repeat, granted), (vec![granted], StopReason::UnsafeToRepeat));
        }
        let (told, reason) = told(&rig(1, Nested::Credit), Repeat::Yes, granted);
        assert_eq!((told, reason), (vec![granted], StopReason::AttemptsExhausted));

        let cell = Cell::new(granted.unwrap_or(0));
        let credit: &dyn relent_core::Credit = if granted.is_some() { &cell } else { &relent_core::NoCredit };
        let mut session = three.session(at(0));
        session.cannot_be_replayed();
        let launch = launched(session.begin(&three.context_under(credit), at(0)));
        assert_eq!(launch.left, granted, "a body that is not kept");
    }
}

#[test]
fn pass_through_keeps_all_retries_here_and_allow_says_nothing() {
    for granted in [None, Some(7)] {
        let (told_below, _) = told(&rig(3, Nested::PassThrough), Repeat::Yes, granted);
        assert_eq!(told_below, [Some(0); 3]);
        let (told_below, _) = told(&rig(3, Nested::Allow), Repeat::Yes, granted);
        assert_eq!(told_below, [None; 3]);
    }
    // Either still keeps to what it was granted itself.
    for nested in [Nested::PassThrough, Nested::Allow] {
        let (told_below, reason) = told(&rig(3, nested), Repeat::Yes, Some(1));
        assert_eq!((told_below.len(), reason), (2, StopReason::CreditExhausted));
    }
}

#[test]
fn a_narrowed_call_is_one_that_cant_retry() {
    let three = rig(3, Nested::Credit);
    let cell = Cell::new(7);
    let mut session = three.session(at(0));
    session.narrow(Repeat::UnprocessedOnly);
    assert_eq!(launched(session.begin(&three.context_under(&cell), at(0))).left, Some(7));
    assert_eq!(cell.get(), 0, "all of it is lent");
}

/// A call of five attempts whose first failed with this report: what it used, and how many launches follow.
fn after(report: Used) -> (u32, u32) {
    let rig = rig(5, Nested::Credit);
    let cell = Cell::new(9);
    let context = rig.context_under(&cell);
    let mut session = rig.session(at(0));
    let mut launch = launched(session.begin(&context, at(0)));
    assert_eq!((launch.left, cell.get()), (Some(3), 6));
    let mut step = session.failed(&context, launch.id, TRANSIENT.used(report), at(0));
    let used = session.used() - 1; // its own retry, which is decided
    let mut launches = 0;
    while !session.is_over() {
        launch = launched(session.due(&context, waits(step)));
        launches += 1;
        step = session.failed(&context, launch.id, TRANSIENT, at(launches.into()));
    }
    let all = session.used();
    assert_eq!(cell.get(), 9 - all, "what was used is gone, what was lent is back");
    let reason = if launches == 4 { StopReason::AttemptsExhausted } else { StopReason::CreditExhausted };
    assert_eq!(stopped(step).reason, reason);
    (used, launches)
}

#[test]
fn what_was_used_below_is_deducted_here() {
    assert_eq!(after(Used::Unsaid), (0, 4));
    assert_eq!(after(Used::Reported(0)), (0, 4));
    assert_eq!(after(Used::Reported(1)), (1, 3));
    assert_eq!(after(Used::Reported(3)), (3, 1));
}

#[test]
fn a_report_is_clamped_to_what_was_told() {
    assert_eq!(after(Used::Reported(4)), (3, 1));
    assert_eq!(after(Used::Reported(u32::MAX)), (3, 1));
}

#[test]
fn a_missing_report_counts_as_all_of_it() {
    assert_eq!(after(Used::Missing), (3, 1), "one attempt of its own is left, for a healthy endpoint");
}

#[test]
fn where_nothing_was_told_nothing_can_have_been_used() {
    let rig = rig(3, Nested::Allow);
    let (mut session, launch) = rig.begun(at(0));
    waits(session.failed(&rig.context(), launch.id, TRANSIENT.used(Used::Reported(9)), at(0)));
    assert_eq!(session.used(), 1, "its own");
}

#[test]
fn all_that_was_told_is_reported_by_a_layer_that_hands_on() {
    let rig = rig(1, Nested::Credit);
    let cell = Cell::new(4);
    let context = rig.context_under(&cell);
    let mut session = rig.session(at(0));
    let launch = launched(session.begin(&context, at(0)));
    stopped(session.failed(&context, launch.id, TRANSIENT.used(Used::Reported(3)), at(0)));
    assert_eq!((session.used(), cell.get()), (3, 1));
}

#[test]
fn a_success_returns_what_it_cost() {
    let rig = rig(5, Nested::Credit);
    let cell = Cell::new(9);
    let context = rig.context_under(&cell);
    let mut session = rig.session(at(0));
    let first = launched(session.begin(&context, at(0)));
    let until = waits(session.failed(&context, first.id, TRANSIENT.used(Used::Reported(2)), at(0)));
    let second = launched(session.due(&context, until));
    session.succeeded(&context, second.id, Used::Reported(0), None);
    assert_eq!((cell.get(), session.used()), (9, 3), "three extra attempts were made, and are told");
}
