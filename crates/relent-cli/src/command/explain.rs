//! `relent explain`: what a policy does, in numbers, before it does it.
//!
//! The figures come from the shipped engine: its curve, its ranges, its session. Laws and sums are worked out around it,
//! and tested against its draws.

mod advice;
mod alone;
mod budget;
mod laws;
mod load;
mod matrix;
mod report;
mod text;
mod totals;
mod walk;

use std::io::{self, Write};
use std::path::Path;

use relent_core::Policy;

use crate::args::{ExplainArgs, Format, Standard};
use crate::exit::{Exit, Failure};
use crate::render::Paint;
use report::Report;

/// Prints the report of the policy that was asked for.
pub(crate) fn explain(args: &ExplainArgs) -> Result<Exit, Failure> {
    let (policy, source) = policy(args)?;
    let fleet = args.processes.zip(args.rps).map(|(processes, rps)| (processes.get(), rps.0));
    let report = Report::of(&policy, source, fleet);
    let mut out = io::stdout().lock();
    match args.format {
        Format::Text => text::write(&report, &mut out, Paint::stdout())?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &report).map_err(io::Error::from)?;
            writeln!(out)?;
        }
    }
    Ok(Exit::Success)
}

/// The policy, and where it comes from in words.
fn policy(args: &ExplainArgs) -> Result<(Policy, String), Failure> {
    let given = args.flags.given();
    match (&args.file, &args.policy, given.first()) {
        (Some(_), _, Some(flag)) => Err(Failure::usage(format!(
            "a policy file and {flag} contradict each other: change the policy in the file, or leave the file out"
        ))),
        (Some(file), name, None) => from_file(file, name.as_deref()),
        (None, Some(_), _) => Err(Failure::usage(
            "--policy names a policy of a file: give the file, as in relent explain relent.toml --policy NAME",
        )),
        (None, None, first) => {
            let source =
                if first.is_some() { "flags, and the defaults for the rest" } else { "the defaults" };
            Ok((args.flags.build(Standard::Library)?, source.into()))
        }
    }
}

fn from_file(file: &Path, name: Option<&str>) -> Result<(Policy, String), Failure> {
    let config = relent_config::load(file).map_err(Failure::usage)?;
    let shown = file.display();
    let name = match (name, config.policies.len()) {
        (Some(name), _) => name.to_owned(),
        (None, 0) => {
            return Err(Failure::usage(format!(
                "{shown} has no policy: add one, such as [policy.api], or leave the file out"
            )));
        }
        (None, 1) => config.policies.keys().next().cloned().unwrap_or_default(),
        (None, _) => {
            let names: Vec<&str> = config.policies.keys().map(String::as_str).collect();
            return Err(Failure::usage(format!(
                "{shown} has {} policies: choose one with --policy {}",
                names.len(),
                names.join(" or --policy ")
            )));
        }
    };
    let policy =
        config.policy(&name).map_err(|error| Failure::usage(format!("--policy: {error} in {shown}")))?;
    Ok((policy.clone(), format!("{name} in {shown}")))
}
