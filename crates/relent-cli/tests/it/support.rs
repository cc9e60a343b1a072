//! Runs the built program, and makes files for it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program, with nothing to read.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relent"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it with these arguments.
pub(crate) fn relent<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Ran {
    finish(program().args(args).spawn().unwrap())
}

/// Runs it with the words of `line` as arguments.
pub(crate) fn relent_line(line: &str) -> Ran {
    relent(line.split_whitespace())
}

/// `relent run` with flags, on a shell script.
pub(crate) fn run_script(flags: &str, script: &str) -> Ran {
    relent(script_args(flags, script))
}

/// The same with something to read.
pub(crate) fn run_script_reading(flags: &str, script: &str, input: &[u8]) -> Ran {
    let mut child = program().args(script_args(flags, script)).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // From a thread: a pipe takes only so much before somebody reads. Whoever ends without reading all of it may.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let ran = finish(child);
    writer.join().unwrap();
    ran
}

/// The arguments of `relent run` on a shell script.
pub(crate) fn script_args(flags: &str, script: &str) -> Vec<String> {
    let flags = flags.split_whitespace();
    ["run"].into_iter().chain(flags).chain(["--", "sh", "-c", script]).map(String::from).collect()
}

/// Waits for its end.
pub(crate) fn finish(child: std::process::Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// A folder of the test's own, empty.
pub(crate) fn folder(test: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file with this text, in a folder of its own.
pub(crate) fn file(test: &str, name: &str, text: &str) -> PathBuf {
    let path = folder(test).join(name);
    fs::write(&path, text).unwrap();
    path
}
