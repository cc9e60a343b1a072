//! `relent explain` with flags and defaults: its text to the letter, its JSON by the figures.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{finish, program, relent_line};

fn json(line: &str) -> Value {
    let ran = relent_line(&format!("explain --format json {line}"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{line}");
    serde_json::from_str(&ran.out).unwrap()
}

fn numbers(report: &Value, key: &str) -> Vec<f64> {
    report["attempts"].as_array().unwrap().iter().map(|attempt| attempt[key].as_f64().unwrap()).collect()
}

#[test]
fn the_defaults_to_the_letter() {
    let ran = relent_line("explain");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, DEFAULTS);
}

const DEFAULTS: &str = "\
Policy: the defaults
  3 attempts in all; 5s for each, 15s for the whole call
  waits from 100ms, times 2 each, up to 10s; jitter full
  relent layers above and below share these attempts: three layers of three make 3 requests, not 27

Waits
  attempt  by the curve  drawn from    mean  at the cap
        1             -  no wait
        2         100ms  0s to 100ms   50ms         0 %
        3         200ms  0s to 200ms  100ms         0 %
  all waits together: 300ms by the curve, 150ms expected, 300ms at most

Time, if every attempt fails
                        expected  at most  attempts
  at once                  150ms    300ms  3
  by its timeout of 5s       15s      15s  3, cut by the deadline

Load factor: requests per call
  at worst                          3  while share and reserve last
  while calls succeed in the end  1.1  of a busy caller, in the long run
  in a long outage                  1  once they are spent

Retried
                                         GET HEAD OPTIONS  POST PATCH  POST PATCH with
                                         TRACE PUT DELETE              Idempotency-Key
  stale pooled connection, GOAWAY        at once           at once     at once
  refused, connect timeout, TLS failure  repeat            repeat      repeat
  REFUSED_STREAM, 421                    repeat            repeat      repeat
  reset after bytes were sent            repeat            no          no
  attempt timeout                        repeat            no          no
  500 502 503 504                        repeat            no          no
  429, 503 with Retry-After              after the hint    no          no
  repeat = \"idempotent-methods\"

Not retried
  408 409 425: not in retry_on
  every other 4xx, 501, 505: they fail the same way again
  the call's own deadline, a cancelled call, a peer's stop mark
  anything after the first response byte went to the caller

Budget
  Share: retries up to 10 % of the calls that succeeded in the last 10s.
  Reserve: 3 more for when the share is empty, full at the start; a successful call puts one back, at most 0.1 a second.
";

#[test]
fn nine_attempts_by_the_curve() {
    let report = json("--attempts 9 --base 100ms --cap 10s");
    let curve = [0.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0, 6400.0, 10_000.0];
    assert_eq!(numbers(&report, "attempt"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    assert_eq!(numbers(&report, "wait_ms"), curve);
    assert_eq!(numbers(&report, "wait_min_ms"), [0.0; 9]);
    assert_eq!(numbers(&report, "wait_max_ms"), curve);
    // The curve passes the default deadline of 15 s before the ninth.
    let in_time: Vec<_> =
        report["attempts"].as_array().unwrap().iter().map(|a| a["within_deadline"] == true).collect();
    assert_eq!(in_time, [true, true, true, true, true, true, true, true, false]);
    assert_eq!(report["waits"]["unjittered_ms"], 22_700);
    assert_eq!(report["total"]["fails_at_once"]["worst_ms"], 15_000);
    assert_eq!(report["total"]["fails_at_once"]["cut_by_deadline"], true);
    let text = relent_line("explain --attempts 9 --base 100ms --cap 10s").out;
    let said =
        "by the curve attempt 9 would start at 22.7s; the deadline of 15s ends the call after attempt 8";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_fraction_of_a_millisecond_stays_one() {
    let report = json("--base 1.5ms --cap 1.5ms --jitter equal");
    assert_eq!(numbers(&report, "wait_ms"), [0.0, 1.5, 1.5]);
    assert_eq!(numbers(&report, "wait_min_ms"), [0.0, 0.75, 0.75]);
}

#[test]
fn the_probability_of_the_cap_is_that_of_the_jitter() {
    let at_cap = |flags: &str| numbers(&json(flags), "probability_at_cap");
    let flags = "--attempts 5 --base 1s --cap 4s --deadline none --jitter";
    assert_eq!(at_cap(&format!("{flags} none")), [0.0, 0.0, 0.0, 1.0, 1.0]);
    assert!(at_cap(&format!("{flags} full")).iter().all(|p| *p < 1e-9));
    // U[1, 3], then min(4, U[1, 3·s]): P = E[(3s − 4) / (3s − 1)] over s in [4/3, 3] = (5/3 − ln(8/3)) / 2.
    let second = at_cap(&format!("{flags} decorrelated"))[2];
    assert!((second - (5.0 / 3.0 - (8.0_f64 / 3.0).ln()) / 2.0).abs() < 1e-4, "{second}");
    assert!(at_cap(&format!("{flags} decorrelated-bounded")).iter().all(|p| *p == 0.0));
}

#[test]
fn without_bounds_a_call_may_never_end() {
    let flags = "--attempt-timeout none --deadline none --budget-ratio none";
    let report = json(flags);
    assert!(report["policy"]["deadline_ms"].is_null() && report["total"]["times_out"].is_null());
    assert!(report["budget"].is_null());
    assert_eq!(report["load_factor"]["outage"], 3.0);
    assert_eq!(report["warnings"].as_array().unwrap().len(), 1);
    let text = relent_line(&format!("explain {flags}")).out;
    assert!(text.contains("if it never answers: for ever"), "{text}");
}

#[test]
fn a_fleet_adds_up_its_shares_and_reserves() {
    let report = json("--processes 1000 --rps 1");
    let fleet = &report["fleet"];
    assert_eq!((&fleet["share_per_process"], &fleet["reserve_per_process"]), (&1.into(), &3.into()));
    let factor = |when: &str| fleet[when]["load_factor"].as_f64().unwrap();
    assert_eq!((factor("peak_second"), factor("first_window"), factor("after")), (3.0, 1.4, 1.0));
    assert_eq!(fleet["spent_after_ms"], 10_000);
    assert!(json("")["fleet"].is_null());
}

#[test]
fn a_reserve_under_the_retries_of_a_call_is_warned_of() {
    let ran = relent_line("explain --attempts 6 --reserve 2");
    assert!(ran.out.contains("warning: a reserve of 2 is under attempts - 1 = 5"), "{}", ran.out);
    assert!(!relent_line("explain --attempts 6 --reserve 5").out.contains("warning:"));
}

#[test]
fn attempts_without_end_are_explained_in_a_table_with_one() {
    let ran = relent_line("explain --attempts 4294967295");
    assert!(ran.out.contains("  9..4294967295"), "{}", ran.out);
    assert!(ran.out.contains("only the first 1000 attempts are listed"));
    assert_eq!(json("--attempts 4294967295")["attempts"].as_array().unwrap().len(), 1000);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = program().args(["explain", "--attempts", "1000", "--deadline", "none"]).spawn().unwrap();
    drop(child.stdout.take());
    let ran = finish(child);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[test]
fn no_colour_where_nobody_sees_it() {
    let child = program().arg("explain").env("TERM", "xterm-256color").stdin(Stdio::null()).spawn().unwrap();
    assert!(!finish(child).out.contains('\x1b'));
}
