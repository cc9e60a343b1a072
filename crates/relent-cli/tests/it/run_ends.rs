//! `relent run`: attempts that run out of time, and signals. Nothing here measures time: a command that would never end by
//! itself has ended, or the test hangs.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use crate::support::{finish, folder, program, relent, run_script, script_args};

/// A pipe with a name, that its readers read for ever: this end is never written to.
struct Fifo {
    path: PathBuf,
    open: File,
}

impl Fifo {
    fn new(test: &str) -> Fifo {
        let path = folder(test).join("fifo");
        mkfifo(&path, Mode::S_IRWXU).unwrap();
        let open = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        Fifo { path, open }
    }

    fn name(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// Gives up this end, and asks whether nobody else reads. A test beside this one that is just starting a program
    /// holds all open files for a moment, so the question is put more than once.
    fn closes_unread(self) -> bool {
        let Fifo { path, open } = self;
        drop(open);
        (0..100_000).any(|_| {
            std::thread::yield_now();
            !is_read(&path)
        })
    }
}

fn is_read(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    opened.map_or_else(|error| error.raw_os_error() != Some(Errno::ENXIO as i32), |_| true)
}

/// Whether whoever started the tests has them ignore this signal, as a shell's background jobs ignore SIGINT: what ignores
/// a signal passes that on to its programs.
fn ignored_here(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal as i32 - 1) & 1 == 1)
}

#[test]
fn an_attempt_out_of_time_ends_with_its_whole_group() {
    let fifo = Fifo::new("group");
    let script = format!("cat {0} & cat {0} | cat & cat {0}", fifo.name());
    let ran = run_script("--attempt-timeout 20ms --base 0ms --attempts 2", &script);
    assert_eq!(ran.code, 124);
    let told = "\
relent: attempt 1 of 2: out of time, next at once
relent: attempt 2 of 2: out of time, giving up: all attempts are made
";
    assert_eq!(ran.err, told);
    assert!(fifo.closes_unread());
}

#[test]
fn who_ignores_sigterm_is_killed_after_the_grace() {
    let fifo = Fifo::new("kill");
    let script = format!("trap '' TERM; cat {0} & cat {0}", fifo.name());
    let ran = run_script("-q --attempt-timeout 20ms --kill-after 1ms --base 0ms --attempts 2", &script);
    assert_eq!(ran.code, 124);
    assert!(fifo.closes_unread());
}

#[test]
fn an_attempt_that_timed_out_failed_even_if_it_says_otherwise() {
    let fifo = Fifo::new("says");
    let script = format!("trap 'exit 0' TERM; cat {} & wait", fifo.name());
    assert_eq!(run_script("-q --attempt-timeout 20ms --attempts 1", &script).code, 124);
}

#[test]
fn the_deadline_ends_the_call_in_the_middle_of_an_attempt() {
    let fifo = Fifo::new("deadline");
    let ran = run_script("--deadline 50ms --base 0ms", &format!("cat {}", fifo.name()));
    assert_eq!(ran.code, 124);
    assert_eq!(ran.err, "relent: attempt 1 of 3: out of time, giving up: the deadline has passed\n");
    assert!(fifo.closes_unread());
}

/// A run whose command says when it is ready.
fn started(flags: &str, script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = program().args(script_args(flags, script)).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    (child, out)
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

#[test]
fn signals_are_handed_on_and_no_attempt_follows() {
    let all = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
    for signal in all.into_iter().filter(|signal| !ignored_here(*signal)) {
        let fifo = Fifo::new("handed-on");
        let name = signal.as_str().trim_start_matches("SIG");
        let script = format!(
            "trap 'echo heard; exit 5' {name}; echo ready; cat {} >/dev/null 2>&1 & wait",
            fifo.name()
        );
        let (child, mut out) = started("--base 0ms", &script);
        send(&child, signal);
        let ran = finish(child);
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!((ran.code, rest.as_str()), (5, "heard\n"), "{signal}");
        assert_eq!(ran.err, "relent: attempt 1 of 3: exit code 5, called off\n", "{signal}");
    }
}

#[test]
fn a_command_that_a_handed_on_signal_ends_leaves_its_code() {
    let fifo = Fifo::new("ends");
    let (child, _out) = started("-q --base 0ms", &format!("echo ready; cat {}", fifo.name()));
    send(&child, Signal::SIGTERM);
    assert_eq!(finish(child).code, 143);
}

#[test]
fn success_after_a_signal_is_success() {
    let fifo = Fifo::new("graceful");
    let script = format!("trap 'exit 0' TERM; echo ready; cat {} >/dev/null 2>&1 & wait", fifo.name());
    let (child, _out) = started("--base 0ms", &script);
    send(&child, Signal::SIGTERM);
    let ran = finish(child);
    assert_eq!((ran.code, ran.err.as_str()), (0, "relent: attempt 1 of 3: exit code 0\n"));
}

#[test]
fn other_signals_are_handed_on_without_calling_off() {
    let script = "[ $RELENT_ATTEMPT = 2 ] && exit 0; trap 'exit 6' USR1; echo ready; while :; do :; done";
    let (child, _out) = started("--base 0ms", script);
    send(&child, Signal::SIGUSR1);
    let ran = finish(child);
    assert_eq!(ran.code, 0);
    assert!(ran.err.starts_with("relent: attempt 1 of 3: exit code 6, next at once\n"), "{}", ran.err);
}

#[test]
fn a_signal_during_the_wait_ends_it() {
    let mut child =
        program().args(script_args("--base 1h --cap 1h --jitter none", "exit 1")).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    err.read_line(&mut line).unwrap();
    assert_eq!(line, "relent: attempt 1 of 3: exit code 1, next in 1h\n");
    send(&child, Signal::SIGTERM);
    assert_eq!(finish(child).code, 143);
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "relent: called off during the wait\n");
}

#[test]
fn an_ignored_signal_stays_ignored() {
    // nohup ignores SIGHUP for what it starts; were it handed on, the command would end by it.
    let script = "exec 3>&1; trap '' HUP; \"$0\" run -q --base 0ms -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo lives'";
    let mut command = Command::new("sh");
    let output = command.args(["-c", script, env!("CARGO_BIN_EXE_relent")]).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "lives\n");
    assert!(output.status.success());
}

#[test]
fn a_success_needs_no_signal_and_no_terminal() {
    assert_eq!(relent(["run", "-q", "--", "true"]).code, 0);
}
