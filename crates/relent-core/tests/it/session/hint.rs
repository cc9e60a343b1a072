//! The server's word on when to come back: never retried earlier, never clamped, never a herd.

use std::time::Duration;

use relent_core::{
    Failure, Hint, Instant, Jitter, Policy, Ratio, Repeat, Session, StopReason, ThrottledConfig, Verdict,
    WaitOrigin,
};

use crate::chi_square;
use crate::rig::{Rig, at, launched, millis, secs, stopped, waits};

fn throttled(hint: Hint) -> Failure {
    Verdict::Throttled { hint: Some(hint) }.into()
}

/// The wait that follows a first failure at 0.
fn wait_after(rig: &Rig, failure: Failure, deadline: Instant) -> (Duration, WaitOrigin) {
    let mut session = Session::new(&rig.policy, Repeat::Yes, deadline, at(0));
    let launch = launched(session.begin(&rig.context(), at(0)));
    let until = waits(session.failed(&rig.context(), launch.id, failure, at(0)));
    (until.since(at(0)), session.wait_origin().unwrap())
}

fn nanos(length: Duration) -> u64 {
    length.as_nanos() as u64
}

#[test]
fn a31_hint_over_the_ceiling_stops_at_once() {
    let rig = Rig::new(Policy::builder().max_hint(secs(5)).build().unwrap());
    for hint in [Hint::at_least(secs(3_600)), Hint::exactly(secs(3_600)), Hint::at_least(millis(5_001))] {
        let (mut session, launch) = rig.begun(at(0));
        let stop = stopped(session.failed(&rig.context(), launch.id, throttled(hint), at(10)));
        assert_eq!((stop.reason, stop.attempts, stop.hint), (StopReason::HintTooLong, 1, Some(hint.wait)));
    }
    let at_the_ceiling = throttled(Hint::at_least(secs(5)));
    assert!(wait_after(&rig, at_the_ceiling, Instant::NEVER).0 >= secs(5));
}

#[test]
fn a32_hint_beyond_the_deadline_stops_at_once_and_is_told() {
    let policy = Policy::builder().max_hint(secs(3_600)).deadline(secs(60)).build().unwrap();
    let rig = Rig::new(policy);
    for hint in [Hint::at_least(secs(1_213)), Hint::exactly(secs(1_213))] {
        let (mut session, launch) = rig.begun(at(0));
        let stop = stopped(session.failed(&rig.context(), launch.id, throttled(hint), at(10)));
        assert_eq!((stop.reason, stop.attempts), (StopReason::DeadlineTooClose, 1));
        assert_eq!(stop.hint, Some(secs(1_213)));
    }
}

#[test]
fn a34_a_past_date_is_a_hint_of_zero_and_the_backoff_stays() {
    let rig = Rig::new(Policy::builder().base(secs(1)).jitter(Jitter::None).build().unwrap());
    let zero = throttled(Hint::at_least(Duration::ZERO));
    assert_eq!(wait_after(&rig, zero, Instant::NEVER), (secs(1), WaitOrigin::Backoff));
}

#[test]
fn a35_absurd_hints_saturate() {
    for wait in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_nanos(u64::MAX)] {
        for policy in [Policy::builder(), Policy::builder().no_deadline().max_hint(secs(365 * 24 * 3600))] {
            for hint in [Hint::at_least(wait), Hint::exactly(wait)] {
                let rig = Rig::new(policy.clone().build().unwrap());
                let (mut session, launch) = rig.begun(at(0));
                let stop = stopped(session.failed(&rig.context(), launch.id, throttled(hint), at(10)));
                assert_eq!(stop.reason, StopReason::HintTooLong);
                assert!(
                    stop.hint.unwrap() >= Duration::from_nanos(u64::MAX - 1),
                    "{wait:?} is told, if not all of it"
                );
            }
        }
    }
}

#[test]
fn a37_the_longer_of_hint_and_backoff_wins_and_says_whose_it_is() {
    let rig = Rig::new(Policy::builder().base(secs(1)).jitter(Jitter::None).build().unwrap());
    let (wait, origin) = wait_after(&rig, throttled(Hint::at_least(secs(5))), Instant::NEVER);
    assert!(wait >= secs(5) && wait <= millis(7_500), "{wait:?}");
    assert_eq!(origin, WaitOrigin::Server);
    let shorter = throttled(Hint::at_least(millis(500)));
    assert_eq!(wait_after(&rig, shorter, Instant::NEVER), (secs(1), WaitOrigin::Backoff));
    let (_, origin) = wait_after(&rig, Verdict::Transient.into(), Instant::NEVER);
    assert_eq!(origin, WaitOrigin::Backoff);
}

