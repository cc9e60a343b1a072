//! `cargo xtask test`: every test there is, stage by stage. A later stage runs whatever an earlier one came to, and
//! the table at the end says how many tests each ran and what was left out.

mod console;
mod examples;
mod python;
mod tally;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use self::tally::Tally;
use crate::cargo;
use crate::house::House;
use crate::report::{Finding, Report, Verdict};
use crate::stopwatch::Stopwatch;

struct Stage {
    name: &'static str,
    what: &'static str,
    /// What must be running on this machine; a stage brings it up itself, and `--no-services` leaves the stage out.
    services: &'static [&'static str],
    run: fn(&House, &[String], &mut Tally) -> Result<Verdict>,
}

const STAGES: &[Stage] = &[
    Stage { name: "workspace", what: "unit, integration and doc tests", services: &[], run: workspace },
    Stage { name: "loom", what: "every interleaving of the core's shared state", services: &[], run: loom },
    Stage { name: "examples", what: "each example runs to its end", services: &[], run: examples::run },
    Stage { name: "console", what: "commands print what the pages show", services: &[], run: console::run },
];

pub(crate) fn run(arguments: &[String]) -> Result<bool> {
    let (flags, filters): (Vec<_>, Vec<_>) =
        arguments.iter().cloned().partition(|argument| argument.starts_with('-'));
    if let Some(unknown) = flags.iter().find(|flag| *flag != "--no-services") {
        bail!("there is no flag `{unknown}`; usage: cargo xtask test [--no-services] [FILTER...]");
    }
    run_stages(STAGES, &filters, flags.is_empty())
}

/// `cargo xtask loom`: that stage alone.
pub(crate) fn run_loom(arguments: &[String]) -> Result<bool> {
    if let Some(argument) = arguments.first() {
        bail!("`cargo xtask loom` takes no arguments, but was given `{argument}`");
    }
    run_stages(STAGES.iter().filter(|stage| stage.name == "loom"), &[], true)
}

fn run_stages(
    stages: impl IntoIterator<Item = &'static Stage>,
    filters: &[String],
    services: bool,
) -> Result<bool> {
    let house = House::survey()?;
    let (mut report, mut total) = (Report::default(), Tally::default());
    for Stage { name, what, services: needs, run } in stages {
        println!("\n== {name}: {what}");
        let watch = Stopwatch::start();
        let mut tally = Tally::default();
        let verdict = if !services && !needs.is_empty() {
            Verdict::Skipped(format!("--no-services; it needs {}", needs.join(", ")))
        } else {
            run(&house, filters, &mut tally)
                .unwrap_or_else(|error| Verdict::Failed(vec![Finding(format!("{error:#}"))]))
        };
        report.add(name, verdict, watch.read());
        total.add(&tally);
    }
    print!("\nStages:\n{report}\n{total}");
    if total.ran() == 0 {
        println!("No test ran.");
    }
    Ok(report.passed() && total.ran() > 0)
}

fn workspace(house: &House, filters: &[String], tally: &mut Tally) -> Result<Verdict> {
    let mut command = cargo::command(&house.root);
    if let Some(python) = python::prepare(house) {
        command.env("RELENT_PYTHON", python);
    }
    command.args(["test", "--workspace", "--all-features", "--no-fail-fast", "--"]).args(filters);
    tests(command, filters, tally)
}

/// The tests with `loom` in their path, built with the core's atomics replaced by loom's. In a folder of its own, since
/// the flag would otherwise throw away every other build; what explores is optimised, since it takes long.
fn loom(house: &House, filters: &[String], tally: &mut Tally) -> Result<Verdict> {
    if !filters.is_empty() && !filters.iter().any(|filter| filter.contains("loom")) {
        return Ok(Verdict::Skipped("the filters do not ask for loom".into()));
    }
    let mut command = cargo::command(&house.root);
    command.env("RUSTFLAGS", "--cfg relent_loom").args([
        "test",
        "--package",
        "relent-core",
        "--lib",
        "--target-dir",
    ]);
    command.arg(house.target.join("loom"));
    for package in ["relent-core", "loom", "generator"] {
        command.args(["--config", &format!("profile.dev.package.{package}.opt-level=3")]);
    }
    command.arg("--");
    if filters.is_empty() {
        command.arg("loom")
    } else {
        command.args(filters)
    };
    tests(command, filters, tally)
}

/// Runs a `cargo test` and passes on what it prints, counting.
fn tests(mut command: Command, filters: &[String], tally: &mut Tally) -> Result<Verdict> {
    let shown = cargo::shown(&command);
    println!("$ {shown}");
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run `{shown}`"))?;
    let output = child.stdout.take().expect("the child's stdout was asked for as a pipe");
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally.read(&line);
    }
    let status = child.wait()?;
    let mut findings: Vec<Finding> = tally.failures().map(|test| Finding::at(test, "failed")).collect();
    if !status.success() && findings.is_empty() {
        findings.push(Finding::at(&shown, status));
    }
    if tally.ran() == 0 && filters.is_empty() && findings.is_empty() {
        findings.push(Finding("ran no test".to_owned()));
    }
    Ok(Verdict::of(findings, tally.summary()))
}
