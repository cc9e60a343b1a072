//! Any inputs in any order: bounds hold after each, and at the end nobody holds anything.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use relent_core::{
    AttemptId, Cause, Failure, FreeRepeats, Health, Hint, Instant, Jitter, Nested, Policy, Ratio,
    RatioConfig, Repeat, RetryOn, Session, Step, Stop, StopReason, StopScope, Used, Verdict,
};

use super::spy::Lender;
use crate::rig::{Rig, at, budget_of, millis, secs};

/// What one call of a walk has done so far.
struct Call {
    session: Session,
    repeat: Repeat,
    /// The first attempt and the last.
    first: Option<AttemptId>,
    id: Option<AttemptId>,
    launches: u32,
    /// Launches that a token was spent on.
    paid: u32,
    /// When the present wait ends.
    until: Option<Instant>,
    stop: Option<Stop>,
    succeeded: bool,
}

#[derive(Clone, Debug)]
enum Input {
    Begin(Repeat, Option<u64>),
    /// What is due next for the call: its attempt fails so, or its wait ends.
    Next(usize, Failure),
    Fail(usize, Failure),
    /// The outcome of an attempt long gone.
    Late(usize, Failure),
    Expire(usize),
    Due(usize),
    Succeed(usize),
    Abandon(usize),
    Forth(u64),
    Back(u64),
}

fn failure() -> impl Strategy<Value = Failure> {
    let hint = prop_oneof![
        6 => Just(None),
        1 => (0..40_000_u64).prop_map(|ms| Some(Hint::at_least(millis(ms)))),
        1 => (0..40_000_u64).prop_map(|ms| Some(Hint::exactly(millis(ms)))),
        1 => Just(Some(Hint::at_least(Duration::MAX))),
    ];
    let verdict = prop_oneof![
        8 => Just(Verdict::Transient),
        3 => Just(Verdict::Unprocessed),
        2 => Just(Verdict::Throttled { hint: None }),
        1 => Just(Verdict::Permanent),
        1 => Just(Verdict::Rejected),
    ];
    let cause = prop_oneof![
        Just(Cause::Other),
        Just(Cause::Timeout),
        Just(Cause::Status(503)),
        Just(Cause::Status(500))
    ];
    let health = prop_oneof![Just(Health::Good), Just(Health::Bad), Just(Health::Unknown)];
    let used = prop_oneof![Just(Used::Unsaid), Just(Used::Missing), (0..9_u32).prop_map(Used::Reported)];
    let flags = (any::<bool>(), any::<bool>(), 0..12_u8, 0..12_u8);
    (verdict, cause, health, hint, used, flags).prop_map(|(verdict, cause, health, hint, used, flags)| {
        let (ambiguous, free, stopped, gone) = flags;
        let mut failure = Failure::new(verdict).cause(cause).health(health).used(used);
        failure = hint.map_or(failure, |hint| failure.hint(hint));
        failure = if ambiguous { failure.ambiguous() } else { failure };
        failure = if free { failure.free() } else { failure };
        failure = if stopped == 0 { failure.stop(StopScope::Chain) } else { failure };
        if gone == 0 { failure.not_replayable() } else { failure }
    })
}

