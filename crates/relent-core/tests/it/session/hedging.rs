//! Hedged calls: several attempts in flight, one answer.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use relent_core::{
    Budget, Credit, Failure, Health, Hedge, HedgeConfig, Hint, Instant, Latencies, Launch, NoCredit, Policy,
    Ratio, Repeat, Session, StopReason, StopScope, TokenClass, Used, Verdict,
};

use super::spy::{SpyBreaker, SpyBudget};
use crate::rig::{Rig, at, launched, millis, secs, stopped, waits};

fn policy(hedges: u32) -> Policy {
    Policy::constant(millis(100))
        .attempts(4)
        .attempt_timeout(secs(2))
        .deadline(secs(10))
        .hedge(HedgeConfig::after(millis(50)).most(hedges))
        .build()
        .expect("the policy is good")
}

fn rig(hedges: u32, tokens: u32) -> (Rig, Arc<SpyBudget>) {
    let mut rig = Rig::new(policy(hedges));
    let budget = SpyBudget::with(tokens);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    (rig, budget)
}

fn hedged(hedge: Hedge) -> Launch {
    match hedge {
        Hedge::Launch(launch) => launch,
        other => panic!("a hedge was expected, not {other:?}"),
    }
}

fn transient() -> Failure {
    Verdict::Transient.into()
}

#[test]
fn a_hedge_is_due_after_its_delay_and_not_before() {
    let (rig, budget) = rig(1, 9);
    let (mut session, first) = rig.begun(at(0));
    assert_eq!(session.alarm(&rig.context(), at(0)), at(50));
    assert_eq!(session.hedge(&rig.context(), true, at(49)), Hedge::NotYet);
    let hedge = hedged(session.hedge(&rig.context(), true, at(50)));
    assert_eq!((first.number, hedge.number, session.in_flight()), (1, 2, 2));
    assert_eq!(hedge.ends, at(2050));
    assert_eq!(session.alarm(&rig.context(), at(50)), first.ends, "no other hedge, so the first end is next");
    assert_eq!(budget.seen().asked, [TokenClass::Hedge]);
}

#[test]
fn whichever_succeeds_first_wins_and_nobody_else_is_blamed_or_paid() {
    for winner in [1, 2] {
        let (mut rig, budget) = rig(1, 9);
        let breaker = SpyBreaker::answering(true, true);
        rig.breaker = Some(Arc::clone(&breaker) as Arc<dyn relent_core::Breaker>);
        let (mut session, first) = rig.begun(at(0));
        let second = hedged(session.hedge(&rig.context(), true, at(50)));
        let id = if winner == 1 { first.id } else { second.id };
        session.succeeded(&rig.context(), id, Used::Unsaid, Some(at(1900)));
        assert!(session.is_over());
        assert_eq!(session.in_flight(), 0);
        let seen = budget.seen();
        assert_eq!((seen.succeeded.len(), seen.failed.len(), seen.given_back), (1, 0, 0));
        assert_eq!(seen.finished, 1, "the hedge's token is spent, whoever won");
        let bad = breaker.records().into_iter().filter(|health| *health == Health::Bad).count();
        assert_eq!(bad, 0, "the loser had run for most of its time, and is not blamed");
    }
}

#[test]
fn an_attempt_that_fails_while_another_runs_ends_nothing() {
    for failing in [1, 2] {
        let (rig, budget) = rig(1, 9);
        let (mut session, first) = rig.begun(at(0));
        let second = hedged(session.hedge(&rig.context(), true, at(50)));
        let (loses, stays) = if failing == 1 { (first, second) } else { (second, first) };
        let next = waits(session.failed(&rig.context(), loses.id, transient(), at(60)));
        assert_eq!(next, stays.ends);
        assert_eq!((session.in_flight(), session.running()), (1, Some(stays.id)));
        // The other one fails too: now a retry is decided, with backoff and a token of its own.
        assert_eq!(waits(session.failed(&rig.context(), stays.id, transient(), at(70))), at(170));
        let retry = launched(session.due(&rig.context(), at(170)));
        assert_eq!((retry.number, session.running()), (3, Some(retry.id)));
        assert_eq!(budget.seen().asked, [TokenClass::Hedge, TokenClass::Transient]);
        session.succeeded(&rig.context(), retry.id, Used::Unsaid, None);
        assert_eq!(budget.seen().succeeded, [3]);
    }
}

#[test]
fn a_failure_that_no_repeat_would_mend_is_the_answer_at_once() {
    let (rig, _) = rig(1, 9);
    let (mut session, first) = rig.begun(at(0));
    let _second = hedged(session.hedge(&rig.context(), true, at(50)));
    let stop = stopped(session.failed(&rig.context(), first.id, Verdict::Permanent.into(), at(60)));
    assert_eq!((stop.reason, stop.attempts), (StopReason::NotRetryable, 2));
    assert_eq!(session.in_flight(), 0);
}

