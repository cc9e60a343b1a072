//! How things look on a terminal: colour, and lengths and shares for people.
//!
//! Colour goes to a terminal only, and not where `NO_COLOR` is set (no-color.org) or the terminal is a dumb one.

use std::env;
use std::io::{self, IsTerminal};
use std::time::Duration;

use relent_config::format_duration;

/// Text in colour where the stream shows it, plain elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint(bool);

impl Paint {
    /// For what is printed to stdout.
    pub(crate) fn stdout() -> Paint {
        Paint(io::stdout().is_terminal() && wanted())
    }

    /// For what is printed to stderr.
    pub(crate) fn stderr() -> Paint {
        Paint(io::stderr().is_terminal() && wanted())
    }

    /// A heading.
    pub(crate) fn strong(self, text: &str) -> String {
        self.dress(text, "1")
    }

    /// What matters less.
    pub(crate) fn faint(self, text: &str) -> String {
        self.dress(text, "2")
    }

    /// What went wrong.
    pub(crate) fn bad(self, text: &str) -> String {
        self.dress(text, "1;31")
    }

    /// What deserves a look.
    pub(crate) fn warning(self, text: &str) -> String {
        self.dress(text, "1;33")
    }

    fn dress(self, text: &str, code: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn wanted() -> bool {
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// What every error line on stderr begins with.
pub(crate) fn error_label() -> String {
    Paint::stderr().bad("error:")
}

/// A length as flags and files write it, `250ms` or `1m30s`, rounded to three decimal places.
pub(crate) fn length(length: Duration) -> String {
    let nanos = length.as_nanos();
    let grain = match nanos {
        0..1_000_000 => 1,
        1_000_000..1_000_000_000 => 1_000,
        1_000_000_000..3_600_000_000_000 => 1_000_000,
        _ => 1_000_000_000,
    };
    let rounded = (nanos + grain / 2) / grain * grain;
    u64::try_from(rounded)
        .map_or("over 584 years".into(), |nanos| format_duration(Duration::from_nanos(nanos)))
}

/// A length that is a mean or an estimate: four digits say all there is to know.
pub(crate) fn rough(exact: Duration) -> String {
    let nanos = exact.as_nanos();
    let digits = nanos.checked_ilog10().unwrap_or(0);
    let grain = 10_u128.pow(digits.saturating_sub(3));
    let rounded = (nanos + grain / 2) / grain * grain;
    u64::try_from(rounded).map_or_else(|_| length(exact), |nanos| length(Duration::from_nanos(nanos)))
}

/// A number without trailing zeros.
pub(crate) fn decimal(number: f64, places: usize) -> String {
    let text = format!("{number:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A probability or share in per cent, without calling small what is nothing or nearly all what is all.
pub(crate) fn percent(share: f64) -> String {
    match share {
        s if s <= 0.0 => "0 %".into(),
        s if s < 0.0005 => "<0.1 %".into(),
        s if s > 0.9995 && s < 1.0 => ">99.9 %".into(),
        s => format!("{} %", decimal(s * 100.0, 1)),
    }
}

/// Lines of cells in columns, indented, two spaces between: numbers to the right, the rest to the left.
pub(crate) fn table(rows: &[Vec<String>], right: &[bool]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line += "  ";
            line += &if right.get(column) == Some(&true) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            };
        }
        line.truncate(line.trim_end().len());
        line
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_as_flags_take_them() {
        for (nanos, text) in [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5us"),
            (100_000_000, "100ms"),
            (6_400_000_000, "6.4s"),
            (50_000_000_001, "50s"),
            (150_000_000_000, "2m30s"),
            (31_536_000_000_000_000, "8760h"),
        ] {
            assert_eq!(length(Duration::from_nanos(nanos)), text);
        }
        assert_eq!(length(Duration::MAX), "over 584 years");
    }

    #[test]
    fn estimates_have_four_digits() {
        assert_eq!(
            [912_502_000, 14_999_999_999, 0].map(Duration::from_nanos).map(rough),
            ["912.5ms", "15s", "0s"]
        );
    }

    #[test]
    fn shares_never_round_to_nothing_or_all() {
        assert_eq!(
            [0.0, 1e-9, 0.25, 0.3333, 0.99999, 1.0].map(percent).join(" "),
            "0 % <0.1 % 25 % 33.3 % >99.9 % 100 %"
        );
    }
}
