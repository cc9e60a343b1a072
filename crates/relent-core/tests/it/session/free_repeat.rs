//! What provably reached nobody is repeated at once and for nothing: once per call, within a rate.

use std::cell::Cell;
use std::sync::Arc;

use relent_core::{
    Budget, Cause, Failure, FreeRepeats, Hint, Instant, Policy, Repeat, RetryOn, Session, Step, StopReason,
    StopScope, Verdict,
};

use super::spy::{SpyBreaker, SpyBudget};
use crate::rig::{Rig, at, launched, millis, secs, stopped, waits};

const STALE: Failure = Failure::new(Verdict::Unprocessed).free();

#[test]
fn p59_it_asks_neither_attempts_nor_credit_nor_deadline_nor_room_nor_breaker_nor_budget() {
    let policy = Policy::constant(secs(1)).attempts(1).max_waiting(0).build().unwrap();
    let mut rig = Rig::new(policy);
    let budget = SpyBudget::with(0);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    rig.breaker = Some(SpyBreaker::answering(true, false));
    let credit = Cell::new(0);
    for repeat in [Repeat::Yes, Repeat::UnprocessedOnly, Repeat::No] {
        let context = rig.context_under(&credit);
        let mut session = Session::new(&rig.policy, repeat, at(100), at(0));
        let first = launched(session.begin(&context, at(0)));
        let failure = STALE.hint(Hint::at_least(secs(3_600)));
        let second = launched(session.failed(&context, first.id, failure, at(99)));
        assert_eq!((second.number, second.time), (2, Some(millis(1))), "{repeat:?}: numbered, and bounded");
        assert_eq!(session.used(), 0, "it is no extra attempt");
        let stop = stopped(session.failed(&context, second.id, Verdict::Transient.into(), at(99)));
        assert_eq!(stop.attempts, 2);
    }
    assert!(budget.seen().asked.is_empty());
    assert_eq!((credit.get(), rig.waiting.waiting()), (0, 0));
}

#[test]
fn it_leaves_the_calls_own_attempts_whole() {
    let mut rig = Rig::new(Policy::constant(millis(10)).attempts(3).build().unwrap());
    let budget = SpyBudget::with(9);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    let (mut session, first) = rig.begun(at(0));
    let mut launch = launched(session.failed(&rig.context(), first.id, STALE, at(0)));
    let mut now = at(0);
    for number in [3, 4] {
        now = waits(session.failed(&rig.context(), launch.id, Verdict::Transient.into(), now));
        launch = launched(session.due(&rig.context(), now));
        assert_eq!(launch.number, number);
    }
    session.succeeded(&rig.context(), launch.id, relent_core::Used::Unsaid, Some(now));
    assert_eq!(budget.seen().succeeded, [3], "the budget hears of three attempts");
    assert_eq!(session.launched(), 4);
}

#[test]
fn a67_once_per_call_then_it_is_an_ordinary_retry() {
    let rig = Rig::new(Policy::constant(millis(10)).attempts(3).build().unwrap());
    let (mut session, mut launch) = rig.begun(at(0));
    let (mut now, mut waits) = (at(0), 0);
    let stop = loop {
        match session.failed(&rig.context(), launch.id, STALE, now) {
            Step::Launch(next) => launch = next,
            Step::Wait { until } => {
                waits += 1;
                now = until;
                launch = launched(session.due(&rig.context(), now));
            }
            Step::Stop(stop) => break stop,
        }
    };
    assert_eq!((stop.reason, stop.attempts, waits), (StopReason::AttemptsExhausted, 4, 2));
}

#[test]
fn a_second_free_failure_of_what_must_not_be_repeated_ends_the_call() {
    let rig = Rig::new(Policy::default());
    let mut session = Session::new(&rig.policy, Repeat::No, Instant::NEVER, at(0));
    let first = launched(session.begin(&rig.context(), at(0)));
    let second = launched(session.failed(&rig.context(), first.id, STALE, at(0)));
    let stop = stopped(session.failed(&rig.context(), second.id, STALE, at(0)));
    assert_eq!((stop.reason, stop.attempts), (StopReason::UnsafeToRepeat, 2));
}

#[test]
fn over_the_rate_it_is_an_ordinary_retry() {
    let mut rig = Rig::new(Policy::constant(millis(10)).build().unwrap());
    rig.free_repeats = FreeRepeats::new(10, 2);
    let free_at = |ms: u64| {
        let (mut session, launch) = rig.begun(at(0));
        matches!(session.failed(&rig.context(), launch.id, STALE, at(ms)), Step::Launch(_))
    };
    let granted: Vec<bool> = [0, 0, 0, 99, 100, 100, 199, 200, 5_000, 5_000, 5_000].map(free_at).into();
    assert_eq!(granted, [true, true, false, false, true, false, false, true, true, true, false]);
}

#[test]
fn the_rate_is_a_hundred_at_once_and_ten_a_second_by_default() {
    let rig = Rig::new(Policy::constant(millis(10)).no_budget().build().unwrap());
    let free_until = |ms: u64| {
        let mut granted = 0;
        for _ in 0..200 {
            let (mut session, launch) = rig.begun(at(0));
            let step = session.failed(&rig.context(), launch.id, STALE, at(ms));
            granted += u32::from(matches!(step, Step::Launch(_)));
        }
        granted
    };
    assert_eq!([free_until(0), free_until(1_000), free_until(3_000)], [100, 10, 20]);
}

#[test]
fn the_questions_before_the_fifth_still_hold() {
    let rig = Rig::new(Policy::builder().retry_on(RetryOn::nothing().status(503).unwrap()).build().unwrap());
    for (failure, now, expected) in [
        (STALE.stop(StopScope::Service), at(1), StopReason::StoppedByPeer),
        (STALE.not_replayable(), at(1), StopReason::NotReplayable),
        (STALE, at(15_000), StopReason::DeadlineExceeded),
        (Failure::new(Verdict::Permanent).free(), at(1), StopReason::NotRetryable),
    ] {
        let (mut session, launch) = rig.begun(at(0));
        assert_eq!(stopped(session.failed(&rig.context(), launch.id, failure, now)).reason, expected);
    }
    // No entry is needed, though only 503 is retried here.
    let (mut session, launch) = rig.begun(at(0));
    launched(session.failed(&rig.context(), launch.id, STALE, at(1)));
}

#[test]
fn a_refused_connection_pays_like_any_other_retry() {
    let mut rig = Rig::new(Policy::constant(millis(10)).build().unwrap());
    let budget = SpyBudget::with(1);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    let (mut session, launch) = rig.begun(at(0));
    let refused = Failure::new(Verdict::Unprocessed).cause(Cause::Connect);
    let until = waits(session.failed(&rig.context(), launch.id, refused, at(1)));
    assert_eq!((until, budget.seen().tokens), (at(11), 0));
}