fn input() -> impl Strategy<Value = Input> {
    let call = 0..5_usize;
    let repeat =
        prop_oneof![4 => Just(Repeat::Yes), 1 => Just(Repeat::UnprocessedOnly), 1 => Just(Repeat::No)];
    prop_oneof![
        3 => (repeat, prop::option::of(0..20_000_u64)).prop_map(|(repeat, ms)| Input::Begin(repeat, ms)),
        12 => (call.clone(), failure()).prop_map(|(call, failure)| Input::Next(call, failure)),
        2 => (call.clone(), failure()).prop_map(|(call, failure)| Input::Fail(call, failure)),
        1 => (call.clone(), failure()).prop_map(|(call, failure)| Input::Late(call, failure)),
        2 => call.clone().prop_map(Input::Expire),
        2 => call.clone().prop_map(Input::Due),
        1 => call.clone().prop_map(Input::Succeed),
        1 => call.prop_map(Input::Abandon),
        3 => (0..6_000_u64).prop_map(Input::Forth),
        1 => (0..3_000_u64).prop_map(Input::Back),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    let jitter = prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Decorrelated),
        Just(Jitter::Proportional(Ratio::percent(30))),
    ];
    let nested =
        prop_oneof![3 => Just(Nested::Credit), 1 => Just(Nested::PassThrough), 1 => Just(Nested::Allow)];
    let limits = (1..7_u32, 0..400_u64, 0..4_u32, any::<bool>(), any::<bool>(), any::<bool>());
    (limits, 0..6_u32, jitter, nested).prop_map(
        |((attempts, base, waiting, timeout, deadline, only), tokens, jitter, nested)| {
            let mut policy =
                Policy::exponential(millis(base), secs(10)).attempts(attempts).jitter(jitter).nested(nested);
            policy = policy.max_waiting(waiting);
            policy = if timeout { policy } else { policy.no_attempt_timeout() };
            policy = if deadline { policy } else { policy.no_deadline() };
            policy = if only { policy.retry_on(RetryOn::nothing().status(503).unwrap()) } else { policy };
            // Tokens that are spent once: what is missing at the end was spent.
            let spent_once = RatioConfig {
                reserve: Some(tokens),
                reserve_per_second: Ratio::ZERO,
                ..RatioConfig::new(Ratio::ZERO)
            };
            policy.budget(spent_once).build().unwrap()
        },
    )
}

/// A walk's world: one rig, one pool of credit, some calls, and a clock that may fall back.
struct Walk {
    rig: Rig,
    breaker: Arc<Lender>,
    pool: Cell<u32>,
    calls: Vec<Call>,
    now: Instant,
}

impl Walk {
    fn new(policy: Policy, granted: u32, refuses: u32) -> Walk {
        let mut rig = Rig::new(policy);
        let breaker = Lender::refusing(refuses);
        rig.breaker = Some(breaker.clone());
        rig.free_repeats = FreeRepeats::new(1, 3);
        rig.budget = rig.policy.budget().map(|config| budget_of(config, rig.policy.attempts()));
        Walk { rig, breaker, pool: Cell::new(granted), calls: Vec::new(), now: at(5_000) }
    }

    fn play(&mut self, input: Input) {
        let context = self.rig.context_under(&self.pool);
        let now = self.now;
        let place = match input {
            Input::Begin(repeat, within) => {
                let deadline = within.map_or(Instant::NEVER, |ms| now + millis(ms));
                let mut session = Session::new(&self.rig.policy, repeat, deadline, now);
                let step = session.begin(&context, now);
                let call = Call {
                    session,
                    repeat,
                    first: None,
                    id: None,
                    launches: 0,
                    paid: 0,
                    until: None,
                    stop: None,
                    succeeded: false,
                };
                self.calls.push(call);
                return self.heard(self.calls.len() - 1, step, now);
            }
            Input::Forth(ms) => return self.now = now + millis(ms),
            Input::Back(ms) => {
                return self.now = Instant::from_nanos(now.as_nanos().saturating_sub(ms * 1_000_000));
            }
            Input::Next(call, _) | Input::Fail(call, _) | Input::Late(call, _) => call,
            Input::Expire(call) | Input::Due(call) | Input::Succeed(call) | Input::Abandon(call) => call,
        };
        let Some(call) = self.calls.get_mut(place) else { return };
        let Some(id) = call.id else { return };
        let session = &mut call.session;
        let mut then = now;
        let step = match input {
            Input::Next(_, failure) => match call.until {
                Some(until) => {
                    then = now.max(until);
                    session.due(&context, then)
                }
                None => session.failed(&context, id, failure, now),
            },
            Input::Fail(_, failure) => session.failed(&context, id, failure, now),
            Input::Late(_, failure) => {
                let Some(first) = call.first.filter(|first| *first != id) else { return };
                let before = (session.launched(), session.is_ambiguous(), session.used(), self.pool.get());
                let step = session.failed(&context, first, failure, now);
                let after = (session.launched(), session.is_ambiguous(), session.used(), self.pool.get());
                assert_eq!(before, after, "an old attempt is heard no more");
                assert!(!matches!(step, Step::Launch(_)));
                return;
            }
            Input::Expire(_) => session.expired(&context, id, Failure::timed_out(), now),
            Input::Due(_) => session.due(&context, now),
            Input::Succeed(_) => {
                let before = session.is_over();
                session.succeeded(&context, id, Used::Unsaid, Some(now));
                call.succeeded |= !before && session.is_over();
                return;
            }
            _ => Step::Stop(session.abandon(&context, Used::Unsaid, Some(now))),
        };
        self.heard(place, step, then);
    }

