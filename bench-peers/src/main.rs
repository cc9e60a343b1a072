//! relent beside its peers, on the same work: one case per line, run many times.
//!
//! `peers --list` names the cases; `peers --case NAME --iterations N` runs one, for an instruction counter
//! (`count.sh`); `peers --deposits` lets two threads deposit into budgets; `peers --sizes` says how many bytes a call is. The work is a function that is not inlined, behind an async fn that is ready at once.
mod allocations;
mod breakers;
mod cases;
mod deposits;
mod sizes;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let cases = cases::all();
    match words[..] {
        ["--list"] => {
            for case in &cases {
                println!("{}", case.name);
            }
            ExitCode::SUCCESS
        }
        ["--sizes"] => {
            for (name, bytes) in sizes::all() {
                println!("{name:<44} {bytes} bytes");
            }
            ExitCode::SUCCESS
        }
        ["--allocations"] => {
            for case in &cases {
                (case.run)(100);
                let before = allocations::count();
                (case.run)(1000);
                println!("{:<44} {} allocations in 1000 calls", case.name, allocations::count() - before);
            }
            ExitCode::SUCCESS
        }
        ["--deposits"] => {
            deposits::print();
            ExitCode::SUCCESS
        }
        ["--case", name, "--iterations", n] => match (cases.iter().find(|case| case.name == name), n.parse())
        {
            (Some(case), Ok(iterations)) => {
                (case.run)(iterations);
                ExitCode::SUCCESS
            }
            _ => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: peers --list | --allocations | --sizes | --deposits | --case NAME --iterations N");
    ExitCode::from(2)
}
