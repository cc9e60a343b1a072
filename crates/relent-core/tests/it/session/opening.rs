//! The short form of a call's first attempt decides nothing otherwise than a session does.

use std::cell::Cell;
use std::sync::Arc;

use relent_core::{
    Budget, Failure, Health, Hint, Instant, Nested, Opening, Policy, Repeat, Session, Step, StopReason, Used,
    Verdict,
};

use super::spy::{SpyBreaker, SpyBudget};
use crate::rig::{Rig, at, launched, millis, secs};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

/// One call: the answers to its beginning and to each failure, and what is left of the pool.
fn play(policy: &Policy, repeat: Repeat, deadline: Instant, opening: bool) -> (Vec<Step>, u32, u32) {
    let rig = Rig::new(policy.clone());
    let pool = Cell::new(4);
    let context = rig.context_under(&pool);
    let (mut session, mut steps) = if opening {
        match Opening::begin(&context, repeat, deadline, at(10)) {
            Ok(opening) => {
                let first = Step::Launch(opening.launch());
                (opening.into_session(policy, repeat), vec![first])
            }
            Err(reason) => {
                let mut session = Session::new(policy, repeat, deadline, at(10));
                let step = session.begin(&context, at(10));
                assert!(matches!(step, Step::Stop(stop) if stop.reason == reason && stop.attempts == 0));
                return (vec![step], pool.get(), 0);
            }
        }
    } else {
        let mut session = Session::new(policy, repeat, deadline, at(10));
        let step = session.begin(&context, at(10));
        (session, vec![step])
    };
    let mut now = at(10);
    for failure in [
        TRANSIENT.used(Used::Reported(1)),
        Failure::new(Verdict::Unprocessed).free(),
        TRANSIENT.hint(Hint::at_least(millis(500))),
        TRANSIENT.ambiguous(),
        TRANSIENT,
    ] {
        let step = match *steps.last().unwrap() {
            Step::Launch(launch) => session.failed(&context, launch.id, failure, now),
            Step::Wait { until } => {
                now = until;
                session.due(&context, now)
            }
            Step::Stop(_) => break,
        };
        now = now + millis(1);
        steps.push(step);
    }
    session.abandon(&context, Used::Unsaid, Some(now));
    (steps, pool.get(), session.used())
}

#[test]
fn it_goes_on_as_the_session_that_it_turns_into() {
    let policies = [
        Policy::builder(),
        Policy::builder().attempts(1),
        Policy::builder().attempts(6).no_deadline().no_attempt_timeout(),
        Policy::builder().attempts(6).nested(Nested::PassThrough),
        Policy::builder().nested(Nested::Allow).attempt_timeout(millis(3)),
    ];
    for policy in policies.map(|builder| builder.build().unwrap()) {
        for repeat in [Repeat::Yes, Repeat::UnprocessedOnly, Repeat::No] {
            for deadline in [Instant::NEVER, at(15), at(400), at(10), at(0)] {
                let [short, long] = [true, false].map(|opening| play(&policy, repeat, deadline, opening));
                assert_eq!(short, long, "{policy:?}, {repeat:?}, {deadline:?}");
            }
        }
    }
}

#[test]
fn it_refuses_as_a_session_does() {
    let mut rig = Rig::new(Policy::default());
    let budget = SpyBudget::with(0);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    rig.breaker = Some(SpyBreaker::answering(false, true));
    let begin = |deadline| Opening::begin(&rig.context(), Repeat::Yes, deadline, at(10));
    assert_eq!(begin(at(10)).unwrap_err(), StopReason::DeadlineExceeded);
    assert_eq!(begin(at(11)).unwrap_err(), StopReason::BreakerOpen);
    assert_eq!(budget.seen().started, 0);
}

#[test]
fn a_success_returns_the_credit_and_is_told_to_budget_and_breaker() {
    let mut rig = Rig::new(Policy::builder().attempts(5).build().unwrap());
    let (budget, breaker) = (SpyBudget::with(0), SpyBreaker::answering(true, true));
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    rig.breaker = Some(breaker.clone());
    let pool = Cell::new(9);
    let opening = Opening::begin(&rig.context_under(&pool), Repeat::Yes, Instant::NEVER, at(10)).unwrap();
    assert_eq!((opening.left(), pool.get(), budget.seen().started), (Some(3), 6, 1));
    opening.succeeded(&rig.context_under(&pool), None);
    assert_eq!((pool.get(), budget.seen().succeeded, breaker.records()), (9, vec![1], vec![Health::Good]));
}

#[test]
fn moved_to_the_first_reading_of_the_clock_it_has_its_whole_time() {
    let rig = Rig::new(Policy::default());
    let unread = Opening::begin(&rig.context(), Repeat::Yes, Instant::NEVER, Instant::ZERO).unwrap();
    let moved = unread.moved_to(at(7_000));
    assert_eq!((moved.launch().ends, moved.launch().time), (at(12_000), Some(secs(5))));
    let session = moved.into_session(&rig.policy, Repeat::Yes);
    assert_eq!((session.started(), session.deadline()), (at(7_000), at(22_000)));

    let unbounded = Rig::new(Policy::builder().no_deadline().no_attempt_timeout().build().unwrap());
    let unread = Opening::begin(&unbounded.context(), Repeat::Yes, Instant::NEVER, Instant::ZERO).unwrap();
    let moved = unread.moved_to(at(7_000));
    assert_eq!((moved.launch().ends, moved.launch().time), (Instant::NEVER, None));
    assert!(moved.into_session(&unbounded.policy, Repeat::Yes).deadline().is_never());
}

#[test]
fn its_first_attempt_is_numbered_like_any() {
    let rig = Rig::new(Policy::default());
    let opening = Opening::begin(&rig.context(), Repeat::Yes, Instant::NEVER, at(0)).unwrap();
    assert_eq!((opening.launch().number, opening.launch().id.get()), (1, 1));
    let first = opening.launch();
    let mut session = opening.into_session(&rig.policy, Repeat::Yes);
    let until = crate::rig::waits(session.failed(&rig.context(), first.id, TRANSIENT, at(1)));
    assert_eq!(launched(session.due(&rig.context(), until)).number, 2);
}
