//! Time: the whole call's and each attempt's; nothing is decided late, and nothing starts that can't be of use.

use std::time::Duration;

use relent_core::{Failure, Instant, Jitter, Policy, Repeat, Session, Step, StopReason, Verdict};

use crate::rig::{Rig, at, launched, millis, secs, stopped, waits};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

/// Drives a call whose every attempt takes `each` (or its whole time, if that is less) and fails, and answers when its
/// attempts started and when and why it ended.
fn drive(rig: &Rig, each: Duration) -> (Vec<Instant>, Instant, StopReason) {
    let mut now = at(0);
    let mut session = rig.session(now);
    let mut step = session.begin(&rig.context(), now);
    let mut starts = Vec::new();
    loop {
        step = match step {
            Step::Launch(launch) => {
                starts.push(now);
                now = launch.ends.min(now + each);
                if now < launch.ends {
                    session.failed(&rig.context(), launch.id, TRANSIENT, now)
                } else {
                    session.expired(&rig.context(), launch.id, Failure::timed_out(), now)
                }
            }
            Step::Wait { until } => {
                now = until;
                session.due(&rig.context(), now)
            }
            Step::Stop(stop) => return (starts, now, stop.reason),
        };
        assert!(starts.len() < 10_000, "a hot loop");
    }
}

#[test]
fn a19_a_wait_longer_than_the_time_left_is_not_slept() {
    let policy = Policy::constant(secs(8)).attempt_timeout(secs(9)).deadline(secs(10)).build().unwrap();
    let (starts, end, reason) = drive(&Rig::new(policy), secs(3));
    assert_eq!((starts.len(), end, reason), (1, at(3_000), StopReason::DeadlineTooClose));
}

#[test]
fn a20_equality_is_exhausted() {
    // Backoff 0 on a clock that stands still one attempt's least time before the deadline.
    let policy =
        Policy::constant(Duration::ZERO).attempts(1_000).no_budget().deadline(secs(10)).build().unwrap();
    let rig = Rig::new(policy);
    for (now, reason) in [
        (secs(10) - millis(1), StopReason::DeadlineTooClose),
        (secs(10) - Duration::from_nanos(1), StopReason::DeadlineTooClose),
        (secs(10), StopReason::DeadlineExceeded),
        (secs(11), StopReason::DeadlineExceeded),
    ] {
        let (mut session, launch) = rig.begun(at(0));
        let stop = stopped(session.failed(&rig.context(), launch.id, TRANSIENT, at(0) + now));
        assert_eq!(stop.reason, reason, "{now:?}");
    }
    let (mut session, launch) = rig.begun(at(0));
    let just_in_time = at(10_000 - 1).as_nanos() - 1;
    waits(session.failed(&rig.context(), launch.id, TRANSIENT, Instant::from_nanos(just_in_time)));

    // Without a least time the deadline itself is still no time.
    let none =
        Policy::constant(millis(100)).min_attempt_time(Duration::ZERO).deadline(secs(10)).build().unwrap();
    let rig = Rig::new(none);
    let (mut session, launch) = rig.begun(at(0));
    let stop = stopped(session.failed(&rig.context(), launch.id, TRANSIENT, at(9_900)));
    assert_eq!(stop.reason, StopReason::DeadlineTooClose);
}

#[test]
fn a21_a22_no_attempt_starts_and_no_wait_ends_after_the_limit() {
    for each in [millis(0), millis(1), millis(300), millis(700), millis(999), secs(7)] {
        let policy =
            Policy::exponential(millis(200), secs(10)).jitter(Jitter::None).attempts(100).no_budget();
        let rig = Rig::new(policy.attempt_timeout(secs(2)).deadline(secs(5)).build().unwrap());
        let (starts, end, _) = drive(&rig, each);
        assert!(end <= at(5_000), "{each:?}: ended at {end:?}");
        assert!(starts.iter().all(|start| *start < at(4_999)), "{each:?}: {starts:?}");
        assert!(starts.len() > 1);
    }
}

#[test]
fn a25_without_a_deadline_a_long_life_is_no_reason_to_stop() {
    let policy = Policy::builder().no_deadline().no_attempt_timeout().build().unwrap();
    let rig = Rig::new(policy);
    let (mut session, launch) = rig.begun(at(0));
    assert_eq!((launch.ends, launch.time), (Instant::NEVER, None));
    waits(session.failed(&rig.context(), launch.id, TRANSIENT, at(20 * 60_000)));
}

