//! The timelines, on the engine alone. The drivers play the same files.

use relent_testkit::{Timeline, check, run_on_the_engine};

#[test]
fn the_engine_follows_every_timeline() {
    check("engine", run_on_the_engine);
}

#[test]
fn no_timeline_skips_the_engine() {
    let timelines = Timeline::all().unwrap();
    assert!(timelines.len() >= 50, "a folder of {} files is not the one that is meant", timelines.len());
    for timeline in timelines {
        assert_eq!(timeline.skipped_by("engine"), None, "{}", timeline.path);
    }
}
