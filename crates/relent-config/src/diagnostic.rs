//! One fault of a file as its reader sees it: where, what, and how to mend it.
//!
//! Printed without colour; a terminal can colour it by the parts, which all have accessors.

mod place;

pub use place::{Place, Snippet};

use std::fmt;
use std::ops::Range;

/// One fault of a file: where it is, what is wrong, and how to mend it.
///
/// `Display` prints `file:line:column: what`, the line with a caret under the fault, notes, and the mend. Other forms
/// are made from the accessors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub(crate) file: String,
    pub(crate) place: Option<Place>,
    pub(crate) message: String,
    pub(crate) notes: Vec<String>,
    pub(crate) related: Option<(String, Place)>,
    pub(crate) mend: Option<String>,
}

impl Diagnostic {
    /// The file's name, as it was given.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The place; `None` if the fault is the file itself (missing, too long).
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The line, from 1.
    pub fn line(&self) -> Option<usize> {
        self.place().map(Place::line)
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> Option<usize> {
        self.place().map(Place::column)
    }

    /// The bytes at fault, counted in the file without a byte order mark.
    pub fn span(&self) -> Option<Range<usize>> {
        self.place().map(Place::span)
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What else is to be known, such as a default that took part.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    /// Another place that takes part, and what it is.
    pub fn related(&self) -> Option<(&str, &Place)> {
        self.related.as_ref().map(|(what, place)| (what.as_str(), place))
    }

    /// How to mend it.
    pub fn mend(&self) -> Option<&str> {
        self.mend.as_deref()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = [self.place(), self.related().map(|(_, place)| place)];
        let widest = places.into_iter().flatten().map(Place::line).max().unwrap_or(0);
        let gutter = widest.to_string().len();
        match &self.place {
            Some(place) => {
                write!(f, "{}:{}:{}: {}", self.file, place.line(), place.column(), self.message)?;
                place.write(f, gutter)?;
            }
            None => write!(f, "{}: {}", self.file, self.message)?,
        }
        for note in &self.notes {
            write!(f, "\n{:gutter$} = note: {note}", "")?;
        }
        if let Some((what, place)) = &self.related {
            write!(f, "\n{:gutter$} = {what}: {}:{}:{}", "", self.file, place.line(), place.column())?;
            if self.line() != Some(place.line()) {
                place.write(f, gutter)?;
            }
        }
        match &self.mend {
            Some(mend) => write!(f, "\n{:gutter$} = mend: {mend}", ""),
            None => Ok(()),
        }
    }
}

/// All that is wrong with a file, in the order of its lines; never empty.
///
/// At most [`ConfigErrors::MOST`] are kept; the rest is counted. `Display` prints them all, without colour.
#[derive(Debug)]
pub struct ConfigErrors {
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) more: usize,
    pub(crate) cause: Option<std::io::Error>,
}

impl ConfigErrors {
    /// How many faults are kept.
    pub const MOST: usize = 50;

    /// The faults, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.diagnostics.iter()
    }

    /// How many faults there are beside those kept.
    pub fn more(&self) -> usize {
        self.more
    }
}

impl<'a> IntoIterator for &'a ConfigErrors {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, diagnostic) in self.diagnostics.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "\n\n" })?;
            diagnostic.fmt(f)?;
        }
        match self.more {
            0 => Ok(()),
            1 => f.write_str("\n\nand one more error"),
            more => write!(f, "\n\nand {more} more errors"),
        }
    }
}

impl std::error::Error for ConfigErrors {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}