#[test]
fn b6_a_server_that_asks_for_a_wait_grants_no_further_attempt() {
    let rig = Rig::new(Policy::builder().no_budget().build().unwrap());
    let (mut session, mut launch) = rig.begun(at(0));
    let mut now = at(0);
    for _ in 1..rig.policy.attempts() {
        now = waits(session.failed(&rig.context(), launch.id, throttled(Hint::at_least(secs(1))), now));
        launch = launched(session.due(&rig.context(), now));
    }
    let stop = stopped(session.failed(&rig.context(), launch.id, throttled(Hint::at_least(secs(1))), now));
    assert_eq!((stop.reason, stop.attempts), (StopReason::AttemptsExhausted, 3));
}

#[test]
fn b13_jitter_never_brings_a_call_back_before_its_hint() {
    let jitters = [
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
        Jitter::DecorrelatedBounded,
        Jitter::Proportional(Ratio::ONE),
        Jitter::Additive(Ratio::ONE),
    ];
    for jitter in jitters {
        let policy = Policy::exponential(millis(100), secs(10)).jitter(jitter).no_budget();
        let rig = Rig::new(policy.max_waiting(1).build().unwrap());
        for _ in 0..10_000 {
            let (wait, _) = wait_after(&rig, throttled(Hint::at_least(secs(5))), Instant::NEVER);
            assert!(wait >= secs(5), "{jitter:?}: {wait:?}");
        }
    }
}

#[test]
fn a_date_sent_to_many_spreads_them_upwards() {
    // A backoff that is always shorter than the hint, so that only the hint's own spread is seen.
    let policy = Policy::exponential(millis(1), secs(4)).no_budget().max_waiting(1).build().unwrap();
    let rig = Rig::new(policy);
    // Half of the hint, or the cap where that is less.
    for (hint, high) in [(secs(2), secs(3)), (secs(10), secs(14))] {
        let draws =
            (0..100_000).map(|_| nanos(wait_after(&rig, throttled(Hint::at_least(hint)), Instant::NEVER).0));
        assert_eq!(chi_square::uniform(draws, nanos(hint), nanos(high)), Ok(()), "hint {hint:?}");
    }
}

#[test]
fn the_spread_is_cut_to_what_fits_before_the_deadline() {
    let rig = Rig::new(Policy::exponential(millis(1), secs(4)).no_budget().max_waiting(1).build().unwrap());
    // 5 s asked, 6 s left, 1 ms for the attempt, and equality does not fit.
    let latest = secs(6) - millis(1) - Duration::from_nanos(1);
    let draws = (0..20_000).map(|_| nanos(wait_after(&rig, throttled(Hint::at_least(secs(5))), at(6_000)).0));
    assert_eq!(chi_square::uniform(draws, nanos(secs(5)), nanos(latest)), Ok(()));

    // Nothing is left for a spread: the hint itself still fits.
    let barely = at(5_001) + Duration::from_nanos(1);
    assert_eq!(wait_after(&rig, throttled(Hint::at_least(secs(5))), barely).0, secs(5));
    let (mut session, launch) = begun_before(&rig, at(5_001));
    let stop = stopped(session.failed(&rig.context(), launch, throttled(Hint::at_least(secs(5))), at(0)));
    assert_eq!(stop.reason, StopReason::DeadlineTooClose);
}

#[test]
fn where_the_backoff_is_longer_the_spread_still_ends_before_the_deadline() {
    let rig = Rig::new(Policy::constant(secs(3)).deadline(secs(4)).attempt_timeout(secs(1)).build().unwrap());
    for _ in 0..1_000 {
        let (wait, _) = wait_after(&rig, throttled(Hint::at_least(millis(2_900))), Instant::NEVER);
        assert!(wait >= secs(3) && wait < secs(4) - millis(1), "{wait:?}");
    }
}

#[test]
fn an_exact_pushback_is_kept_to_the_nanosecond_and_restarts_the_curve() {
    let policy = Policy::exponential(millis(100), secs(10)).jitter(Jitter::None).attempts(6).build().unwrap();
    let rig = Rig::new(policy);
    let (mut session, mut launch) = rig.begun(at(0));
    let mut now = at(0);
    let mut seen = Vec::new();
    let pushback = throttled(Hint::exactly(Duration::from_nanos(1_234_567)));
    let transient = Failure::from(Verdict::Transient);
    for failure in [transient, transient, pushback, transient, transient] {
        rig.budget.as_ref().unwrap().on_success(1, Some(now));
        for _ in 0..100 {
            rig.budget.as_ref().unwrap().on_success(1, None);
        }
        let until = waits(session.failed(&rig.context(), launch.id, failure, now));
        seen.push(until.since(now));
        now = until;
        launch = launched(session.due(&rig.context(), now));
    }
    let exact = Duration::from_nanos(1_234_567);
    assert_eq!(seen, [millis(100), millis(200), exact, millis(100), millis(200)]);
}

