//! All timelines through one driver, and a report that shows where it strays.

use std::fmt::Write;

use crate::{Timeline, Trace};

/// Plays every timeline that doesn't skip `driver`, and panics with a report of all that came out otherwise.
///
/// # Panics
/// If a script can't be read, or what happened is not what it expects.
pub fn check(driver: &str, play: impl Fn(&Timeline) -> Trace) {
    let timelines = Timeline::all().unwrap_or_else(|error| panic!("{error}"));
    let mut strayed = String::new();
    for timeline in timelines.iter().filter(|timeline| timeline.skipped_by(driver).is_none()) {
        let trace = play(timeline);
        if trace.lines() != timeline.expected {
            report(&mut strayed, driver, timeline, &trace);
        }
    }
    assert!(strayed.is_empty(), "{strayed}");
}

fn report(text: &mut String, driver: &str, timeline: &Timeline, trace: &Trace) {
    let path = &timeline.path;
    let line = timeline.line_of_difference(trace);
    // Writing to a String can't fail.
    let _ = writeln!(text, "\n{path}:{line}: the {driver} driver strays here; what it did:\n{trace}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "call\n  10ms  ok\n\nexpect\n  0ms  launch 1\n  11ms  stop Succeeded attempts=1\n";

    #[test]
    fn a_driver_that_strays_is_told_where() {
        let timeline = Timeline::parse("x.txt", SCRIPT).unwrap();
        let mut text = String::new();
        report(&mut text, "engine", &timeline, &crate::run_on_the_engine(&timeline));
        assert_eq!(
            text,
            "\nx.txt:6: the engine driver strays here; what it did:\n  0ms      launch 1\n  10ms     stop Succeeded attempts=1\n\n"
        );
    }

    #[test]
    #[should_panic(expected = "success_at_once.txt:7: the idle driver strays here")]
    fn a_driver_that_does_nothing_does_not_pass() {
        check("idle", |timeline| crate::Stage::new(timeline, relent_core::Instant::ZERO).trace());
    }
}
