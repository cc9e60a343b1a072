//! Runs every package under `examples/` as a user would: built alone, with its own features only, to its end.

use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::tally::Tally;
use crate::cargo;
use crate::graph::Member;
use crate::house::House;
use crate::report::{Finding, Verdict};
use crate::stopwatch::{Stopwatch, pause};

/// No example has more to show than this; one that waits for ever would otherwise hold the whole run.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

pub(super) fn run(house: &House, filters: &[String], tally: &mut Tally) -> Result<Verdict> {
    if !filters.is_empty() {
        return Ok(Verdict::Skipped("filters choose among tests".into()));
    }
    let programs = house.graph.members.iter().filter(|member| member.folder.starts_with("examples/"));
    let mut findings = Vec::new();
    for member in programs {
        let outcome = build(house, member).and_then(|program| run_to_end(house, member, &program));
        tally.count(&member.name, outcome.is_ok());
        if let Err(error) = outcome {
            findings.push(Finding::at(&member.folder, format_args!("{error:#}")));
        }
    }
    if tally.ran() == 0 {
        return Ok(Verdict::Skipped("there is no package under examples/".into()));
    }
    Ok(Verdict::of(findings, tally.summary()))
}

/// The program that the package builds.
pub(super) fn build(house: &House, member: &Member) -> Result<PathBuf> {
    let mut command = cargo::command(&house.root);
    command.args([
        "build",
        "--quiet",
        "--package",
        &member.name,
        "--message-format",
        "json-render-diagnostics",
    ]);
    println!("$ {}", cargo::shown(&command));
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo build")?;
    if !output.status.success() {
        bail!("does not build");
    }
    let mut programs = programs(&String::from_utf8_lossy(&output.stdout), &member.id);
    match (programs.pop(), programs.pop()) {
        (Some(program), None) => Ok(program),
        (None, _) => bail!("has no program to run; an example is a package with a main.rs"),
        (Some(_), Some(_)) => bail!("has several programs; one task, one package"),
    }
}

#[derive(Deserialize)]
struct Message {
    package_id: Option<String>,
    executable: Option<PathBuf>,
}

/// The executables of one package among cargo's build messages, one JSON object a line.
fn programs(messages: &str, package: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    messages
        .filter(|message| message.package_id.as_deref() == Some(package))
        .filter_map(|m| m.executable)
        .collect()
}

fn run_to_end(house: &House, member: &Member, program: &PathBuf) -> Result<()> {
    println!("$ {}", member.name);
    let mut command = Command::new(program);
    command.current_dir(house.root.join(&member.folder)).stdin(Stdio::null());
    let status = within(&mut command, LIMIT)?;
    if !status.success() {
        bail!("ended with {status}");
    }
    Ok(())
}

pub(super) fn within(command: &mut Command, limit: Duration) -> Result<ExitStatus> {
    let mut child = command.spawn().context("cannot be started")?;
    let watch = Stopwatch::start();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if watch.read() > limit {
            child.kill()?;
            child.wait()?;
            bail!("did not end within {} s", limit.as_secs());
        }
        pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_s_own_program_is_found_among_build_messages() {
        let messages = r#"{"reason":"compiler-artifact","package_id":"dep","executable":null}
{"reason":"compiler-artifact","package_id":"other","executable":"/t/other"}
{"reason":"compiler-artifact","package_id":"mine","executable":"/t/mine"}
not json
{"reason":"build-finished","success":true}"#;
        assert_eq!(programs(messages, "mine"), [PathBuf::from("/t/mine")]);
        assert!(programs(messages, "dep").is_empty());
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped() {
        let error =
            within(Command::new("sleep").arg("60"), Duration::ZERO).expect_err("sleeps longer than that");
        assert_eq!(error.to_string(), "did not end within 0 s");
        assert!(within(&mut Command::new("true"), LIMIT).expect("true runs").success());
    }
}
