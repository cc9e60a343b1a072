//! Every package is under the workspace's lint table and the root's clippy.toml. A package that must relax a lint (the
//! bench's allocator is `unsafe`) repeats the table and differs in that line alone; a clippy.toml of its own would
//! replace the root's, bans on clocks and all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::house::House;
use crate::report::{Finding, Verdict};

/// Package folder, lint, and the level it has there.
const RELAXED: &[(&str, &str, &str)] = &[("bench", "rust.unsafe_code", "\"allow\"")];

pub(crate) fn check(house: &House) -> Result<Verdict> {
    let read = |path: String| {
        fs::read_to_string(house.root.join(&path)).with_context(|| format!("cannot read {path}"))
    };
    let workspace = table(&read("Cargo.toml".into())?, "workspace.lints");
    let mut findings = Vec::new();
    for member in &house.graph.members {
        let path = format!("{}/Cargo.toml", member.folder);
        findings.extend(differences(&member.folder, &path, &read(path.clone())?, &workspace));
        findings.extend(own_settings(&house.root, &member.folder));
    }
    Ok(Verdict::of(findings, format_args!("{} packages", house.graph.members.len())))
}

fn own_settings(root: &Path, folder: &str) -> Vec<Finding> {
    let files = ["clippy.toml", ".clippy.toml"].map(|name| format!("{folder}/{name}"));
    let there = files.iter().filter(|path| root.join(path).exists());
    there.map(|path| Finding::at(path, "replaces the root's clippy.toml; move its settings there")).collect()
}

type Table = BTreeMap<String, String>;

fn differences(folder: &str, path: &str, manifest: &str, workspace: &Table) -> Vec<Finding> {
    let own = table(manifest, "lints");
    if own.get("workspace").is_some_and(|value| value == "true") {
        return Vec::new();
    }
    let relaxed: Table = RELAXED
        .iter()
        .filter(|(place, ..)| *place == folder)
        .map(|(_, lint, level)| (lint.to_string(), level.to_string()))
        .collect();
    if relaxed.is_empty() {
        let what = "is not under the workspace's lints; add `[lints]` with `workspace = true`";
        return vec![Finding::at(path, what)];
    }
    let mut wanted = workspace.clone();
    wanted.extend(relaxed);
    let all: BTreeSet<_> = wanted.keys().chain(own.keys()).collect();
    all.into_iter()
        .filter(|lint| wanted.get(*lint) != own.get(*lint))
        .map(|lint| {
            let shown = |table: &Table| table.get(lint).cloned().unwrap_or_else(|| "nothing".into());
            Finding::at(path, format_args!("lint {lint} is {}, should be {}", shown(&own), shown(&wanted)))
        })
        .collect()
}

/// The entries of `[head]` and its sub-tables, keyed by what follows the head. Reads manifests as we write them: one
/// entry a line.
fn table(manifest: &str, head: &str) -> Table {
    let mut entries = Table::new();
    let mut section: Option<String> = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name
                .strip_prefix(head)
                .filter(|rest| rest.is_empty() || rest.starts_with('.'))
                .map(|rest| rest.strip_prefix('.').map_or_else(String::new, |name| format!("{name}.")));
        } else if let (Some(prefix), Some((key, value)), false) =
            (&section, line.split_once('='), line.starts_with('#'))
        {
            entries.insert(format!("{prefix}{}", key.trim()), value.trim().to_owned());
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n# why\nunreachable_pub = \"warn\"\n\n[profile.dev]\ndebug = 1\n";

    fn found(folder: &str, manifest: &str) -> Vec<String> {
        let findings = differences(folder, "x/Cargo.toml", manifest, &table(WORKSPACE, "workspace.lints"));
        findings.into_iter().map(|Finding(finding)| finding).collect()
    }

    #[test]
    fn a_package_without_the_table_is_named() {
        assert_eq!(found("crates/a", "[package]\nname = \"a\"\n[lints]\nworkspace = true\n"), [""; 0]);
        let missing = found("crates/a", "[package]\nname = \"a\"\n[lints.rust]\nunsafe_code = \"allow\"\n");
        assert!(missing[0].starts_with("x/Cargo.toml: is not under the workspace's lints"), "{missing:?}");
    }

    #[test]
    fn a_relaxed_package_differs_in_its_one_lint_only() {
        assert_eq!(
            found("bench", "[lints.rust]\nunsafe_code = \"allow\"\nunreachable_pub = \"warn\"\n"),
            [""; 0]
        );
        assert_eq!(
            found("bench", "[lints.rust]\nunsafe_code = \"allow\"\n[lints.clippy]\nall = \"allow\"\n"),
            [
                "x/Cargo.toml: lint clippy.all is \"allow\", should be nothing",
                "x/Cargo.toml: lint rust.unreachable_pub is nothing, should be \"warn\"",
            ]
        );
    }
}