    /// What must hold of every answer.
    fn heard(&mut self, place: usize, step: Step, now: Instant) {
        let policy = &self.rig.policy;
        let call = &mut self.calls[place];
        match step {
            Step::Launch(launch) => {
                call.launches += 1;
                assert_eq!((launch.number, launch.id.get()), (call.launches, call.launches));
                assert!(call.launches <= policy.attempts() + 1, "one free repeat beyond the attempts");
                assert!(now < call.session.deadline() && launch.ends > now, "nothing starts too late");
                assert!(launch.ends <= call.session.deadline());
                assert_eq!(launch.time, launch.ends.left(now));
                if call.until.take().is_some() {
                    call.paid += 1;
                    assert_ne!(call.repeat, Repeat::No);
                    assert!(
                        now + policy.min_attempt_time() < call.session.deadline()
                            || call.session.deadline().is_never()
                    );
                }
                assert!(call.launches - call.paid <= 2, "the first attempt, and one free repeat");
                call.first.get_or_insert(launch.id);
                call.id = Some(launch.id);
            }
            Step::Wait { until } => {
                // A wait for a retry, or the standing answer while an attempt runs.
                if call.session.wait_origin().is_some() {
                    call.until = Some(until);
                    let deadline = call.session.deadline();
                    assert!(deadline.is_never() || until + policy.min_attempt_time() < deadline);
                }
            }
            Step::Stop(stop) => {
                assert_eq!(stop.attempts, call.launches);
                assert_eq!(call.succeeded, stop.reason == StopReason::Succeeded);
                assert_eq!(*call.stop.get_or_insert(stop), stop, "an end is an end");
                call.until = None;
            }
        }
    }

    /// Gives up whatever still runs, and counts.
    fn end(mut self, granted: u32) {
        for place in 0..self.calls.len() {
            let context = self.rig.context_under(&self.pool);
            let stop = self.calls[place].session.abandon(&context, Used::Unsaid, Some(self.now));
            self.heard(place, Step::Stop(stop), self.now);
        }
        assert_eq!(self.rig.waiting.waiting(), 0);
        assert_eq!(self.breaker.out(), 0, "every leave is told of once");
        let tokens =
            u64::from(self.rig.policy.budget().and_then(|budget| budget.as_ratio()?.reserve).unwrap());
        let spent: u32 = self.calls.iter().map(|call| call.paid).sum();
        let later = self.now + secs(3_600);
        let balance = self.rig.budget.as_ref().map(|budget| Arc::clone(budget).balance(later));
        assert_eq!(balance, Some(tokens - u64::from(spent)));
        let gone: u32 =
            self.calls.iter().filter(|call| !call.succeeded).map(|call| call.session.used()).sum();
        assert_eq!(self.pool.get(), granted - gone);
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 250,
        rng_seed: RngSeed::Fixed(61),
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn bounds_hold_and_nothing_is_held_at_the_end(
        policy in policies(),
        granted in 0..9_u32,
        refuses in 0..6_u32,
        inputs in prop::collection::vec(input(), 1..100),
    ) {
        let mut walk = Walk::new(policy, granted, refuses);
        for input in inputs {
            walk.play(input);
        }
        walk.end(granted);
    }
}
