//! The Markdown pages: what they quote stands so in a file that is compiled and run, and their links lead somewhere.
//!
//! A block under `<!-- from FILE -->` is a run of that file's lines, indented as one likes. A README's Rust must be such a
//! quote; the Rust of other pages is compiled where it stands, by the package in `docs/`.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::house::House;
use crate::markdown::{Block, Page, blocks, links, pages};
use crate::report::{Finding, Verdict};

pub(crate) fn check(house: &House) -> Result<Verdict> {
    let pages = pages(&house.root)?;
    let read = |path: &str| fs::read_to_string(house.root.join(path)).ok();
    let mut findings = Vec::new();
    let mut quotes = 0;
    for page in &pages {
        let blocks = blocks(&page.text);
        quotes += blocks.iter().filter(|block| block.from.is_some()).count();
        findings.extend(blocks.iter().filter_map(|block| misquoted(page, block, read)));
        findings.extend(astray(page, |path| house.root.join(path).exists()));
    }
    Ok(Verdict::of(findings, format_args!("{} pages, {quotes} quotes", pages.len())))
}

fn misquoted(page: &Page, block: &Block<'_>, read: impl Fn(&str) -> Option<String>) -> Option<Finding> {
    let what = match block.from {
        None if page.path.ends_with("README.md") && block.language.starts_with("rust") => {
            "is Rust that nobody compiles: quote an example, with `<!-- from FILE -->` on the line above"
                .into()
        }
        None => return None,
        Some(from) => match read(from) {
            None => format!("quotes {from}, which is no file"),
            Some(text) if stands_in(&block.lines, &text) => return None,
            Some(_) => format!("is not what stands in {from}"),
        },
    };
    Some(Finding::at_line(&page.path, block.line, what))
}

/// Whether the quote is a run of the file's lines, but for the indentation that all of them share.
fn stands_in(quote: &[&str], text: &str) -> bool {
    let quote = outdented(quote);
    let lines: Vec<&str> = text.lines().collect();
    let says_something = quote.iter().any(|line| !line.is_empty());
    says_something && lines.windows(quote.len()).any(|window| outdented(window) == quote)
}

fn outdented<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let margin = |line: &&str| line.len() - line.trim_start().len();
    let least = lines.iter().filter(|line| !line.trim().is_empty()).map(margin).min().unwrap_or(0);
    lines.iter().map(|line| line.get(least..).unwrap_or("").trim_end()).collect()
}

/// Links to files that are not there. What a link says behind `#` is the page's own affair.
fn astray(page: &Page, exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let broken = links(&page.text).into_iter().filter_map(|(line, target)| {
        let file = target.split('#').next().unwrap_or_default();
        let elsewhere = file.is_empty() || file.contains("://") || file.starts_with("mailto:");
        let found = elsewhere || exists(&folder.join(file).to_string_lossy());
        (!found).then(|| Finding::at_line(&page.path, line, format_args!("{target} leads nowhere")))
    });
    broken.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "fn main() {\n    let a = 1;\n\n    let b = 2;\n}\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        let page = Page { path: path.into(), text: text.into() };
        let read = |path: &str| (path == "a.rs").then(|| SOURCE.to_owned());
        let mut findings: Vec<Finding> =
            blocks(&page.text).iter().filter_map(|block| misquoted(&page, block, read)).collect();
        findings.extend(astray(&page, |path| path == "docs/policy.md"));
        findings.into_iter().map(|Finding(finding)| finding).collect()
    }

    #[test]
    fn a_quote_is_a_run_of_lines_however_indented() {
        let quote = |lines: &str| found("README.md", &format!("<!-- from a.rs -->\n```rust\n{lines}\n```\n"));
        assert_eq!(quote("let a = 1;\n\nlet b = 2;"), [""; 0]);
        assert_eq!(quote("    let a = 1;"), [""; 0]);
        assert_eq!(quote("let a = 1;\nlet b = 2;"), ["README.md:2: is not what stands in a.rs"]);
        assert_eq!(quote("let a = 2;"), ["README.md:2: is not what stands in a.rs"]);
        assert_eq!(quote("").len(), 1);
    }

    #[test]
    fn a_readme_s_rust_is_quoted_and_other_pages_is_compiled_elsewhere() {
        let text = "```rust\nlet a = 1;\n```\n";
        assert_eq!(found("crates/relent/README.md", text).len(), 1);
        assert_eq!(found("docs/policy.md", text), [""; 0]);
        assert_eq!(
            found("docs/policy.md", &format!("<!-- from b.rs -->\n{text}")),
            ["docs/policy.md:2: quotes b.rs, which is no file"]
        );
    }

    #[test]
    fn links_are_followed_from_where_the_page_stands() {
        assert_eq!(
            found("README.md", "[a](docs/policy.md#base) [b](https://example.org) [c](#top)"),
            [""; 0]
        );
        assert_eq!(found("docs/why.md", "[a](policy.md)"), [""; 0]);
        assert_eq!(found("README.md", "\n[a](policy.md)"), ["README.md:2: policy.md leads nowhere"]);
    }
}
