//! The few places that may do what is forbidden elsewhere: `unsafe`, and the clocks, sleeps and thread-local random
//! numbers of clippy.toml's `disallowed_methods`. An `#[allow]` somewhere else would undo the rule without a word.

use anyhow::Result;

use crate::house::House;
use crate::report::{Finding, Verdict};
use crate::source::SourceFile;
use crate::token::{Token, tokens};

/// The counting allocators of the benches: they cannot be written without it.
const MAY_BE_UNSAFE: &[&str] = &["bench/src/counting.rs", "bench-peers/src/allocations.rs"];

/// relent's timer module and its generator, the wall clock of stored records, and programs that only measure.
const MAY_READ_CLOCKS: &[&str] = &[
    "crates/relent/src/timer.rs",
    "crates/relent/src/timer/",
    "crates/relent/src/random.rs",
    "crates/relent-idempotency/src/clock.rs",
    "xtask/",
    "bench/",
    "bench-peers/",
];

/// Lints and groups of clippy whose `allow` takes `disallowed_methods` along.
const COVERING: &[&str] = &["disallowed_methods", "style", "all"];

pub(crate) fn check(house: &House) -> Result<Verdict> {
    let findings = house.sources.iter().flat_map(offences).collect();
    Ok(Verdict::of(findings, format_args!("{} files", house.sources.len())))
}

fn offences(file: &SourceFile) -> Vec<Finding> {
    let tokens = tokens(&file.text);
    let mut findings = Vec::new();
    if !is_under(&file.path, MAY_BE_UNSAFE) {
        let unsafe_words = tokens.iter().filter(|token| token.text == "unsafe");
        findings.extend(unsafe_words.map(|token| {
            let what = format_args!("`unsafe` stands only in {}", MAY_BE_UNSAFE.join(", "));
            Finding::at_line(&file.path, token.line, what)
        }));
    }
    if !is_under(&file.path, MAY_READ_CLOCKS) {
        findings.extend(tokens.windows(4).filter(|words| lifts_the_ban(words)).map(|words| {
            let what = format_args!(
                "clippy::{} may be allowed only in {}; elsewhere time and randomness are handed in",
                words[3].text,
                MAY_READ_CLOCKS.join(", ")
            );
            Finding::at_line(&file.path, words[0].line, what)
        }));
    }
    findings
}

/// A path that ends in `/` stands for all below it.
fn is_under(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path == *place || (place.ends_with('/') && path.starts_with(place)))
}

/// `clippy::` paths stand in lint attributes only, and nobody raises this lint's level beyond the workspace's.
fn lifts_the_ban(words: &[Token<'_>]) -> bool {
    matches!(words, [a, b, c, lint] if a.text == "clippy" && b.text == ":" && c.text == ":" && COVERING.contains(&lint.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offences_in(path: &str, text: &str) -> Vec<String> {
        let file = SourceFile { path: path.into(), text: text.into() };
        offences(&file).into_iter().map(|Finding(finding)| finding).collect()
    }

    #[test]
    fn unsafe_is_found_in_code_only() {
        let text =
            "#![forbid(unsafe_code)]\n// unsafe\nlet s = \"unsafe\";\nunsafe { x() }\n#[unsafe(no_mangle)]\n";
        let found = offences_in("crates/relent/src/run.rs", text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/relent/src/run.rs:4: `unsafe`"), "{found:?}");
        assert!(found[1].starts_with("crates/relent/src/run.rs:5: `unsafe`"), "{found:?}");
        assert_eq!(offences_in("bench/src/counting.rs", text), [""; 0]);
    }

    #[test]
    fn the_ban_on_clocks_is_lifted_in_the_named_places_only() {
        let text = "#[expect(\n    clippy::disallowed_methods,\n    reason = \"\"\n)]\nfn now() {}\n";
        for path in [
            "crates/relent/src/timer.rs",
            "crates/relent/src/timer/tokio.rs",
            "xtask/src/check.rs",
            "bench/src/main.rs",
        ] {
            assert_eq!(offences_in(path, text), [""; 0], "{path}");
        }
        for path in [
            "crates/relent/src/timers.rs",
            "crates/relent/tests/it/timer.rs",
            "crates/relent-cli/src/main.rs",
        ] {
            let found = offences_in(path, text);
            assert!(
                found[0].starts_with(&format!("{path}:2: clippy::disallowed_methods may be allowed only")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn groups_that_cover_the_ban_are_seen_and_other_lints_are_not() {
        let path = "crates/relent/src/run.rs";
        assert_eq!(offences_in(path, "#![allow(clippy::all)]").len(), 1);
        assert_eq!(offences_in(path, "#[cfg_attr(test, allow(dead_code, clippy::style))]").len(), 1);
        assert_eq!(offences_in(path, "#[expect(clippy::print_stdout, reason = \"clippy::all\")]").len(), 0);
    }
}
