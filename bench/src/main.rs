//! `cargo run --release -p relent-bench [CASE...]`: what relent costs, counted rather than timed.
//! Comparisons with other libraries live in a package of their own, outside of the workspace: cargo would compile
//! theirs with ours.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the terminal: printing is what it does"
)]

mod cases;
mod counting;
mod waiting;

use std::process::ExitCode;

use cases::CASES;
use counting::{Counting, counted};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    if names == ["waiting"] {
        waiting::report(1_000_000);
        return ExitCode::SUCCESS;
    }
    if let Some(unknown) = names.iter().find(|name| !CASES.iter().any(|case| case.name == *name)) {
        let known: Vec<_> = CASES.iter().map(|case| case.name).collect();
        eprintln!("relent-bench: there is no case `{unknown}`; the cases are waiting, {}", known.join(", "));
        return ExitCode::from(2);
    }
    println!("{:<16} {:>11}  what", "case", "allocations");
    for case in CASES.iter().filter(|case| names.is_empty() || names.iter().any(|name| name == case.name)) {
        let mut work = (case.prepare)();
        let ((), counts) = counted(&mut work);
        println!("{:<16} {:>11}  {}", case.name, counts.allocations, case.what);
    }
    ExitCode::SUCCESS
}