#[test]
fn a25_the_time_before_the_first_failure_does_not_count() {
    let long_lived = Policy::constant(secs(1)).attempts(1_000).no_budget().no_deadline().no_attempt_timeout();
    let rig = Rig::new(long_lived.give_up_after(secs(60)).build().unwrap());
    // A long poll that worked for 20 minutes, and then no answer at all.
    let (mut session, launch) = rig.begun(at(0));
    assert_eq!((launch.ends, launch.time), (Instant::NEVER, None));
    let (broke, mut retries) = (secs(20 * 60), 0);
    let mut now = at(0) + broke;
    let mut step = session.failed(&rig.context(), launch.id, TRANSIENT, now);
    let reason = loop {
        step = match step {
            Step::Wait { until } => {
                now = until;
                session.due(&rig.context(), now)
            }
            Step::Launch(launch) => {
                retries += 1;
                assert!(launch.ends.is_never(), "an attempt that works is not cut short");
                session.failed(&rig.context(), launch.id, TRANSIENT, now)
            }
            Step::Stop(stop) => break stop.reason,
        };
    };
    assert_eq!((retries, now, reason), (59, at(0) + broke + secs(59), StopReason::DeadlineTooClose));
}

#[test]
fn a25_an_attempt_that_worked_for_so_long_makes_the_next_failure_a_first_one() {
    let policy = Policy::constant(secs(1)).attempts(5).no_budget().no_deadline().no_attempt_timeout();
    let rig = Rig::new(policy.give_up_after(secs(60)).build().unwrap());
    let (starts, _, reason) = drive(&rig, secs(20 * 60));
    assert_eq!((starts.len(), reason), (5, StopReason::AttemptsExhausted));
    let (starts, end, reason) = drive(&rig, secs(40));
    assert_eq!((starts.len(), end, reason), (3, at(122_000), StopReason::DeadlineTooClose));
}

#[test]
fn the_deadline_holds_beside_the_time_since_the_first_failure() {
    let policy = Policy::constant(secs(1)).attempts(1_000).no_budget().no_attempt_timeout();
    let rig = Rig::new(policy.deadline(secs(10)).give_up_after(secs(8)).build().unwrap());
    let (starts, end, reason) = drive(&rig, Duration::ZERO);
    assert_eq!((starts.len(), end, reason), (8, at(7_000), StopReason::DeadlineTooClose));
    let (starts, end, reason) = drive(&rig, secs(4));
    assert_eq!((starts.len(), end, reason), (2, at(9_000), StopReason::DeadlineTooClose));
}

#[test]
fn a_wait_that_ends_late_starts_nothing_after_the_time_to_give_up() {
    let policy = Policy::constant(secs(1)).no_budget().no_deadline().no_attempt_timeout();
    let rig = Rig::new(policy.give_up_after(secs(3)).build().unwrap());
    let (mut session, launch) = rig.begun(at(0));
    waits(session.failed(&rig.context(), launch.id, TRANSIENT, at(0)));
    let stop = stopped(session.due(&rig.context(), at(3_000)));
    assert_eq!(stop.reason, StopReason::DeadlineTooClose);
}

#[test]
fn a27_an_attempt_that_hangs_is_retried_until_the_deadline() {
    let policy = Policy::constant(Duration::ZERO).attempts(10).no_budget();
    let rig = Rig::new(policy.attempt_timeout(millis(500)).deadline(secs(2)).build().unwrap());
    let (starts, end, reason) = drive(&rig, secs(3_600));
    assert_eq!(starts, [at(0), at(500), at(1_000), at(1_500)]);
    assert_eq!((end, reason), (at(2_000), StopReason::DeadlineExceeded));
}

#[test]
fn a28_an_attempts_time_is_retried_and_the_calls_time_is_not() {
    let hangs = secs(3_600);
    let one_attempts = Policy::constant(Duration::ZERO).attempt_timeout(secs(2)).no_deadline();
    let (starts, end, reason) = drive(&Rig::new(one_attempts.build().unwrap()), hangs);
    assert_eq!((starts.len(), end, reason), (3, at(6_000), StopReason::AttemptsExhausted));
    let the_calls = Policy::constant(Duration::ZERO).no_attempt_timeout().deadline(secs(2));
    let (starts, end, reason) = drive(&Rig::new(the_calls.build().unwrap()), hangs);
    assert_eq!((starts.len(), end, reason), (1, at(2_000), StopReason::DeadlineExceeded));
}

