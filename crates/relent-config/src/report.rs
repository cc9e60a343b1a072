//! The faults found so far, in the order of the file, bounded.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::diagnostic::{ConfigErrors, Diagnostic, Place};
use crate::quoted;
use crate::source::Source;

/// One fault, with its place still in bytes.
#[derive(Debug)]
pub(crate) struct Fault {
    span: Range<usize>,
    message: String,
    notes: Vec<String>,
    related: Option<(String, Range<usize>)>,
    mend: Option<String>,
}

impl Fault {
    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Fault {
        Fault { span, message: message.into(), notes: Vec::new(), related: None, mend: None }
    }

    pub(crate) fn mend(mut self, mend: impl Into<String>) -> Fault {
        self.mend = Some(mend.into());
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Fault {
        self.notes.push(note.into());
        self
    }

    pub(crate) fn related(mut self, what: impl Into<String>, span: Range<usize>) -> Fault {
        self.related = Some((what.into(), span));
        self
    }

    fn locate(self, source: &Source<'_>) -> Diagnostic {
        Diagnostic {
            file: quoted::plain(source.name()),
            place: Some(Place::new(source, self.span)),
            message: self.message,
            notes: self.notes,
            related: self.related.map(|(what, span)| (what, Place::new(source, span))),
            mend: self.mend,
        }
    }
}

/// Collects faults; keeps the first [`ConfigErrors::MOST`] by place and counts the others.
#[derive(Debug, Default)]
pub(crate) struct Report {
    kept: BTreeMap<(usize, usize), Fault>,
    total: usize,
}

impl Report {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.kept.insert((fault.span.start, self.total), fault);
        self.total += 1;
        if self.kept.len() > ConfigErrors::MOST {
            self.kept.pop_last();
        }
    }

    /// Adds a fault, unless there is one at its very place.
    pub(crate) fn add_weak(&mut self, fault: Fault) {
        let at = fault.span.start;
        if self.kept.range((at, 0)..(at + 1, 0)).next().is_none() {
            self.add(fault);
        }
    }

    /// Adds the fault that `make` makes, or only counts it where it would not be shown: a file may have a million.
    pub(crate) fn add_shown(&mut self, span: Range<usize>, make: impl FnOnce(Range<usize>) -> Fault) {
        if self.keeps(&span) { self.add(make(span)) } else { self.total += 1 }
    }

    /// Counts faults that are not looked into.
    pub(crate) fn add_unseen(&mut self, faults: usize) {
        self.total += faults;
    }

    /// Whether a fault at `span` would be among those that are shown.
    pub(crate) fn keeps(&self, span: &Range<usize>) -> bool {
        let last = self.kept.last_key_value();
        self.kept.len() < ConfigErrors::MOST || last.is_some_and(|((start, _), _)| span.start < *start)
    }

    /// How many faults were added.
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// `value`, if there was no fault.
    pub(crate) fn finish<T>(self, value: T, source: &Source<'_>) -> Result<T, ConfigErrors> {
        if self.total == 0 {
            return Ok(value);
        }
        let more = self.total - self.kept.len();
        let diagnostics = self.kept.into_values().map(|fault| fault.locate(source)).collect();
        Err(ConfigErrors { diagnostics, more, cause: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_faults_by_place_are_kept() {
        let text = "x".repeat(200);
        let source = Source::new("f", &text);
        let mut report = Report::default();
        (0..200).rev().for_each(|at| report.add(Fault::new(at..at + 1, at.to_string())));
        let errors = report.finish((), &source).unwrap_err();
        let kept: Vec<_> = errors.iter().map(|d| d.message().to_owned()).collect();
        let expected: Vec<_> = (0..ConfigErrors::MOST).map(|n| n.to_string()).collect();
        assert_eq!((kept, errors.more()), (expected, 200 - ConfigErrors::MOST));
    }
}
