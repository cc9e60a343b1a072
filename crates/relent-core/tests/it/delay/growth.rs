//! Curves other than the exponential one: linear, Fibonacci's, and listed waits.

use std::time::Duration;

use relent_core::{Growth, Jitter, Policy, PolicyError, Ratio, Steps};

use super::{EXTREMES, every_jitter};
use crate::rig::{millis, secs};

fn curve(policy: relent_core::PolicyBuilder, retries: impl IntoIterator<Item = u32>) -> Vec<u128> {
    let policy = policy.no_deadline().build().unwrap();
    retries.into_iter().map(|retry| policy.backoff().unjittered(retry).as_millis()).collect()
}

#[test]
fn each_law_says_what_it_says() {
    assert_eq!(
        curve(Policy::linear(millis(100), secs(1)), 0..=12),
        [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1000, 1000]
    );
    assert_eq!(
        curve(Policy::fibonacci(millis(100), secs(2)), 0..=9),
        [0, 100, 100, 200, 300, 500, 800, 1300, 2000, 2000]
    );
    let steps = [secs(1), secs(1), secs(30), secs(5)];
    assert_eq!(
        curve(Policy::steps(&steps), [0, 1, 2, 3, 4, 5, u32::MAX]),
        [0, 1000, 1000, 30_000, 5000, 5000, 5000]
    );
    // A cap that is lowered afterwards holds for the list, too.
    assert_eq!(curve(Policy::steps(&steps).cap(secs(10)), [1, 3, 4]), [1000, 10_000, 5000]);
}

#[test]
fn every_attempt_number_has_a_wait_within_the_cap_and_with_a_spread() {
    let caps = [millis(1), secs(10), Duration::from_secs(86_400 * 365)];
    for (growth, cap) in
        [Growth::Linear, Growth::Fibonacci].into_iter().flat_map(|g| caps.map(|cap| (g, cap)))
    {
        for jitter in every_jitter() {
            let policy =
                Policy::exponential(millis(1), cap).growth(growth).jitter(jitter).no_deadline().build();
            let Ok(policy) = policy else {
                assert!(matches!(jitter, Jitter::Decorrelated | Jitter::DecorrelatedBounded));
                continue;
            };
            let mut last = Duration::ZERO;
            for retry in EXTREMES {
                let (low, high) = policy.backoff().range(retry, cap);
                assert!(low <= high && high <= cap && high >= last, "{growth:?} {jitter:?} {retry}");
                assert!(retry == 0 || jitter == Jitter::None || cap == millis(1) || low < high);
                last = high;
            }
        }
    }
}

#[test]
fn from_when_on_a_wait_is_steady_is_known() {
    let steady = |policy: relent_core::PolicyBuilder| {
        let policy = policy.no_deadline().build().unwrap();
        (1..100).find(|retry| policy.backoff().is_steady_from(*retry))
    };
    assert_eq!(steady(Policy::constant(secs(1))), Some(1));
    assert_eq!(steady(Policy::exponential(secs(1), secs(8))), Some(4));
    assert_eq!(steady(Policy::linear(secs(1), secs(8))), Some(8));
    assert_eq!(steady(Policy::fibonacci(secs(1), secs(8))), Some(6));
    assert_eq!(steady(Policy::linear(Duration::ZERO, secs(8))), Some(1));
    assert_eq!(steady(Policy::steps(&[secs(1), secs(9), secs(2)])), Some(3));
}

#[test]
fn what_contradicts_the_curve_is_refused() {
    let refused = |policy: relent_core::PolicyBuilder| policy.no_deadline().build().unwrap_err();
    assert_eq!(refused(Policy::steps(&[])), PolicyError::StepsOutOfRange(0));
    assert_eq!(refused(Policy::steps(&[secs(1); 17])), PolicyError::StepsOutOfRange(17));
    assert!(Policy::steps(&[secs(1); Steps::MOST]).no_deadline().build().is_ok());
    assert_eq!(
        refused(Policy::steps(&[secs(2), secs(3)]).base(secs(1))),
        PolicyError::BaseNotFirstStep { base: secs(1), first: secs(2) }
    );
    let three = Ratio::of(3, 1);
    assert_eq!(
        refused(Policy::linear(secs(1), secs(9)).multiplier(three)),
        PolicyError::MultiplierUnused(three)
    );
    assert_eq!(
        refused(Policy::fibonacci(secs(1), secs(9)).jitter(Jitter::Decorrelated)).to_string(),
        "a decorrelated wait grows from the last one, so growth fibonacci has no effect: take another jitter, or \
         leave growth out"
    );
    // Where throttled waits grow, the multiplier is theirs.
    let throttled = relent_core::ThrottledConfig::from_base(secs(1)).cap(secs(9));
    let policy = Policy::linear(secs(1), secs(9)).multiplier(three).throttled(throttled);
    assert!(policy.no_deadline().build().is_ok());
}
