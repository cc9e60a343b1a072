//! The checks that are cargo's own commands.

use std::io::IsTerminal;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::cargo;
use crate::house::House;
use crate::report::{Finding, Verdict};

pub(crate) fn format(house: &House) -> Result<Verdict> {
    let mut command = cargo::command(&house.root);
    command.args(["fmt", "--all", "--check"]);
    if !std::io::stdout().is_terminal() {
        // rustfmt paints its differences also into a log file.
        command.args(["--", "--color", "never"]);
    }
    all(vec![command])
}

pub(crate) fn clippy(house: &House) -> Result<Verdict> {
    let mut command = cargo::command(&house.root);
    command.args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--keep-going",
        "--",
        "-D",
        "warnings",
    ]);
    all(vec![command])
}

/// Features only add: each published crate must stand with none of them and with each alone. Clippy rather than
/// `cargo check`, because it can refuse warnings without a change of RUSTFLAGS, which would build everything anew.
pub(crate) fn features(house: &House) -> Result<Verdict> {
    let with_features =
        house.graph.members.iter().filter(|member| member.published && !member.features.is_empty());
    let mut commands = Vec::new();
    for member in with_features {
        let alone = member.features.iter().filter(|feature| *feature != "default");
        for features in std::iter::once("").chain(alone.map(String::as_str)) {
            let mut command = cargo::command(&house.root);
            command.args(["clippy", "--quiet", "--package", &member.name, "--no-default-features"]);
            if !features.is_empty() {
                command.args(["--features", features]);
            }
            command.args(["--", "-D", "warnings"]);
            commands.push(command);
        }
    }
    all(commands)
}

pub(crate) fn docs(house: &House) -> Result<Verdict> {
    let mut command = cargo::command(&house.root);
    command.args(["doc", "--workspace", "--all-features", "--no-deps"]).env("RUSTDOCFLAGS", "-Dwarnings");
    all(vec![command])
}

pub(crate) fn deny(house: &House) -> Result<Verdict> {
    let installed =
        Command::new("cargo-deny").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !installed.is_ok_and(|status| status.success()) {
        return Ok(Verdict::Skipped("cargo-deny is not installed (cargo install cargo-deny)".into()));
    }
    let mut command = cargo::command(&house.root);
    command.args(["deny", "--all-features", "check", "bans", "licenses", "sources"]);
    all(vec![command])
}

/// Runs every command, whatever the ones before came to; their output is the user's.
pub(super) fn all(commands: Vec<Command>) -> Result<Verdict> {
    let count = commands.len();
    let mut findings = Vec::new();
    for mut command in commands {
        let shown = cargo::shown(&command);
        println!("$ {shown}");
        let status = command.status().with_context(|| format!("cannot run `{shown}`"))?;
        if !status.success() {
            findings.push(Finding::at(&shown, status));
        }
    }
    Ok(Verdict::of(findings, if count == 1 { String::new() } else { format!("{count} feature sets") }))
}