#[test]
fn a47_a_refused_hedge_leaves_the_call_alone() {
    let (rig, _) = rig(2, 0);
    let (mut session, first) = rig.begun(at(0));
    assert_eq!(session.hedge(&rig.context(), true, at(50)), Hedge::Refused(StopReason::BudgetExhausted));
    assert_eq!(session.alarm(&rig.context(), at(50)), first.ends, "it is not asked again and again");
    session.succeeded(&rig.context(), first.id, Used::Unsaid, None);
    assert!(session.is_over());
}

#[test]
fn only_what_may_be_repeated_is_hedged() {
    let (rig, budget) = rig(1, 9);
    for repeat in [Repeat::No, Repeat::UnprocessedOnly] {
        let mut session = Session::new(&rig.policy, repeat, Instant::NEVER, at(0));
        let first = launched(session.begin(&rig.context(), at(0)));
        assert_eq!(session.alarm(&rig.context(), at(0)), first.ends);
        assert_eq!(session.hedge(&rig.context(), true, at(500)), Hedge::NotYet);
    }
    let mut session = rig.session(at(0));
    session.cannot_be_replayed();
    let _first = launched(session.begin(&rig.context(), at(0)));
    assert_eq!(session.hedge(&rig.context(), true, at(50)), Hedge::Refused(StopReason::NotReplayable));
    assert_eq!(budget.seen().asked, []);
}

#[test]
fn everybody_is_asked_before_a_hedge_and_the_first_no_is_the_reason() {
    let refusal = |change: &dyn Fn(&mut Rig), deadline: Instant, left: Option<u32>| {
        let (mut rig, _) = rig(1, 9);
        change(&mut rig);
        let credit = left.map(Cell::new);
        let mut session = Session::new(&rig.policy, Repeat::Yes, deadline, at(0));
        let context = match &credit {
            Some(credit) => rig.context_under(credit as &dyn Credit),
            None => rig.context_under(&NoCredit as &dyn Credit),
        };
        let _first = launched(session.begin(&context, at(0)));
        match session.hedge(&context, true, at(50)) {
            Hedge::Refused(reason) => Some(reason),
            _ => None,
        }
    };
    let never = Instant::NEVER;
    assert_eq!(refusal(&|_| {}, never, None), None);
    assert_eq!(refusal(&|_| {}, never, Some(1)), None);
    assert_eq!(refusal(&|_| {}, never, Some(0)), Some(StopReason::CreditExhausted));
    assert_eq!(refusal(&|_| {}, at(51), None), Some(StopReason::DeadlineTooClose));
    let closed = |rig: &mut Rig| rig.breaker = Some(SpyBreaker::answering(true, false));
    assert_eq!(refusal(&closed, never, None), Some(StopReason::BreakerOpen));
    let held = |rig: &mut Rig| relent_core::Holds::hold(&rig.hold, at(60));
    assert_eq!(refusal(&held, never, None), Some(StopReason::HintTooLong));
}

#[test]
fn a_peer_that_asks_for_a_pause_or_a_stop_gets_no_hedge() {
    let asks = [transient().hint(Hint::at_least(secs(1))), transient().stop(StopScope::Host)];
    for failure in asks {
        let (rig, budget) = rig(2, 9);
        let (mut session, first) = rig.begun(at(0));
        let second = hedged(session.hedge(&rig.context(), true, at(50)));
        waits(session.failed(&rig.context(), second.id, failure, at(60)));
        assert_eq!(session.hedge(&rig.context(), true, at(500)), Hedge::NotYet);
        assert_eq!(budget.seen().asked.len(), 1);
        // What was said to one attempt is heeded when the last one has failed.
        let step = session.failed(&rig.context(), first.id, transient(), at(600));
        if failure == asks[1] {
            assert_eq!(stopped(step).reason, StopReason::StoppedByPeer);
        } else {
            assert!(waits(step) >= at(1600));
        }
    }
}

#[test]
fn hedges_and_retries_share_the_attempts() {
    let (rig, _) = rig(3, 99);
    let (mut session, first) = rig.begun(at(0));
    let mut ids = vec![first.id];
    for n in 1..=3 {
        ids.push(hedged(session.hedge(&rig.context(), true, at(50 * n))).id);
    }
    assert_eq!(session.hedge(&rig.context(), true, at(1000)), Hedge::NotYet);
    let last = ids.pop().expect("four attempts");
    for id in ids {
        waits(session.failed(&rig.context(), id, transient(), at(1000)));
    }
    let stop = stopped(session.failed(&rig.context(), last, transient(), at(1000)));
    assert_eq!((stop.reason, stop.attempts), (StopReason::AttemptsExhausted, 4));
}

