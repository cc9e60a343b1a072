//! A place in a file, and the line there as it is shown.

use std::fmt;
use std::ops::Range;

use crate::quoted;
use crate::source::Source;

/// The most characters of a line that are shown.
const WINDOW: usize = 100;
/// How many of them stand before the fault, in a longer line.
const BEFORE: usize = 40;
/// What a tab shows as: the caret stands right whatever the terminal's tab stops.
const TAB: &str = "    ";

/// A place in a file: line, column, and the bytes meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    line: usize,
    column: usize,
    span: Range<usize>,
    snippet: Snippet,
}

/// A line as it is shown: tabs widened, control characters escaped, a long line cut to a window around the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The line.
    pub text: String,
    /// How many characters of `text` stand before the fault.
    pub indent: usize,
    /// How many characters of `text` are at fault; at least 1, which may lie past the line's end.
    pub width: usize,
}

impl Place {
    pub(crate) fn new(source: &Source<'_>, span: Range<usize>) -> Place {
        let start = source.boundary(span.start);
        let line = source.line(start);
        let extent = source.extent(line);
        let start = start.min(extent.end);
        let end = source.boundary(span.end).clamp(start, extent.end);
        let column = source.slice(&(extent.start..start)).chars().count() + 1;
        let parts = [extent.start..start, start..end, end..extent.end].map(|part| source.slice(&part));
        Place { line, column, span, snippet: Snippet::new(parts) }
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The bytes meant, counted in the file without a byte order mark.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The line as it is shown, with the part at fault.
    pub fn snippet(&self) -> &Snippet {
        &self.snippet
    }

    /// The line under an empty one, and the carets; no line break at the end.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, gutter: usize) -> fmt::Result {
        let Snippet { text, indent, width } = &self.snippet;
        let space = if text.is_empty() { "" } else { " " };
        write!(f, "\n{:gutter$} |\n{:>gutter$} |{space}{text}", "", self.line)?;
        write!(f, "\n{:gutter$} | {:indent$}{:^<width$}", "", "", "")
    }
}

impl Snippet {
    /// From what stands before, in, and after the fault.
    fn new([before, fault, after]: [&str; 3]) -> Snippet {
        let whole: usize =
            [before, fault, after].iter().map(|part| part.chars().take(WINDOW + 1).count()).sum();
        let (room_before, room_after) =
            if whole <= WINDOW { (WINDOW, WINDOW) } else { (BEFORE, WINDOW - BEFORE) };
        let mut text = String::new();
        let skipped = before.char_indices().rev().nth(room_before);
        if skipped.is_some() {
            text.push('…');
        }
        let from = skipped.map_or(0, |(at, c)| at + c.len_utf8());
        show(&mut text, &before[from..]);
        let indent = text.chars().count();
        let mut rest = fault.chars().chain(after.chars());
        let faulty = fault.chars().take(room_after).count();
        rest.by_ref().take(faulty).for_each(|c| push(&mut text, c));
        let width = text.chars().count() - indent;
        rest.by_ref().take(room_after - faulty).for_each(|c| push(&mut text, c));
        if rest.next().is_some() {
            text.push('…');
        }
        Snippet { text, indent, width: width.max(1) }
    }
}

fn show(text: &mut String, part: &str) {
    part.chars().for_each(|c| push(text, c));
}

fn push(text: &mut String, c: char) {
    match c {
        '\t' => text.push_str(TAB),
        c => quoted::push(text, c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str, fault: &str) -> Place {
        let start = text.find(fault).expect("the text has it");
        Place::new(&Source::new("f", text), start..start + fault.len())
    }

    #[test]
    fn columns_count_characters() {
        let place = place("a = 'é'\n\tñ = [x]\r\nend", "[x]");
        assert_eq!((place.line(), place.column()), (2, 6));
        let Snippet { text, indent, width } = place.snippet();
        assert_eq!((text.as_str(), *indent, *width), ("    ñ = [x]", 8, 3));
    }

    #[test]
    fn the_end_of_the_file_is_a_place() {
        let place = Place::new(&Source::new("f", "ab\n"), 3..3);
        assert_eq!((place.line(), place.column(), place.snippet().width), (2, 1, 1));
        let place = Place::new(&Source::new("f", ""), 7..9);
        assert_eq!((place.line(), place.column()), (1, 1));
    }

    #[test]
    fn a_long_line_is_cut_around_the_fault() {
        let long = format!("{}FAULT{}", "é".repeat(100_000), "b".repeat(100_000));
        let place = place(&long, "FAULT");
        let Snippet { text, indent, width } = place.snippet();
        assert_eq!((text.chars().count(), *indent, *width), (WINDOW + 2, BEFORE + 1, 5));
        assert_eq!(place.column(), 100_001);
        let all = Place::new(&Source::new("f", &long), 0..long.len());
        assert_eq!(all.snippet().width, WINDOW - BEFORE);
    }
}
