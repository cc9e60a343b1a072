//! Foreign text made safe to show: control and direction characters escaped, long text cut.

use std::fmt;

/// How much of a foreign word a message shows.
const LONGEST: usize = 48;

/// `text` in quotes, as the file has it.
pub(crate) fn quoted(text: &str) -> impl fmt::Display {
    Shown { text, mark: "\"" }
}

/// `text` in backticks: a name.
pub(crate) fn named(text: &str) -> impl fmt::Display {
    Shown { text, mark: "`" }
}

/// `text` without quotes, cut: a number.
pub(crate) fn short(text: &str) -> String {
    Shown { text, mark: "" }.to_string()
}

/// `text` with everything escaped that would move a terminal's cursor.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push(&mut shown, c));
    shown
}

/// Adds `c`, escaped where it is invisible or would disorder the line (control characters; the directional marks that
/// let a file show as something else than it says, CVE-2021-42574).
pub(crate) fn push(shown: &mut String, c: char) {
    let disorders =
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if c.is_control() || disorders {
        shown.extend(c.escape_default());
    } else {
        shown.push(c);
    }
}

struct Shown<'a> {
    text: &'a str,
    mark: &'static str,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.text.char_indices().nth(LONGEST).map(|(at, _)| at);
        let shown = plain(&self.text[..cut.unwrap_or(self.text.len())]);
        let rest = if cut.is_some() { "…" } else { "" };
        write!(f, "{mark}{shown}{rest}{mark}", mark = self.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_disorders_a_terminal() {
        assert_eq!(quoted("a\u{0}\t\u{202e}\u{1b}[1m").to_string(), r#""a\u{0}\t\u{202e}\u{1b}[1m""#);
        assert_eq!(named("é").to_string(), "`é`");
        assert_eq!(named(&"x".repeat(1000)).to_string().chars().count(), LONGEST + 3);
    }
}
