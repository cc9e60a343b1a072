//! The picture that redraws itself: two rows a lane (the load it makes, the calls that succeed), one column a second.
//!
//! Plain ANSI. Lines are cut at the terminal's edge by the terminal itself (wrapping is off meanwhile), so that the
//! cursor's way back up is known at any width. Cursor and wrapping are restored however the run ends.

use std::io::{self, Write};

use super::{Colour, Progress};
use crate::demo::ledger::Second;
use crate::demo::scenario::Scenario;

const HIDE: &str = "\x1b[?25l\x1b[?7l";
const RESTORE: &str = "\x1b[?7h\x1b[?25h";
const CLEAR_LINE: &str = "\x1b[2K";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// From nothing to all.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Where the columns of seconds begin.
const LEFT: usize = 36;
/// The load that fills a column, in calls: three attempts each.
const FULL_LOAD: f64 = 3.0;

/// Redraws in place.
#[derive(Debug)]
pub(crate) struct Live<W: Write> {
    out: W,
    colour: Colour,
    drawn: usize,
}

impl<W: Write> Live<W> {
    pub(super) fn new(out: W, colour: Colour) -> Live<W> {
        Live { out, colour, drawn: 0 }
    }

    pub(super) fn second(&mut self, progress: &Progress<'_>) -> io::Result<()> {
        let mut text = String::from(HIDE);
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A", self.drawn));
        }
        let lines = frame(progress, self.colour);
        for line in &lines {
            text.push_str(&format!("{CLEAR_LINE}{line}\n"));
        }
        self.drawn = lines.len();
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Drop for Live<W> {
    fn drop(&mut self) {
        if self.drawn > 0 {
            // A terminal that is gone needs no cursor.
            let _ = self.out.write_all(RESTORE.as_bytes()).and_then(|()| self.out.flush());
        }
    }
}

fn frame(progress: &Progress<'_>, colour: Colour) -> Vec<String> {
    let Progress { scenario, elapsed, lanes } = progress;
    let state = format!("second {elapsed} of {}: {}", scenario.seconds(), phase(scenario, *elapsed));
    let mut lines = vec![
        paint(&state, BOLD, colour),
        String::new(),
        format!(
            "{:11}{:>7}{:>9}{:>6}   by second: load offered, successes",
            "", "offered", "retries", "good"
        ),
    ];
    for (lane, seconds) in lanes {
        let over = &seconds[..*elapsed];
        let Second { offered, retries, good } = over.last().copied().unwrap_or_default();
        let load = columns(scenario, over, colour, |second| f64::from(second.offered) / FULL_LOAD);
        lines.push(format!("{:11}{offered:>7}{retries:>9}{good:>6}   {load}", lane.title()));
        let success = columns(scenario, over, colour, |second| f64::from(second.good));
        lines.push(format!("{:LEFT$}{success}", ""));
    }
    lines.push(axis(scenario, *elapsed));
    lines
}

fn phase(scenario: &Scenario, elapsed: usize) -> &'static str {
    let now = elapsed as f64;
    if now < scenario.outage_from.as_secs_f64() {
        "calm, but for ordinary failures"
    } else if now < scenario.outage_to.as_secs_f64() {
        "outage, a tenth of the capacity is left"
    } else {
        "the outage is over, the servers are well"
    }
}

/// One column a second, filled where `of` it comes to the rate of calls; red while the outage lasts.
fn columns(scenario: &Scenario, seconds: &[Second], colour: Colour, of: impl Fn(&Second) -> f64) -> String {
    let column = |second: &Second| LEVELS[level(of(second) / scenario.rate)];
    let (from, to) = outage(scenario);
    let (from, to) = (from.min(seconds.len()), to.min(seconds.len()));
    let part = |range: &[Second]| range.iter().map(column).collect::<String>();
    let outage = part(&seconds[from..to]);
    let outage = if outage.is_empty() { outage } else { paint(&outage, RED, colour) };
    format!("{}{outage}{}", part(&seconds[..from]), part(&seconds[to..]))
}

fn level(share: f64) -> usize {
    let top = LEVELS.len() - 1;
    ((share * top as f64).round() as usize).min(top)
}

/// Where the outage begins and ends, under the columns.
fn axis(scenario: &Scenario, elapsed: usize) -> String {
    let (from, to) = outage(scenario);
    let mut line = " ".repeat(LEFT + from);
    if elapsed >= to {
        let width = to.saturating_sub(from + 2);
        line.push_str(&format!("└{}┘ outage ends here", "─".repeat(width)));
    } else if elapsed >= from {
        line.push_str("└ outage begins here");
    }
    line.trim_end().to_owned()
}

/// The columns of the outage.
fn outage(scenario: &Scenario) -> (usize, usize) {
    (scenario.outage_from.as_secs() as usize, scenario.outage_to.as_secs() as usize)
}

fn paint(text: &str, code: &str, colour: Colour) -> String {
    match colour {
        Colour::Yes => format!("{code}{text}{PLAIN}"),
        Colour::No => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::progress;
    use super::*;

    #[test]
    fn a_frame_after_the_outage() {
        let shown = Scenario::shown(1);
        let frame = frame(&progress(&shown, 23), Colour::No);
        assert_eq!(
            frame,
            [
                "second 23 of 40: the outage is over, the servers are well",
                "",
                "           offered  retries  good   by second: load offered, successes",
                "no retries     100        0   100   ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃",
                "                                    ██████████▁▁▁▁▁▁▁▁▁▁███",
                "naive          101        1     0   ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃",
                "                                    ██████████▁▁▁▁▁▁▁▁▁▁▁▁▁",
                "textbook       102        2    98   ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃",
                "                                    ██████████▁▁▁▁▁▁▁▁▁▁███",
                "relent         103        3    97   ▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃",
                "                                    ██████████▁▁▁▁▁▁▁▁▁▁███",
                "                                              └────────┘ outage ends here",
            ]
        );
        assert!(frame.iter().all(|line| line.chars().count() <= 90));
    }

    #[test]
    fn frames_before_and_in_the_outage() {
        let shown = Scenario::shown(1);
        let calm = frame(&progress(&shown, 4), Colour::No);
        assert_eq!(
            (calm[0].as_str(), calm[11].as_str()),
            ("second 4 of 40: calm, but for ordinary failures", "")
        );
        let outage = frame(&progress(&shown, 12), Colour::Yes);
        assert!(outage[3].ends_with("▃▃\x1b[31m▃▃\x1b[0m"), "{}", outage[3]);
        assert!(outage[4].ends_with("██\x1b[31m▁▁\x1b[0m"), "{}", outage[4]);
        assert_eq!(outage[11].trim_start(), "└ outage begins here");
    }

    #[test]
    fn it_draws_over_itself_and_restores_the_terminal() {
        let shown = Scenario::shown(1);
        let mut out = Vec::new();
        let mut live = Live::new(&mut out, Colour::No);
        live.second(&progress(&shown, 1)).unwrap();
        live.second(&progress(&shown, 2)).unwrap();
        drop(live);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches('\n').count(), 24);
        assert_eq!(text.matches("\x1b[12A").count(), 1);
        assert!(text.starts_with(HIDE) && text.ends_with(RESTORE));
    }

    #[test]
    fn columns_are_as_high_as_the_share_of_calls() {
        assert_eq!([0.0, 0.05, 0.5, 0.98, 1.3].map(level), [0, 0, 4, 7, 7]);
    }
}
