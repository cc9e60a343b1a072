//! Plain lines: one every two seconds, for pipes, logs and terminals that can't move their cursor.

use std::io::{self, Write};
use std::time::Duration;

use super::Progress;
use crate::demo::ledger::Second;
use crate::demo::scenario::Scenario;

/// Seconds to a line.
const STRIDE: usize = 2;

/// Writes a line now and then.
#[derive(Debug)]
pub(crate) struct Plain<W> {
    out: W,
    begun: bool,
}

impl<W: Write> Plain<W> {
    pub(super) fn new(out: W) -> Plain<W> {
        Plain { out, begun: false }
    }

    pub(super) fn second(&mut self, progress: &Progress<'_>) -> io::Result<()> {
        if !self.begun {
            self.begun = true;
            write!(self.out, "{}", head(progress))?;
        }
        if progress.elapsed.is_multiple_of(STRIDE) || progress.elapsed == progress.scenario.seconds() {
            writeln!(self.out, "{}", row(progress))?;
        }
        if let Some(mark) = mark(progress.scenario, progress.elapsed) {
            writeln!(self.out, "        --- {mark} ---")?;
        }
        self.out.flush()
    }
}

fn head(progress: &Progress<'_>) -> String {
    let titles: String = progress.lanes.iter().map(|(lane, _)| format!("  {:>16}", lane.title())).collect();
    let columns: String = progress.lanes.iter().map(|_| "   offer retry good").collect();
    format!(
        "Each second: attempts offered to the server, retries among them, calls that succeeded.\n\n\
         {:6}{titles}\nsecond{columns}\n",
        ""
    )
}

/// The means of the last seconds.
fn row(progress: &Progress<'_>) -> String {
    let from = progress.elapsed.saturating_sub(1) / STRIDE * STRIDE;
    let cells: String =
        progress.lanes.iter().map(|(_, seconds)| cell(&seconds[from..progress.elapsed])).collect();
    format!("{:>6}{cells}", progress.elapsed)
}

fn cell(seconds: &[Second]) -> String {
    let mean = |of: fn(&Second) -> u32| {
        let sum: u32 = seconds.iter().map(of).sum();
        (f64::from(sum) / seconds.len().max(1) as f64).round()
    };
    let (offered, retries, good) = (mean(|s| s.offered), mean(|s| s.retries), mean(|s| s.good));
    format!("   {offered:>5} {retries:>5} {good:>4}")
}

/// What begins at the end of this second.
fn mark(scenario: &Scenario, elapsed: usize) -> Option<&'static str> {
    let now = Duration::from_secs(elapsed as u64);
    if now == scenario.outage_from {
        Some("outage begins here: a tenth of the capacity, answers lost")
    } else if now == scenario.outage_to {
        Some("outage ends here: full capacity again")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::progress;
    use super::*;

    #[test]
    fn a_run_in_lines() {
        let shown = Scenario::shown(1);
        let mut plain = Plain::new(Vec::new());
        for elapsed in 1..=22 {
            plain.second(&progress(&shown, elapsed)).unwrap();
        }
        let text = String::from_utf8(plain.out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4 + 11 + 2);
        assert_eq!(
            lines[2..5],
            [
                "              no retries             naive          textbook            relent",
                "second   offer retry good   offer retry good   offer retry good   offer retry good",
                "     2     100     0  100     101     1   99     102     2   98     103     3   97",
            ]
        );
        assert_eq!(lines[9], "        --- outage begins here: a tenth of the capacity, answers lost ---");
        assert_eq!(
            lines[14],
            "    20     100     0    0     101     1    0     102     2    0     103     3    0"
        );
        assert_eq!(lines[15], "        --- outage ends here: full capacity again ---");
        assert_eq!(
            lines[16],
            "    22     100     0  100     101     1    0     102     2   98     103     3   97"
        );
        assert!(lines.iter().all(|line| line.len() <= 86));
    }
}
