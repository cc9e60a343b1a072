//! Runs the `console` blocks of the Markdown pages: what a page shows of a command is what it prints.
//!
//! A line that starts with `$ ` is a command for `sh`, at the root of the repository, with the built `relent` on the path;
//! the lines below it are what it prints, on both streams. A line `...` stands for any number of lines.

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::examples::{LIMIT, build, within};
use super::tally::Tally;
use crate::cargo;
use crate::house::House;
use crate::markdown::{Block, blocks, pages};
use crate::report::{Finding, Verdict};

const PROGRAM: &str = "relent-cli";

pub(super) fn run(house: &House, filters: &[String], tally: &mut Tally) -> Result<Verdict> {
    if !filters.is_empty() {
        return Ok(Verdict::Skipped("filters choose among tests".into()));
    }
    if !cfg!(unix) {
        return Ok(Verdict::Skipped("the pages show commands for sh".into()));
    }
    let member = house.graph.member(PROGRAM).context("the program is not in the workspace")?;
    let program = build(house, member)?;
    let folder = program.parent().context("a program stands in a folder")?;
    let mut findings = Vec::new();
    for page in pages(&house.root)? {
        for block in blocks(&page.text).iter().filter(|block| block.language == "console") {
            for shown in commands(block) {
                println!("$ {}", shown.command);
                let printed = printed(house, folder, shown.command)?;
                let as_shown = matches(&shown.output, &printed.lines().collect::<Vec<_>>());
                tally.count(&format!("{}:{}", page.path, shown.line), as_shown);
                if !as_shown {
                    let what = format_args!("`{}` prints\n{printed}", shown.command);
                    findings.push(Finding::at_line(&page.path, shown.line, what));
                }
            }
        }
    }
    Ok(Verdict::of(findings, tally.summary()))
}

/// A command, and what the page shows of its output.
#[derive(Debug, PartialEq)]
struct Shown<'a> {
    line: usize,
    command: &'a str,
    output: Vec<&'a str>,
}

fn commands<'a>(block: &Block<'a>) -> Vec<Shown<'a>> {
    let mut found: Vec<Shown<'a>> = Vec::new();
    for (at, line) in block.lines.iter().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            found.push(Shown { line: block.line + 1 + at, command, output: Vec::new() });
        } else if let Some(last) = found.last_mut() {
            last.output.push(line);
        }
    }
    found
}

fn printed(house: &House, folder: &Path, command: &str) -> Result<String> {
    let path = house.target.join("console.txt");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let others = env::var_os("PATH").unwrap_or_default();
    let places = [folder.to_path_buf()].into_iter().chain(env::split_paths(&others));
    let mut shell = Command::new("sh");
    cargo::as_a_user_s(&mut shell);
    shell.args(["-c", command]).current_dir(&house.root).env("PATH", env::join_paths(places)?);
    shell.stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
    // How it ended is the command's affair: some are shown because they fail.
    within(&mut shell, LIMIT)?;
    Ok(fs::read_to_string(&path)?)
}

/// Whether the lines are those shown; `...` stands for any number of them.
fn matches(shown: &[&str], lines: &[&str]) -> bool {
    match shown.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..])),
        Some((line, rest)) => {
            lines.first().is_some_and(|first| first.trim_end() == line.trim_end())
                && matches(rest, &lines[1..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_commands_with_their_output() {
        let text = "```console\n$ one\na\nb\n$ two\n```\n";
        let blocks = blocks(text);
        let one = Shown { line: 2, command: "one", output: vec!["a", "b"] };
        let two = Shown { line: 5, command: "two", output: vec![] };
        assert_eq!(commands(&blocks[0]), [one, two]);
    }

    #[test]
    fn what_is_shown_is_what_is_printed_but_for_what_is_left_out() {
        let lines = ["a", "b  ", "c", "d"];
        for shown in [&["a", "b", "c", "d"][..], &["a", "...", "d"], &["..."], &["...", "c", "..."]] {
            assert!(matches(shown, &lines), "{shown:?}");
        }
        for shown in [&[][..], &["a"], &["a", "b", "c"], &["...", "c"], &["b", "..."], &["a", "c", "..."]] {
            assert!(!matches(shown, &lines), "{shown:?}");
        }
    }
}
