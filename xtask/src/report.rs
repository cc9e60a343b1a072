//! What a check or a test stage came to, and the table at the end of a run.

use std::fmt;
use std::time::Duration;

/// Where a rule is broken and how, in one line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding(pub(crate) String);

impl Finding {
    pub(crate) fn at_line(path: &str, line: usize, what: impl fmt::Display) -> Self {
        Self(format!("{path}:{line}: {what}"))
    }

    pub(crate) fn at(place: &str, what: impl fmt::Display) -> Self {
        Self(format!("{place}: {what}"))
    }
}

/// The end of one check or stage.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Passed(String),
    Failed(Vec<Finding>),
    Skipped(String),
}

impl Verdict {
    /// Passed where nothing was found; `looked_at` says what the pass rests on.
    pub(crate) fn of(findings: Vec<Finding>, looked_at: impl fmt::Display) -> Self {
        if findings.is_empty() { Self::Passed(looked_at.to_string()) } else { Self::Failed(findings) }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Passed(_) => "ok",
            Self::Failed(_) => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }
}

/// The verdicts of a run, in order.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<(&'static str, Verdict, Duration)>,
}

impl Report {
    /// Prints the findings at once, keeps the verdict for the table.
    pub(crate) fn add(&mut self, name: &'static str, verdict: Verdict, took: Duration) {
        match &verdict {
            Verdict::Failed(findings) => {
                for Finding(finding) in findings {
                    println!("{finding}");
                }
            }
            Verdict::Skipped(why) => println!("skipped: {why}"),
            Verdict::Passed(_) => {}
        }
        self.rows.push((name, verdict, took));
    }

    pub(crate) fn passed(&self) -> bool {
        !self.rows.iter().any(|(_, verdict, _)| matches!(verdict, Verdict::Failed(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, verdict, took) in &self.rows {
            let note = match verdict {
                Verdict::Passed(note) | Verdict::Skipped(note) => note.clone(),
                Verdict::Failed(findings) => match findings.as_slice() {
                    [Finding(one)] => one.clone(),
                    many => format!("{} findings, listed above", many.len()),
                },
            };
            writeln!(f, "  {name:<12} {:<8} {:>6.1} s  {note}", verdict.word(), took.as_secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failure_fails_the_run_and_a_skip_does_not() {
        let mut report = Report::default();
        report.add("deny", Verdict::Skipped("cargo-deny is not installed".into()), Duration::ZERO);
        assert!(report.passed());
        report.add(
            "lengths",
            Verdict::of(vec![Finding::at_line("a.rs", 7, "too long")], ""),
            Duration::from_millis(1500),
        );
        assert!(!report.passed());
        let table = report.to_string();
        assert!(table.contains("deny         skipped     0.0 s  cargo-deny is not installed"), "{table}");
        assert!(table.contains("lengths      FAILED      1.5 s  a.rs:7: too long"), "{table}");
    }
}
