//! The text of one file: which line and column a byte lies in.

use std::ops::Range;

/// A file's name and text, with the start of every line.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    name: &'a str,
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Source<'a> {
    /// `text` without its byte order mark, which is no part of the first line.
    pub(crate) fn new(name: &'a str, text: &'a str) -> Source<'a> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Source { name, text, starts }
    }

    pub(crate) fn name(&self) -> &'a str {
        self.name
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// What stands at `span`.
    pub(crate) fn slice(&self, span: &Range<usize>) -> &'a str {
        let (start, end) = (self.boundary(span.start), self.boundary(span.end));
        self.text.get(start..end).unwrap_or("")
    }

    /// The line, from 1, in which the byte `at` lies.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// Where line `line` (from 1) starts and ends, its line break left out.
    pub(crate) fn extent(&self, line: usize) -> Range<usize> {
        let start = self.starts[line - 1];
        let end = self.starts.get(line).map_or(self.text.len(), |next| next - 1);
        let bare = &self.text[start..end];
        start..start + bare.strip_suffix('\r').unwrap_or(bare).len()
    }

    /// The nearest start of a character at or before `at`.
    pub(crate) fn boundary(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        (0..=at).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_any_line_break_and_the_file_s_end() {
        let source = Source::new("f", "\u{feff}ab\r\nc\n\nd");
        let lines: Vec<_> = (1..=4).map(|line| source.slice(&source.extent(line))).collect();
        assert_eq!(lines, ["ab", "c", "", "d"]);
        let at: Vec<_> = (0..=8).map(|at| source.line(at)).collect();
        assert_eq!(at, [1, 1, 1, 1, 2, 2, 3, 4, 4]);
    }
}
