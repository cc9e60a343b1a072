//! Functions of at most 70 lines, files of at most 800, and a map of the house that fits a few screens.

use std::fs;

use anyhow::Result;

use crate::house::House;
use crate::report::{Finding, Verdict};
use crate::source::{SourceFile, functions};

const FUNCTION_LINES: usize = 70;
const FILE_LINES: usize = 800;
const MAP: &str = "ARCHITECTURE.md";
const MAP_LINES: usize = 250;

pub(crate) fn check(house: &House) -> Result<Verdict> {
    let mut findings: Vec<Finding> = house.sources.iter().flat_map(too_long).collect();
    match fs::read_to_string(house.root.join(MAP)) {
        Ok(text) => findings.extend(over(MAP, text.lines().count(), MAP_LINES)),
        Err(error) => findings.push(Finding::at(MAP, format_args!("cannot be read: {error}"))),
    }
    Ok(Verdict::of(findings, format_args!("{} files", house.sources.len())))
}

fn too_long(file: &SourceFile) -> Vec<Finding> {
    let mut findings: Vec<Finding> = functions(&file.text)
        .into_iter()
        .filter(|function| function.lines() > FUNCTION_LINES)
        .map(|function| {
            let what =
                format_args!("{}: {} lines (at most {FUNCTION_LINES})", function.name, function.lines());
            Finding::at_line(&file.path, function.first, what)
        })
        .collect();
    findings.extend(over(&file.path, file.text.lines().count(), FILE_LINES));
    findings
}

fn over(path: &str, lines: usize, limit: usize) -> Option<Finding> {
    (lines > limit).then(|| Finding::at(path, format_args!("{lines} lines (at most {limit})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: String) -> SourceFile {
        SourceFile { path: "crates/x/src/y.rs".into(), text }
    }

    #[test]
    fn a_function_of_70_lines_passes_and_one_of_71_is_named() {
        let of = |lines: usize| file(format!("\nfn long() {{\n{}}}\n", "    a();\n".repeat(lines - 2)));
        assert_eq!(too_long(&of(70)), []);
        assert_eq!(too_long(&of(71)), [Finding("crates/x/src/y.rs:2: long: 71 lines (at most 70)".into())]);
    }

    #[test]
    fn a_file_of_800_lines_passes_and_one_of_801_is_named() {
        assert_eq!(too_long(&file("//\n".repeat(800))), []);
        assert_eq!(
            too_long(&file("//\n".repeat(801))),
            [Finding("crates/x/src/y.rs: 801 lines (at most 800)".into())]
        );
    }
}