#[test]
fn each_attempt_has_its_own_time() {
    let (rig, _) = rig(1, 9);
    let (mut session, first) = rig.begun(at(0));
    let second = hedged(session.hedge(&rig.context(), true, at(50)));
    assert_eq!(session.overdue(at(1999)), None);
    assert_eq!(session.overdue(at(2000)), Some(first.id));
    waits(session.expired(&rig.context(), first.id, Failure::timed_out(), at(2000)));
    assert!(session.is_ambiguous());
    assert_eq!(session.overdue(at(2049)), None);
    assert_eq!(session.overdue(at(2050)), Some(second.id));
    let until = waits(session.expired(&rig.context(), second.id, Failure::timed_out(), at(2050)));
    assert_eq!(until, at(2150));
}

#[test]
fn the_deadline_ends_all_of_them() {
    let (rig, budget) = rig(1, 9);
    let mut session = Session::new(&rig.policy, Repeat::Yes, at(500), at(0));
    let first = launched(session.begin(&rig.context(), at(0)));
    let _second = hedged(session.hedge(&rig.context(), true, at(50)));
    assert_eq!(session.overdue(at(500)).map(|id| id.get()), Some(2));
    let stop = stopped(session.expired(&rig.context(), first.id, Failure::timed_out(), at(500)));
    assert_eq!((stop.reason, stop.attempts, stop.ambiguous), (StopReason::DeadlineExceeded, 2, true));
    assert_eq!((session.in_flight(), budget.seen().finished), (0, 1));
}

#[test]
fn a_hedged_call_that_is_given_up_holds_nothing() {
    let (rig, budget) = rig(2, 9);
    let credit = Cell::new(3);
    let context = rig.context_under(&credit);
    let mut session = rig.session(at(0));
    let _first = launched(session.begin(&context, at(0)));
    let _second = hedged(session.hedge(&context, true, at(50)));
    let _third = hedged(session.hedge(&context, true, at(100)));
    let stop = session.abandon(&context, Used::Unsaid, Some(at(110)));
    assert_eq!((stop.reason, stop.attempts, stop.ambiguous), (StopReason::Cancelled, 3, true));
    assert_eq!((budget.seen().finished, budget.seen().given_back), (2, 0));
    assert_eq!(credit.get(), 1, "two hedges were made and are spent");
}

#[test]
fn what_may_go_to_hedges_is_not_told_to_the_layers_below() {
    let left = |hedges: u32| {
        let (rig, _) = rig(hedges, 9);
        let (mut session, first) = rig.begun(at(0));
        let hedge = hedged(session.hedge(&rig.context(), true, at(50)));
        (first.left, hedge.left)
    };
    assert_eq!(left(1), (Some(1), Some(0)));
    assert_eq!(left(2), (Some(0), Some(0)));
    assert_eq!(left(3), (Some(0), Some(0)));
}

#[test]
fn a_hedge_counts_as_one_used() {
    let (rig, _) = rig(1, 9);
    let credit = Cell::new(5);
    let context = rig.context_under(&credit);
    let mut session = rig.session(at(0));
    let first = launched(session.begin(&context, at(0)));
    let second = hedged(session.hedge(&context, true, at(50)));
    waits(session.failed(&context, second.id, transient(), at(60)));
    let stop = stopped(session.failed(&context, first.id, Verdict::Permanent.into(), at(70)));
    assert_eq!((stop.attempts, session.used(), credit.get()), (2, 1, 4));
}

#[test]
fn credit_comes_back_from_a_hedged_call_that_succeeds() {
    let (rig, _) = rig(2, 9);
    let credit = Cell::new(5);
    let context = rig.context_under(&credit);
    let mut session = rig.session(at(0));
    let first = launched(session.begin(&context, at(0)));
    let _second = hedged(session.hedge(&context, true, at(50)));
    session.succeeded(&context, first.id, Used::Unsaid, None);
    assert_eq!(credit.get(), 5);
}

#[test]
fn a_measured_delay_follows_the_attempts_and_waits_for_enough_of_them() {
    let tail = HedgeConfig::at_quantile(Ratio::percent(90)).least(millis(5));
    let mut rig = Rig::new(Policy::builder().hedge(tail).no_budget().build().expect("the policy is good"));
    rig.latencies = Some(Latencies::new(at(0)));
    let delay = |rig: &Rig, now: Instant| -> Option<Duration> {
        let (session, first) = rig.begun(now);
        let alarm = session.alarm(&rig.context(), now);
        (alarm < first.ends).then(|| alarm.since(now))
    };
    assert_eq!(delay(&rig, at(0)), None, "nothing is measured yet");
    for _ in 0..100 {
        let (mut session, first) = rig.begun(at(0));
        session.succeeded(&rig.context(), first.id, Used::Unsaid, Some(at(80)));
    }
    let measured = delay(&rig, at(100)).expect("a hundred are enough");
    assert!(measured >= millis(80) && measured <= millis(90), "{measured:?}");
    rig.latencies = Some(Latencies::new(at(0)));
    for _ in 0..100 {
        let (mut session, first) = rig.begun(at(0));
        session.succeeded(&rig.context(), first.id, Used::Unsaid, Some(at(0)));
    }
    assert_eq!(delay(&rig, at(100)), Some(millis(5)), "never under the least");
}