#[test]
fn an_exact_pushback_restarts_decorrelated_jitter_too() {
    let policy = Policy::exponential(millis(100), secs(10)).jitter(Jitter::Decorrelated).attempts(9);
    let rig = Rig::new(policy.no_budget().no_deadline().build().unwrap());
    let (mut session, mut launch) = rig.begun(at(0));
    let mut now = at(0);
    for failure in
        [Verdict::Transient; 6].map(Failure::from).into_iter().chain([throttled(Hint::exactly(secs(1)))])
    {
        now = waits(session.failed(&rig.context(), launch.id, failure, now));
        launch = launched(session.due(&rig.context(), now));
    }
    let until = waits(session.failed(&rig.context(), launch.id, Verdict::Transient.into(), now));
    assert!(until.since(now) >= millis(100) && until.since(now) <= millis(300), "{:?}", until.since(now));
}

#[test]
fn throttled_without_a_hint_waits_the_throttled_base() {
    let rig = Rig::new(Policy::builder().throttled_base(secs(2)).build().unwrap());
    for _ in 0..1_000 {
        let (wait, origin) = wait_after(&rig, Verdict::Throttled { hint: None }.into(), Instant::NEVER);
        assert!(wait >= secs(2) && wait <= secs(3), "{wait:?}");
        assert_eq!(origin, WaitOrigin::Server);
        rig.budget.as_ref().unwrap().on_success(1, Some(at(0)));
    }
    // It is the policy's number, not the server's: a stop does not tell it as one.
    let (mut session, launch) = begun_before(&rig, at(100));
    let stop =
        stopped(session.failed(&rig.context(), launch, Verdict::Throttled { hint: None }.into(), at(1)));
    assert_eq!((stop.reason, stop.hint), (StopReason::DeadlineTooClose, None));
}

#[test]
fn a_transient_failure_may_carry_a_hint() {
    let rig = Rig::new(Policy::builder().build().unwrap());
    let busy = Failure::new(Verdict::Transient).hint(Hint::at_least(secs(3)));
    let (wait, origin) = wait_after(&rig, busy, Instant::NEVER);
    assert!(wait >= secs(3) && wait <= millis(4_500), "{wait:?}");
    assert_eq!(origin, WaitOrigin::Server);
}

#[test]
fn a_hint_is_told_at_every_stop() {
    let rig = Rig::new(Policy::builder().attempts(1).build().unwrap());
    let (mut session, launch) = rig.begun(at(0));
    let stop = stopped(session.failed(&rig.context(), launch.id, throttled(Hint::at_least(secs(3))), at(1)));
    assert_eq!((stop.reason, stop.hint), (StopReason::AttemptsExhausted, Some(secs(3))));
}

#[test]
fn a_hint_is_told_when_the_wait_for_it_was_in_vain() {
    let rig = Rig::new(Policy::default());
    for (late, reason) in
        [(secs(15), StopReason::DeadlineExceeded), (millis(14_999), StopReason::DeadlineTooClose)]
    {
        let (mut session, launch) = rig.begun(at(0));
        waits(session.failed(&rig.context(), launch.id, throttled(Hint::at_least(secs(3))), at(1)));
        let stop = stopped(session.due(&rig.context(), at(0) + late));
        assert_eq!((stop.reason, stop.hint), (reason, Some(secs(3))));
    }
    // Of two failures the last one counts, and it asked for nothing.
    let (mut session, launch) = rig.begun(at(0));
    let until =
        waits(session.failed(&rig.context(), launch.id, throttled(Hint::at_least(millis(10))), at(1)));
    let launch = launched(session.due(&rig.context(), until));
    let stop = stopped(session.failed(&rig.context(), launch.id, Verdict::Permanent.into(), until));
    assert_eq!((stop.reason, stop.hint), (StopReason::NotRetryable, None));
}

fn begun_before(rig: &Rig, deadline: Instant) -> (Session, relent_core::AttemptId) {
    let mut session = Session::new(&rig.policy, Repeat::Yes, deadline, at(0));
    let id = launched(session.begin(&rig.context(), at(0))).id;
    (session, id)
}

#[test]
fn the_throttled_wait_grows_up_to_its_own_cap() {
    let doubling = Ratio::of(2, 1);
    let flat = ThrottledConfig::from_base(secs(1));
    let growing = flat.cap(secs(20));
    let waits = |config: ThrottledConfig| {
        [1, 2, 3, 5, 6, u32::MAX].map(|retry| config.wait(retry, doubling).as_secs())
    };
    assert_eq!(waits(flat), [1; 6]);
    // AWS: min(20 s, 1 s x 2^i).
    assert_eq!(waits(growing), [1, 2, 4, 16, 20, 20]);
}
