//! The program `relent`: retry a command, retry on the wire, explain a policy, watch a demonstration.
//!
//! This file parses, runs and exits. What was typed is in `args`, what was meant in `command`, what the exit codes say in
//! `exit`, and how things look on a terminal in `render`.

mod args;
mod command;
mod demo;
mod exit;
mod render;

use std::process::ExitCode;

use clap::Parser;

use args::Args;

fn main() -> ExitCode {
    let ended = match Args::try_parse() {
        Ok(args) => command::run(&args.command),
        // Help and version are answers; everything else is a usage error. Both know their text and stream.
        Err(answer) => exit::answered(&answer),
    };
    exit::finish(ended)
}