#[test]
fn b6_b10_the_attempts_own_time_counts_and_not_the_waits_alone() {
    // 3 × (2 s of work + 1 s of wait): by its waits alone this call would have time for seven more.
    let policy = Policy::constant(secs(1)).attempts(100).no_budget().no_attempt_timeout().deadline(secs(10));
    let (starts, end, reason) = drive(&Rig::new(policy.build().unwrap()), secs(2));
    assert_eq!(starts, [at(0), at(3_000), at(6_000), at(9_000)]);
    assert_eq!((end, reason), (at(10_000), StopReason::DeadlineExceeded));
}

#[test]
fn b10_no_wait_at_all_is_no_reason_to_go_on_for_ever() {
    let policy = Policy::constant(Duration::ZERO).attempts(1_000_000).no_budget().no_attempt_timeout();
    let (starts, _, reason) = drive(&Rig::new(policy.deadline(secs(1)).build().unwrap()), millis(1));
    assert_eq!((starts.len(), reason), (999, StopReason::DeadlineTooClose));
}

#[test]
fn b11_an_attempts_time_is_computed_after_the_wait() {
    let policy = Policy::constant(secs(2)).attempt_timeout(secs(4)).deadline(secs(10)).build().unwrap();
    let rig = Rig::new(policy);
    let (mut session, launch) = rig.begun(at(0));
    assert_eq!((launch.ends, launch.time), (at(4_000), Some(secs(4))));
    let until = waits(session.failed(&rig.context(), launch.id, TRANSIENT, at(3_000)));
    assert_eq!(until, at(5_000));
    // The driver wakes late, by a second and a half.
    let launch = launched(session.due(&rig.context(), at(6_500)));
    assert_eq!((launch.ends, launch.time), (at(10_000), Some(millis(3_500))));
}

#[test]
fn the_nearest_of_all_deadlines_counts() {
    let rig = Rig::new(Policy::default());
    for (given, nearest) in
        [(at(3_000), at(3_000)), (at(60_000), at(15_000)), (Instant::NEVER, at(15_000)), (at(0), at(0))]
    {
        let session = Session::new(&rig.policy, Repeat::Yes, given, at(0));
        assert_eq!(session.deadline(), nearest);
    }
    let unbounded = Policy::builder().no_deadline().build().unwrap();
    assert!(Session::new(&unbounded, Repeat::Yes, Instant::NEVER, at(0)).deadline().is_never());
}

#[test]
fn the_layer_below_is_told_less_so_that_it_answers_first() {
    for (time, below) in [
        (millis(5_000), millis(4_750)),
        (millis(100), millis(95)),
        (millis(50), millis(45)),
        (millis(4), millis(0)),
    ] {
        let rig = Rig::new(Policy::builder().no_attempt_timeout().build().unwrap());
        let mut session = Session::new(&rig.policy, Repeat::Yes, at(0) + time, at(0));
        let launch = launched(session.begin(&rig.context(), at(0)));
        assert_eq!((launch.time, launch.time_below()), (Some(time), Some(below)));
        assert!(launch.ends_below() <= launch.ends);
        assert_eq!(launch.ends_below().since(at(0)), below);
    }
}

#[test]
fn a_success_that_comes_after_the_deadline_is_still_a_success() {
    let rig = Rig::new(Policy::default());
    let (mut session, launch) = rig.begun(at(0));
    session.succeeded(&rig.context(), launch.id, relent_core::Used::Unsaid, Some(at(99_000)));
    assert!(session.is_over());
}

#[test]
fn an_ambiguous_attempt_stays_ambiguous_to_the_end() {
    let rig = Rig::new(Policy::builder().attempts(2).build().unwrap());
    let (mut session, launch) = rig.begun(at(0));
    assert!(!session.is_ambiguous());
    let until = waits(session.expired(&rig.context(), launch.id, Failure::timed_out(), at(5_000)));
    let launch = launched(session.due(&rig.context(), until));
    let stop = stopped(session.failed(&rig.context(), launch.id, TRANSIENT, until));
    assert_eq!((stop.reason, stop.attempts, stop.ambiguous), (StopReason::AttemptsExhausted, 2, true));
}
