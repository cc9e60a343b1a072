//! The house's own chores: `cargo xtask check` holds the rules that a program can hold, `cargo xtask test` runs
//! every test there is, `cargo xtask loom` explores the interleavings of the core's shared state.
//! CI runs the first two and nothing else, so that what passes here passes there.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal: printing is what it does"
)]

mod cargo;
mod check;
mod graph;
mod house;
mod markdown;
mod report;
mod source;
mod stopwatch;
mod suite;
mod token;

use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
The chores of the relent workspace.

Usage: cargo xtask COMMAND

Commands:
  check [NAME...]                   Hold the house rules; only the named checks, if any are named.
  check --targets                   Build for wasm and bare metal, as far as rustup has those targets.
  test [--no-services] [FILTER...]  Run every test of the workspace: unit, integration and doc tests, loom, examples,
                                    the commands that the pages show.
                                    With filters: only tests whose path contains one of them.
                                    --no-services leaves out the stages that need a service on this machine.
  loom                              Explore the interleavings of relent-core's shared state.
  help                              Print this.

Examples:
  cargo xtask check                 What CI checks.
  cargo xtask check nevers lengths  Two of the checks, in a second.
  cargo xtask test budget           The tests about budgets.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all went well; an error is a command that could not be understood or started.
fn run(arguments: &[String]) -> Result<bool> {
    let Some((command, rest)) = arguments.split_first() else {
        print!("{HELP}");
        return Ok(true);
    };
    if rest.iter().any(|argument| argument == "--help" || argument == "-h") {
        print!("{HELP}");
        return Ok(true);
    }
    match command.as_str() {
        "check" => check::run(rest),
        "test" => suite::run(rest),
        "loom" => suite::run_loom(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(true)
        }
        unknown => bail!("there is no command `{unknown}`; `cargo xtask help` lists them"),
    }
}
