//! The `throttle` budget against gRFC A6 and the vectors of grpc-go.

use std::sync::Arc;

use proptest::prelude::*;
use relent_core::{
    Budget, BudgetConfig, Cause, Failure, Health, Policy, Ratio, RetryOn, Session, Step, StopReason,
    StopScope, ThrottleBudget, ThrottleConfig, TokenClass, Used, Verdict,
};

use crate::rig::{Rig, at, launched, millis};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

fn bucket(max_tokens: u32, token_ratio: Ratio) -> Arc<ThrottleBudget> {
    Arc::new(ThrottleBudget::new(&ThrottleConfig { max_tokens, token_ratio }))
}

fn rig(budget: &Arc<ThrottleBudget>, attempts: u32) -> Rig {
    let mut rig = Rig::new(Policy::constant(millis(10)).attempts(attempts).build().unwrap());
    rig.budget = Some(Arc::clone(budget) as Arc<dyn Budget>);
    rig
}

/// One call whose attempts fail as `failure` says until it answers `None`: its reason to stop, if it failed.
fn call(rig: &Rig, mut failure: impl FnMut() -> Option<Failure>) -> Option<StopReason> {
    let mut session: Session = rig.session(at(0));
    let mut launch = launched(session.begin(&rig.context(), at(0)));
    loop {
        let Some(failed) = failure() else {
            session.succeeded(&rig.context(), launch.id, Used::Unsaid, None);
            return None;
        };
        match session.failed(&rig.context(), launch.id, failed, at(0)) {
            Step::Wait { until } => launch = launched(session.due(&rig.context(), until)),
            Step::Stop(stop) => return Some(stop.reason),
            Step::Launch(free) => launch = free,
        }
    }
}

/// `TestRetryThrottling` of grpc-go: 10 tokens, ratio 0.5, 4 attempts; the last server call of each RPC, and what is left.
#[test]
fn grpc_go_retry_throttling() {
    let budget = bucket(10, Ratio::percent(50));
    let rig = rig(&budget, 4);
    let mut served = -1;
    let mut rpc = || {
        let stop = call(&rig, || {
            served += 1;
            (!matches!(served, 0 | 3 | 6 | 10..=14 | 16 | 18)).then_some(TRANSIENT)
        });
        (stop.is_none(), served, budget.thousandths())
    };
    let expected = [
        (true, 0, 10_000),
        (true, 3, 8_500),
        (true, 6, 7_000),
        (false, 8, 5_000),
        (false, 9, 4_000),
        (true, 10, 4_500),
        (true, 11, 5_000),
        (true, 12, 5_500),
        (true, 13, 6_000),
        (true, 14, 6_500),
        (true, 16, 6_000),
        (false, 17, 5_000),
        (true, 18, 5_500),
    ];
    for row in expected {
        assert_eq!(rpc(), row);
    }
}

#[test]
fn at_exactly_half_nothing_is_retried() {
    let budget = bucket(4, Ratio::ONE);
    let rig = rig(&budget, 2);
    assert_eq!(budget.balance(at(0)), 1);
    assert_eq!(call(&rig, || Some(TRANSIENT)), Some(StopReason::AttemptsExhausted));
    assert_eq!(budget.thousandths(), 2_000, "both failures count, also the one that no attempt was left for");
    assert_eq!(budget.balance(at(0)), 0);
    assert_eq!(call(&rig, || Some(TRANSIENT)), Some(StopReason::BudgetExhausted));
    let counts = budget.counts().unwrap();
    assert_eq!((counts.granted, counts.refused, counts.returned), (1, 1, 0));
}

#[test]
fn what_is_not_retried_takes_nothing_but_a_word_to_stop_does() {
    let budget = bucket(10, Ratio::ONE);
    let mut rig = rig(&budget, 4);
    rig.policy = rig.policy.rebuild().retry_on(RetryOn::nothing().status(503).unwrap()).build().unwrap();
    let status = |code| TRANSIENT.cause(Cause::Status(code));
    let not_found = Failure::new(Verdict::Permanent).cause(Cause::Status(404)).health(Health::Good);
    for failure in [status(500), not_found, Verdict::Rejected.into()] {
        assert_eq!(call(&rig, || Some(failure)), Some(StopReason::NotRetryable));
        assert_eq!(budget.thousandths(), 10_000, "{failure:?}");
    }
    let pushed_back = status(503).stop(StopScope::Service);
    assert_eq!(call(&rig, || Some(pushed_back)), Some(StopReason::StoppedByPeer));
    assert_eq!(budget.thousandths(), 9_000);
    assert_eq!(call(&rig, || Some(not_found)), Some(StopReason::NotRetryable));
    assert_eq!(budget.thousandths(), 9_000, "an error is no success either");
}

#[test]
fn a_transparent_retry_takes_nothing() {
    let budget = bucket(10, Ratio::of(1, 1_000));
    let rig = rig(&budget, 4);
    let mut stale = Some(Failure::new(Verdict::Unprocessed).free());
    assert_eq!(call(&rig, || stale.take()), None);
    assert_eq!((budget.thousandths(), budget.counts().unwrap().granted), (10_000, 0));
}

#[test]
fn thousandths_are_exact() {
    let budget = bucket(1_000, Ratio::of(1, 1_000));
    budget.on_failure(Verdict::Transient, Health::Bad, at(0));
    for n in 1..=1_000 {
        budget.on_success(1, None);
        assert_eq!(budget.thousandths(), 999_000 + n);
    }
    budget.on_success(1, None);
    assert_eq!(budget.thousandths(), 1_000_000, "never more than full");
}

#[test]
fn the_preset_is_the_example_of_the_grfc() {
    let config = BudgetConfig::preset("grpc").unwrap();
    assert_eq!(config, ThrottleConfig { max_tokens: 10, token_ratio: Ratio::percent(10) }.into());
}

proptest! {
    /// Against a count in decimals of thousandths, whatever comes.
    #[test]
    fn as_counted_by_hand(
        max in 1..=1_000_u32,
        reward in 1..=2_000_u32,
        events in prop::collection::vec(any::<Option<bool>>(), 0..400),
    ) {
        let budget = bucket(max, Ratio::from_parts_per_million(reward * 1_000));
        let (full, mut tokens) = (i64::from(max) * 1_000, i64::from(max) * 1_000);
        for event in events {
            match event {
                Some(true) => {
                    budget.on_success(1, None);
                    tokens = full.min(tokens + i64::from(reward));
                }
                Some(false) => {
                    budget.on_failure(Verdict::Transient, Health::Bad, at(0));
                    tokens = 0.max(tokens - 1_000);
                }
                None => {
                    let granted = Arc::clone(&budget).withdraw(TokenClass::Transient, at(0)).is_some();
                    prop_assert_eq!(granted, tokens * 2 > full);
                    let further = (1..).take_while(|n| (tokens - n * 1_000) * 2 > full).count();
                    prop_assert_eq!(budget.balance(at(0)), further as u64);
                }
            }
            prop_assert_eq!(i64::from(budget.thousandths()), tokens);
        }
    }
}
