//! `relent run`: what is retried, what is passed through, what is told.

use crate::support::{relent_line, run_script};

#[test]
fn a_command_is_retried_until_it_succeeds() {
    let ran = run_script("--base 0ms", "echo out $RELENT_ATTEMPT; [ $RELENT_ATTEMPT = 2 ]");
    assert_eq!((ran.code, ran.out.as_str()), (0, "out 1\nout 2\n"));
    let told = "\
relent: attempt 1 of 3: exit code 1, next at once
relent: attempt 2 of 3: exit code 0
";
    assert_eq!(ran.err, told);
}

#[test]
fn the_last_exit_code_is_passed_through() {
    let ran = run_script("--base 0ms", "exit 1$RELENT_ATTEMPT");
    assert_eq!(ran.code, 13);
    let told = "\
relent: attempt 1 of 3: exit code 11, next at once
relent: attempt 2 of 3: exit code 12, next at once
relent: attempt 3 of 3: exit code 13, giving up: all attempts are made
";
    assert_eq!(ran.err, told);
}

#[test]
fn output_and_errors_of_the_command_are_its_own() {
    let ran = run_script("--quiet --base 0ms", "printf 'a\\n\\nb'; printf 'c\\td' >&2");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "a\n\nb", "c\td"));
}

#[test]
fn quiet_says_nothing_even_when_it_gives_up() {
    let ran = run_script("-q --base 0ms", "exit 4");
    assert_eq!((ran.code, ran.err.as_str()), (4, ""));
}

#[test]
fn only_listed_codes_are_retried() {
    let attempts = |flags: &str, script: &str| {
        let ran = run_script(&format!("--base 0ms {flags}"), &format!("echo; {script}"));
        (ran.code, ran.out.len())
    };
    assert_eq!(attempts("--retry-on-exit 1,70-79", "exit 75"), (75, 3));
    assert_eq!(attempts("--retry-on-exit 1,70-79", "exit 3"), (3, 1));
    assert_eq!(attempts("", "exit 255"), (255, 3));
    // Not executable and not found fail the same way again, whoever says so.
    assert_eq!(attempts("", "exit 126"), (126, 1));
    assert_eq!(attempts("", "no-such-command-at-all"), (127, 1));
}

#[test]
fn a_signal_counts_as_128_and_its_number() {
    let ran = run_script("--base 0ms --attempts 2", "kill -9 $$");
    assert_eq!(ran.code, 137);
    assert!(ran.err.contains("attempt 1 of 2: killed by SIGKILL, next at once"), "{}", ran.err);
    let ran = run_script("--base 0ms --retry-on-exit 1", "kill -9 $$");
    assert!(ran.err.contains("killed by SIGKILL, giving up: that is not an exit to retry on"), "{}", ran.err);
    assert_eq!(run_script("--base 0ms --retry-on-exit 137 -q", "echo; kill -9 $$").out, "\n\n\n");
}

#[test]
fn what_cannot_be_started_is_told_apart_as_a_shell_does() {
    let ran = relent_line("run -- no-such-command-at-all");
    assert_eq!(ran.code, 127);
    assert!(
        ran.err.contains("error: no-such-command-at-all: there is no such command; check its name, and PATH"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("attempt 1 of 3: not started, giving up"), "{}", ran.err);
    let ran = relent_line("run --quiet -- /");
    assert_eq!(ran.code, 126);
    assert!(ran.err.starts_with("error: /: it may not be executed"), "{}", ran.err);
}

#[test]
fn flags_after_the_command_are_the_commands() {
    let ran = relent_line("run -q echo --attempts 2 -- --help");
    assert_eq!((ran.code, ran.out.as_str()), (0, "--attempts 2 -- --help\n"));
}

#[test]
fn no_budget_unless_a_flag_asks_for_one() {
    assert_eq!(run_script("-q --base 0ms --attempts 20", "echo; false").out.len(), 20);
    let ran = run_script("--base 0ms --attempts 20 --reserve 2", "echo; false");
    assert_eq!((ran.code, ran.out.len()), (1, 3));
    assert!(
        ran.err.contains("attempt 3 of 20: exit code 1, giving up: the retry budget is spent"),
        "{}",
        ran.err
    );
}
