//! `relent run`: every attempt reads the same, or there is none.

use std::fs::File;

use crate::support::{file, finish, program, run_script_reading, script_args};

#[test]
fn what_came_through_a_pipe_comes_again() {
    let ran = run_script_reading("-q --base 0ms", "cat; exit 3", b"one\ntwo\n");
    assert_eq!((ran.code, ran.out.as_str()), (3, "one\ntwo\none\ntwo\none\ntwo\n"));
}

#[test]
fn a_half_read_input_is_repeated_whole() {
    let ran = run_script_reading("-q --base 0ms", "read line; echo $line; exit 3", b"one\ntwo\n");
    assert_eq!(ran.out, "one\none\none\n");
}

#[test]
fn the_limit_is_exact() {
    let script = "wc -c | tr -d ' '; exit 3";
    let whole = run_script_reading("-q --base 0ms", script, &[0; 65536]);
    assert_eq!(whole.out, "65536\n65536\n65536\n");
    let more = run_script_reading("--base 0ms", script, &[0; 65537]);
    assert_eq!((more.code, more.out.as_str()), (3, "65537\n"));
    let told =
        "relent: attempt 1 of 3: exit code 3, giving up: its stdin is used up, and too long to be kept\n";
    assert_eq!(more.err, told);
}

#[test]
fn an_attempt_that_read_nothing_leaves_a_long_input_whole() {
    let script = "[ $RELENT_ATTEMPT = 1 ] && exit 3; wc -c | tr -d ' '";
    let ran = run_script_reading("-q --base 0ms", script, &vec![0; 1_000_000]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "1000000\n"));
}

#[test]
fn a_file_is_rewound_to_where_it_stood() {
    let path = file("rewound", "input", "one\ntwo\n");
    let child = program()
        .args(script_args("-q --base 0ms --attempts 2", "cat; exit 3"))
        .stdin(File::open(path).unwrap())
        .spawn()
        .unwrap();
    assert_eq!(finish(child).out, "one\ntwo\none\ntwo\n");
}

#[test]
fn inherited_or_not_at_all_by_flag() {
    let ran = run_script_reading("-q --base 0ms --stdin inherit", "cat; exit 3", b"one\n");
    assert_eq!(ran.out, "one\n");
    let ran = run_script_reading("-q --base 0ms --stdin null", "cat; echo $RELENT_ATTEMPT; exit 3", b"one\n");
    assert_eq!(ran.out, "1\n2\n3\n");
}
