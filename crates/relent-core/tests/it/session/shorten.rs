//! A call that has to end sooner than it was known to: the program shuts down.

use std::sync::Arc;

use relent_core::{Budget, Failure, Policy, Step, StopReason, Verdict};

use super::spy::SpyBudget;
use crate::rig::{Rig, at, launched, millis, stopped, waits};

const TRANSIENT: Failure = Failure::new(Verdict::Transient);

#[test]
fn a_wait_that_ends_too_late_ends_now_and_gives_everything_back() {
    let mut rig = Rig::new(Policy::constant(millis(100)).build().unwrap());
    let budget = SpyBudget::with(9);
    rig.budget = Some(Arc::clone(&budget) as Arc<dyn Budget>);
    let (mut session, launch) = rig.begun(at(0));
    let until = waits(session.failed(&rig.context(), launch.id, TRANSIENT, at(50)));
    assert_eq!(rig.waiting.waiting(), 1);

    let stop = stopped(session.shorten(&rig.context(), until));
    assert_eq!((stop.reason, stop.attempts), (StopReason::DeadlineTooClose, 1));
    assert_eq!((rig.waiting.waiting(), session.used()), (0, 0));
    assert_eq!(budget.seen().given_back, 1);
}

#[test]
fn a_wait_that_still_fits_goes_on() {
    let rig = Rig::new(Policy::constant(millis(100)).build().unwrap());
    let (mut session, launch) = rig.begun(at(0));
    let until = waits(session.failed(&rig.context(), launch.id, TRANSIENT, at(50)));
    assert_eq!(session.shorten(&rig.context(), at(10_000)), Step::Wait { until });
    let second = launched(session.due(&rig.context(), until));
    assert_eq!(second.ends, until + millis(5_000), "its own time is nearer");
}

#[test]
fn an_attempt_in_flight_goes_on_and_no_wait_is_begun_after_it() {
    let rig = Rig::new(Policy::constant(millis(100)).build().unwrap());
    let (mut session, launch) = rig.begun(at(0));
    assert_eq!(session.shorten(&rig.context(), at(120)), Step::Wait { until: launch.ends });
    let stop = stopped(session.failed(&rig.context(), launch.id, TRANSIENT, at(50)));
    assert_eq!(stop.reason, StopReason::DeadlineTooClose);
}

#[test]
fn a_deadline_is_never_raised() {
    let rig = Rig::new(Policy::constant(millis(100)).build().unwrap());
    let (mut session, _) = rig.begun(at(0));
    let before = session.deadline();
    session.shorten(&rig.context(), before + millis(1));
    assert_eq!(session.deadline(), before);
}
