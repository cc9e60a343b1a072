//! `cargo xtask check`: the rules of the house that a program can hold, cheapest first.
//! Every check runs, whatever the others found; the table at the end says what each came to.

mod commands;
mod exemptions;
mod lengths;
mod lints;
mod nevers;
mod pages;
mod targets;

use anyhow::{Result, bail};

use crate::house::House;
use crate::report::{Finding, Report, Verdict};
use crate::stopwatch::Stopwatch;

struct Check {
    name: &'static str,
    what: &'static str,
    run: fn(&House) -> Result<Verdict>,
}

const CHECKS: &[Check] = &[
    Check { name: "nevers", what: "no crate depends on what it must not know", run: nevers::check },
    Check { name: "lints", what: "every package is under the workspace's lints", run: lints::check },
    Check { name: "lengths", what: "no long function, file or map", run: lengths::check },
    Check {
        name: "exemptions",
        what: "unsafe and real clocks only where the house allows them",
        run: exemptions::check,
    },
    Check {
        name: "pages",
        what: "what the pages quote is tested code, and their links lead somewhere",
        run: pages::check,
    },
    Check { name: "format", what: "rustfmt has nothing to change", run: commands::format },
    Check { name: "clippy", what: "no warning, with every target and feature", run: commands::clippy },
    Check { name: "features", what: "no warning with each feature alone, or none", run: commands::features },
    Check { name: "docs", what: "rustdoc without warnings", run: commands::docs },
    Check {
        name: "deny",
        what: "licences, bans and sources, where cargo-deny is installed",
        run: commands::deny,
    },
];

/// What `--targets` asks for: other platforms, which are no part of the rest.
const TARGETS: Check = Check {
    name: "targets",
    what: "the core builds for wasm and bare metal, where installed",
    run: targets::check,
};

/// Runs the named checks, or all.
pub(crate) fn run(names: &[String]) -> Result<bool> {
    if names == ["--targets"] {
        return Ok(hold(&House::survey()?, &[&TARGETS]));
    }
    if let Some(unknown) = names.iter().find(|name| !CHECKS.iter().any(|check| check.name == *name)) {
        let known: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        bail!("there is no check `{unknown}`; the checks are {}", known.join(", "));
    }
    let house = House::survey()?;
    let chosen: Vec<&Check> = CHECKS
        .iter()
        .filter(|check| names.is_empty() || names.iter().any(|name| name == check.name))
        .collect();
    Ok(hold(&house, &chosen))
}

/// Whether all of them passed.
fn hold(house: &House, checks: &[&Check]) -> bool {
    let mut report = Report::default();
    for check in checks {
        println!("== {}: {}", check.name, check.what);
        let watch = Stopwatch::start();
        let verdict =
            (check.run)(house).unwrap_or_else(|error| Verdict::Failed(vec![Finding(format!("{error:#}"))]));
        report.add(check.name, verdict, watch.read());
    }
    print!("\nChecks:\n{report}");
    report.passed()
}
