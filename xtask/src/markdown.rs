//! The Markdown pages of the repository, and the code blocks in them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

#[derive(Debug)]
pub(crate) struct Page {
    /// From the root of the repository, with `/` between the parts.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// A fenced code block.
#[derive(Debug, PartialEq)]
pub(crate) struct Block<'a> {
    /// The line of its opening fence.
    pub(crate) line: usize,
    /// What follows the opening fence: "rust", "console".
    pub(crate) language: &'a str,
    /// The file that it quotes, by a comment `<!-- from FILE -->` on the line above.
    pub(crate) from: Option<&'a str>,
    pub(crate) lines: Vec<&'a str>,
}

/// The pages at the root, those under `docs/`, and each crate's README.
pub(crate) fn pages(root: &Path) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    walk(root, "", &mut pages)?;
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(pages)
}

fn walk(folder: &Path, prefix: &str, pages: &mut Vec<Page>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(&entry.path(), &format!("{path}/"), pages)?;
            }
        } else if name.ends_with(".md") {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("cannot read {path}"))?;
            pages.push(Page { path, text });
        }
    }
    Ok(())
}

/// The fenced blocks of a page; a fence stands at the start of its line.
pub(crate) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Block<'_>> = None;
    let mut from = None;
    for (at, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(language), None) => {
                open = Some(Block { line: at + 1, language: language.trim(), from, lines: Vec::new() });
            }
            (None, Some(block)) => block.lines.push(line),
            (None, None) => {}
        }
        from = line.strip_prefix("<!-- from ").and_then(|rest| rest.strip_suffix(" -->"));
    }
    found
}

/// Where the page's links lead, each with its line; those in code are none.
pub(crate) fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // Every other part is code.
        for prose in line.split('`').step_by(2) {
            let ends = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(ends.map(|(target, _)| (at + 1, target)));
        }
        // A link's text may be code, which the split has cut off from its target.
        let cut = line.split("`](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(cut.map(|(target, _)| (at + 1, target)));
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "A [map](ARCHITECTURE.md#time), [`Retry`](src/retry.rs) and `[no](link)`.\n\n\
        <!-- from examples/a/src/main.rs -->\n```rust\nlet a = 1;\n```\n\n```text\n[not](one)\n```\n";

    #[test]
    fn blocks_have_their_language_source_and_lines() {
        let rust = Block {
            line: 4,
            language: "rust",
            from: Some("examples/a/src/main.rs"),
            lines: vec!["let a = 1;"],
        };
        let text = Block { line: 8, language: "text", from: None, lines: vec!["[not](one)"] };
        assert_eq!(blocks(PAGE), [rust, text]);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        assert_eq!(links(PAGE), [(1, "ARCHITECTURE.md#time"), (1, "src/retry.rs")]);
    }
}
