//! Help, and what a wrong flag gets to hear.

use crate::support::{relent, relent_line};

#[test]
fn every_wrong_flag_is_named_with_what_is_wrong_and_the_mend() {
    let cases = [
        ("explain --base 5", "'--base <DURATION>': it has no unit; write 5ms or 5s"),
        ("explain --base -1s", "'--base <DURATION>': a length can't be negative; write"),
        ("explain --cap soon", "'--cap <DURATION>'"),
        ("explain --jitter ful", "'--jitter <JITTER>': no such jitter; write none, full, equal"),
        ("explain --jitter additive", "additive needs its share; write additive=0.2"),
        ("explain --multiplier -2", "'--multiplier <FACTOR>': not a plain non-negative number"),
        ("explain --attempts -1", "'--attempts <N>'"),
        ("explain --attempts 0", "attempts is 0"),
        ("explain --budget-ratio 1.5", "budget ratio 1.5 is above 1: take a share from 0 to 1"),
        ("explain --budget-ratio none --reserve 3", "--reserve describes one: leave one of them out"),
        ("explain --processes 0 --rps 1", "'--processes <N>'"),
        ("explain --processes 5", "--rps"),
        ("explain --rps 0 --processes 1", "'--rps <R>': not a rate; write a number above zero"),
        ("explain --format yaml", "'--format <FORMAT>'"),
        ("explain --attempt 3", "--attempts"),
        ("run --retry-on-exit 0 -- true", "0 is success, there is nothing to retry"),
        ("run --retry-on-exit 120-130 -- true", "leave 126 and 127 out"),
        ("run --attempts 3", "<COMMAND>"),
        ("run --base 20s -- true", "cap 10s is below base 20s"),
        ("rn -- true", "'rn'"),
    ];
    for (line, said) in cases {
        let ran = relent_line(line);
        assert_eq!(ran.code, 2, "{line}: {ran:?}");
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
        assert!(ran.out.is_empty(), "{line}: {}", ran.out);
    }
}

#[test]
fn a_contradiction_with_a_default_names_it() {
    let ran = relent_line("explain --deadline 2s");
    let expected = "\
error: attempt_timeout 5s is not below deadline 2s: lower attempt_timeout, raise deadline, or say that there is no attempt timeout
  --attempt-timeout 5s is the default, --deadline 2s was given; none in place of a length says that there is no such bound
";
    assert_eq!((ran.code, ran.err.as_str()), (2, expected));
    assert_eq!(relent_line("explain --deadline 2s --attempt-timeout none").code, 0);
    // `run` has no attempt timeout to contradict.
    assert_eq!(relent_line("run --quiet --deadline 2h -- true").code, 0);
}

#[test]
fn help_has_examples_and_goes_to_stdout() {
    for (line, said) in [
        ("--help", "Exit codes:"),
        ("run --help", "relent run --attempts 5"),
        ("explain --help", "relent explain relent.toml --policy api"),
        ("--version", "relent 0."),
    ] {
        let ran = relent_line(line);
        assert_eq!(ran.code, 0, "{line}");
        assert!(ran.out.contains(said) && ran.err.is_empty(), "{line}: {ran:?}");
    }
}

#[test]
fn nothing_at_all_is_a_usage_error() {
    let ran = relent::<&str>([]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("Usage:"), "{}", ran.err);
}
