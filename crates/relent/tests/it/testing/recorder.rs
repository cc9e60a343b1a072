//! The record has the form of the timelines that all drivers follow.

use relent::testing::{Recorder, Script};
use relent::timer::Manual;
use relent::{Failure, Repeat, Retry, Verdict};
use relent_testkit::{ScriptedOutcome, Timeline};

use crate::rig::{Busy, handle, ms, unbounded};

/// What an attempt comes to when it fails.
#[derive(Debug)]
struct Scripted(Failure);

/// One call, with nothing above or below it that a script of outcomes can't show.
fn is_plain(timeline: &Timeline) -> bool {
    let below = |used: u32| used > 0;
    let alone = |outcome: &ScriptedOutcome| match outcome {
        ScriptedOutcome::Succeeds => true,
        ScriptedOutcome::Fails { used, .. } => !below(*used),
    };
    timeline.calls.len() == 1
        && !timeline.above.grants()
        && timeline.skipped_by("async").is_none()
        && timeline.calls[0].attempts.iter().all(|attempt| alone(&attempt.outcome))
}

fn played(timeline: &Timeline) -> Vec<String> {
    let time = Manual::new();
    let recorder = Recorder::new(&time);
    let script = timeline.calls[0].attempts.iter().fold(Script::on(&time), |script, attempt| {
        let script = match attempt.outcome {
            ScriptedOutcome::Succeeds => script.succeeds(()),
            ScriptedOutcome::Fails { failure, .. } => script.fails(Scripted(failure)),
        };
        script.takes(attempt.takes)
    });
    let script =
        script.then_always(|_| Err(Scripted(Failure::new(Verdict::Permanent)))).recorded_by(&recorder);
    let meaning: fn(&Scripted) -> Failure = |error| error.0;
    let retry = Retry::with_timer(timeline.policy.clone(), time.clone())
        .seed(timeline.seed)
        .on_event(recorder.listener())
        .classify(meaning);
    let run = retry.run(script.operation());
    let _ = match timeline.repeat {
        Repeat::Yes => time.run(run),
        _ => time.run(run.only_if_unprocessed()),
    };
    recorder.lines()
}

#[test]
fn the_record_of_a_timeline_is_what_it_expects() {
    let timelines = Timeline::all().unwrap();
    let mut compared = 0;
    for timeline in timelines.iter().filter(|timeline| is_plain(timeline)) {
        let known = |line: &String| ["launch ", "wait ", "stop "].iter().any(|word| line.contains(word));
        let lines: Vec<String> = played(timeline).into_iter().filter(known).collect();
        assert_eq!(lines, timeline.expected, "{}", timeline.path);
        compared += 1;
    }
    assert!(compared > 30, "{compared} timelines are plain");
}

#[test]
fn a_failure_says_all_that_is_known_of_it() {
    use relent::{Cause, Hint, StopScope};

    let time = Manual::new();
    let recorder = Recorder::new(&time);
    let failure = Failure::new(Verdict::Transient).cause(Cause::Status(503)).hint(Hint::exactly(ms(1500)));
    let script = Script::<(), _, _>::on(&time).fails(Scripted(failure.stop(StopScope::Host).ambiguous()));
    let meaning: fn(&Scripted) -> Failure = |error| error.0;
    let retry = Retry::with_timer(unbounded(2).build().unwrap(), time).on_event(recorder.listener());
    let _ = retry.classify(meaning).run_blocking(recorder.around_blocking(script.blocking()));
    assert_eq!(
        recorder.to_string(),
        "0ms      launch 1\n\
         0ms      fail 1 transient cause=503 pushback=1.5s stop=host ambiguous\n\
         0ms      stop StoppedByPeer attempts=1 ambiguous hint=1.5s\n"
    );
}

#[test]
fn calls_follow_one_another_and_a_lone_first_success_is_told() {
    let time = Manual::new();
    let recorder = Recorder::new(&time);
    let retry = Retry::with_timer(unbounded(3).build().unwrap(), time.clone())
        .on_event(recorder.listener())
        .classify(|_: &Busy| Verdict::Transient);
    let script = Script::on(&time).succeeds(1).fails(Busy(1)).succeeds(2).succeeds(3);
    for _ in 0..3 {
        time.run(retry.run(recorder.around(script.operation()))).unwrap();
    }
    assert_eq!(
        recorder.lines(),
        [
            "0ms launch 1",
            "0ms stop Succeeded attempts=1",
            "0ms launch 1",
            "0ms fail 1 transient",
            "0ms wait until 10ms by backoff",
            "10ms launch 2",
            "10ms stop Succeeded attempts=2",
            "10ms launch 1",
            "10ms stop Succeeded attempts=1",
        ]
    );
    recorder.clear();
    assert_eq!(recorder.lines(), [""; 0]);
}

#[test]
fn the_same_seed_makes_the_same_record() {
    let record = |seed| {
        let time = Manual::new();
        let recorder = Recorder::new(&time);
        let script = Script::<(), _, _>::on(&time).fails_times(5, || Busy(1)).recorded_by(&recorder);
        let policy = unbounded(5).jitter(relent::Jitter::Full);
        let retry = handle(policy, &time).seed(seed).on_event(recorder.listener());
        let _ = retry.run_blocking(script.blocking());
        recorder.to_string()
    };
    assert_eq!(record(7), record(7));
    assert_ne!(record(7), record(8));
}
