//! Many calls that fail at one moment: the reason why there is jitter at all.

use relent_core::{Policy, Verdict};

use crate::chi_square;
use crate::rig::{Rig, at, launched, millis, secs, waits};

fn herd() -> Rig {
    Rig::new(Policy::exponential(millis(100), secs(10)).attempts(5).no_budget().build().unwrap())
}

#[test]
fn a_thousand_calls_failing_together_spread_as_full_jitter_says() {
    let rig = herd();
    let failed_at = at(70);
    let mut calls: Vec<_> = (0..1_000).map(|_| rig.begun(at(0))).collect();
    let retries: Vec<_> = calls
        .iter_mut()
        .map(|(call, launch)| {
            waits(call.failed(&rig.context(), launch.id, Verdict::Transient.into(), failed_at))
        })
        .collect();
    let delays = retries.iter().map(|until| until.since(failed_at).as_nanos() as u64);
    assert_eq!(chi_square::uniform(delays, 0, 100_000_000), Ok(()));
    assert_eq!(rig.waiting.waiting(), 1_000);

    // They fail together once more, as a herd that was kept together would.
    let second = at(200);
    let delays: Vec<u64> = calls
        .iter_mut()
        .map(|(call, _)| {
            let launch = launched(call.due(&rig.context(), second));
            let until = waits(call.failed(&rig.context(), launch.id, Verdict::Transient.into(), second));
            until.since(second).as_nanos() as u64
        })
        .collect();
    assert_eq!(chi_square::uniform(delays.into_iter(), 0, 200_000_000), Ok(()));
}

#[test]
fn b1_no_two_calls_share_a_sequence() {
    let rig = herd();
    let mut sequences = Vec::new();
    for _ in 0..50 {
        let (mut call, mut launch) = rig.begun(at(0));
        let mut sequence = Vec::new();
        let mut now = at(0);
        for _ in 0..4 {
            let until = waits(call.failed(&rig.context(), launch.id, Verdict::Transient.into(), now));
            sequence.push(until.since(now));
            now = until;
            launch = launched(call.due(&rig.context(), now));
        }
        sequences.push(sequence);
    }
    for wait in 0..4 {
        let mut column: Vec<_> = sequences.iter().map(|sequence| sequence[wait]).collect();
        column.sort();
        column.dedup();
        assert_eq!(column.len(), 50, "wait {wait}");
    }
}

#[test]
fn a50_no_call_inherits_anothers_place_on_the_curve() {
    let rig = Rig::new(
        Policy::exponential(millis(100), secs(10))
            .jitter(relent_core::Jitter::None)
            .attempts(4)
            .no_budget()
            .build()
            .unwrap(),
    );
    for _ in 0..3 {
        let (mut call, mut launch) = rig.begun(at(0));
        let mut now = at(0);
        for wait in [100, 200, 400] {
            let until = waits(call.failed(&rig.context(), launch.id, Verdict::Transient.into(), now));
            assert_eq!(until.since(now), millis(wait));
            now = until;
            launch = launched(call.due(&rig.context(), now));
        }
    }
}
