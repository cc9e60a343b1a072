//! Counts what `cargo test` prints, and keeps the names of what failed or was left out.

use std::fmt;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tally {
    passed: usize,
    failed: usize,
    left_out: usize,
    filtered: usize,
    failures: Vec<String>,
    ignored: Vec<String>,
}

impl Tally {
    /// One more line of output. `test NAME ... RESULT` gives the names; the numbers come from a binary's closing
    /// `test result: ...`, since a test's own prints can tear the other apart.
    pub(crate) fn read(&mut self, line: &str) {
        let Some(rest) = line.trim_end().strip_prefix("test ") else { return };
        if let Some(result) = rest.strip_prefix("result: ") {
            self.passed += number(result, "passed");
            self.failed += number(result, "failed");
            self.left_out += number(result, "ignored");
            self.filtered += number(result, "filtered out");
        } else if let Some((name, result)) = rest.rsplit_once(" ... ") {
            if result == "FAILED" {
                self.failures.push(name.to_owned());
            } else if let Some(reason) = result.strip_prefix("ignored") {
                let reason = reason.strip_prefix(", ").unwrap_or("no reason given");
                self.ignored.push(format!("{name}: {reason}"));
            }
        }
    }

    /// One more thing that ran to its end outside of `cargo test`.
    pub(crate) fn count(&mut self, name: &str, passed: bool) {
        if passed {
            self.passed += 1;
        } else {
            self.failed += 1;
            self.failures.push(name.to_owned());
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.left_out += other.left_out;
        self.filtered += other.filtered;
        self.failures.extend_from_slice(&other.failures);
        self.ignored.extend_from_slice(&other.ignored);
    }

    pub(crate) fn ran(&self) -> usize {
        self.passed + self.failed
    }

    pub(crate) fn failures(&self) -> impl Iterator<Item = &str> {
        self.failures.iter().map(String::as_str)
    }

    /// "12 passed, 1 ignored": what a stage's row in the table says.
    pub(crate) fn summary(&self) -> String {
        let mut parts = vec![format!("{} passed", self.passed)];
        let others = [(self.left_out, "ignored"), (self.filtered, "filtered out")];
        parts.extend(others.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")));
        parts.join(", ")
    }
}

/// The closing lines of a run: what was left out by name, and the sums.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.ignored.is_empty() {
            writeln!(f, "Left out:")?;
            for test in &self.ignored {
                writeln!(f, "  {test}")?;
            }
        }
        writeln!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.left_out)
    }
}

/// The number before a word in `ok. 3 passed; 0 failed; 1 ignored; 0 measured; 12 filtered out; finished in 0.00s`.
fn number(result: &str, word: &str) -> usize {
    let mut parts = result.split(['.', ';']).map(str::trim);
    let number = parts.find_map(|part| part.strip_suffix(word)?.trim_end().parse().ok());
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 4 tests
test backoff::tests::full ... ok
test budget::share - should panic ... ok
test run::cancelled ... FAILED
test store::redis ... ignored, needs a server
test crates/relent/src/run.rs - run (line 12) ... ok
test crates/relent/src/run.rs - run (line 40) - compile fail ... ok
test plain ... ignored

failures:

---- run::cancelled stdout ----
test fixtures are missing

test result: FAILED. 4 passed; 1 failed; 2 ignored; 0 measured; 12 filtered out; finished in 0.00s
test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s
";

    #[test]
    fn results_are_counted_and_named() {
        let mut tally = Tally::default();
        OUTPUT.lines().for_each(|line| tally.read(line));
        assert_eq!(tally.ran(), 5);
        assert_eq!(tally.failures().collect::<Vec<_>>(), ["run::cancelled"]);
        assert_eq!(tally.summary(), "4 passed, 2 ignored, 15 filtered out");
        assert_eq!(
            tally.to_string(),
            "Left out:\n  store::redis: needs a server\n  plain: no reason given\n4 passed, 1 failed, 2 skipped\n"
        );
    }

    #[test]
    fn stages_add_up() {
        let (mut total, mut stage) = (Tally::default(), Tally::default());
        stage.count("hello", true);
        stage.count("broken", false);
        total.read(
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        total.add(&stage);
        assert_eq!(total.to_string(), "2 passed, 1 failed, 0 skipped\n");
        assert_eq!(total.failures().collect::<Vec<_>>(), ["broken"]);
    }
}
