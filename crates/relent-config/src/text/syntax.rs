//! What is no TOML, in the words of the policy file.

use std::ops::Range;

use toml::de::{DeTable, DeValue, Error};

use crate::quoted::named;
use crate::report::Fault;
use crate::source::Source;

/// The most of these faults that are looked into; one costs a pass over the text.
const MOST: usize = 50;

/// What a fault leaves of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All of it: the text counts as if it had its quotes.
    Unquoted,
    /// All of it: the first one counts.
    Twice,
    /// Nothing that is sure.
    Lost,
}

/// The faults of a text.
pub(super) struct Faults {
    pub(super) faults: Vec<(Kind, Fault)>,
    /// How many there are beside these.
    pub(super) more: usize,
}

/// The faults by their place. What follows a lost one in its line follows from it, and is left out.
pub(super) fn faults(source: &Source<'_>, root: &DeTable<'_>, errors: Vec<Error>) -> Faults {
    let mut errors: Vec<_> =
        errors.into_iter().map(|error| (error.span().unwrap_or_else(|| deepest(source)), error)).collect();
    errors.sort_by_key(|(span, _)| span.start);
    errors.dedup_by(|(span, error), (earlier, first)| span == earlier && error.message() == first.message());
    let mut faults = Vec::new();
    let (mut more, mut lost_line) = (0, 0);
    for (span, error) in errors {
        let line = source.line(source.boundary(span.start));
        if line == lost_line {
            continue;
        }
        if faults.len() == MOST {
            more += 1;
            continue;
        }
        let (kind, fault) = translate(source, root, span, error.message());
        if kind == Kind::Lost {
            lost_line = line;
        }
        faults.push((kind, fault));
    }
    Faults { faults, more }
}

fn translate(source: &Source<'_>, root: &DeTable<'_>, span: Range<usize>, message: &str) -> (Kind, Fault) {
    let text = source.slice(&span);
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let colon = source.slice(&(span.start..span.start + 1)) == ":";
    let fault = |what: &str, mend: &str| Fault::new(span.clone(), what).mend(mend);
    let (what, mend) = match what {
        "duplicate key" => return (Kind::Twice, twice(source, root, span)),
        "string values must be quoted" if text.is_empty() => {
            ("there is no value here", "write one after the `=`, such as attempts = 3")
        }
        "string values must be quoted" if is_word(text) => {
            return (Kind::Unquoted, fault("text needs quotes", &in_quotes(text)));
        }
        "string values must be quoted" => (
            "this is no value",
            "put text in quotes, a comma between entries of a list, and each field on its own line",
        ),
        // Words that start as true, false, nan or inf do.
        "invalid boolean" if ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word)) => {
            ("this is no value", "write true or false, in lower case")
        }
        "invalid boolean" | "invalid float" if is_word(text) => {
            return (Kind::Lost, fault("text needs quotes", &in_quotes(text)));
        }
        "invalid unquoted key" | "key with no value" if colon => {
            ("a name is followed by `=`, not by `:`", "write name = value")
        }
        "recursion limit" | "cannot recurse further; max recursion depth met" => {
            ("it is nested too deeply", "a policy file has no more than a few levels")
        }
        "key with no value" => ("a name without a value", "write name = value, one to a line"),
        other => (other, ""),
    };
    let fault = match (mend, expected) {
        ("", "") => Fault::new(span.clone(), what),
        ("", "nothing") => fault(what, "leave it out"),
        ("", expected) => fault(what, &format!("expected here: {expected}")),
        (mend, _) => fault(what, mend),
    };
    (Kind::Lost, fault)
}

/// The line with the most points: the one fault that the parser gives no place for is a name of too many parts.
fn deepest(source: &Source<'_>) -> Range<usize> {
    let points = |line: &str| line.bytes().filter(|b| *b == b'.').count();
    let mut start = 0;
    let lines = source.text().split_inclusive('\n').map(|line| {
        start += line.len();
        (points(line), start - line.len())
    });
    let at = lines.max_by_key(|(points, at)| (*points, usize::MAX - at)).map_or(0, |(_, at)| at);
    at..source.extent(source.line(at)).end
}

/// The mend of text without quotes, or with typographic ones.
fn in_quotes(text: &str) -> String {
    format!("write \"{}\"", text.trim_matches(['“', '”', '„', '‘', '’']))
}

/// Something that was meant as one piece of text.
fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= 64
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"')
}

fn twice(source: &Source<'_>, root: &DeTable<'_>, span: Range<usize>) -> Fault {
    let text = source.slice(&span);
    let fault = Fault::new(span.clone(), format!("{} is there twice", named(text)));
    let fault = match first(source, root, &span) {
        Some(first) => fault.related("first here", first),
        None => fault,
    };
    fault.mend("keep one of them")
}

/// Where the key at `span` stood first. The parser keeps one place of a key only; the first one is looked up in what the
/// file is before the second.
fn first(source: &Source<'_>, root: &DeTable<'_>, span: &Range<usize>) -> Option<Range<usize>> {
    let (before, _) = DeTable::parse_recoverable(source.slice(&(0..span.start)));
    let before = before.into_inner();
    let path = tables(root)
        .iter()
        .find_map(|place| place.table.keys().find(|key| key.span() == *span).map(|_| place.path.clone()))
        // Not a header, then: it stands in the last table before it.
        .or_else(|| {
            let tables = tables(&before);
            let holding = tables.iter().filter(|place| place.may_hold_more(source));
            holding.max_by_key(|place| place.span.start).map(|place| place.path.clone())
        })?;
    let mut table = &before;
    for name in path {
        table = match table.get(name)?.get_ref() {
            DeValue::Table(inner) => inner,
            DeValue::Array(list) => list.last()?.get_ref().as_table()?,
            _ => return None,
        };
    }
    table.get_key_value(source.slice(span)).map(|(key, _)| key.span())
}

/// A table of the document: its place, and the names that lead to it.
struct Place<'t> {
    table: &'t DeTable<'t>,
    span: Range<usize>,
    path: Vec<&'t str>,
}

impl Place<'_> {
    /// Whether a key after the end of this document may stand in it: in the document itself, under a header, between
    /// braces that are still open.
    fn may_hold_more(&self, source: &Source<'_>) -> bool {
        let text = source.slice(&self.span);
        match text.as_bytes().first() {
            None | Some(b'[') => true,
            Some(b'{') => !text.ends_with('}'),
            Some(_) => false,
        }
    }
}

/// All tables of the document.
fn tables<'t>(root: &'t DeTable<'t>) -> Vec<Place<'t>> {
    let mut all = vec![Place { table: root, span: 0..0, path: Vec::new() }];
    let mut next = 0;
    while next < all.len() {
        let (table, path) = (all[next].table, all[next].path.clone());
        next += 1;
        for (key, value) in table {
            let inner = match value.get_ref() {
                DeValue::Array(list) => list.last().unwrap_or(value),
                _ => value,
            };
            if let DeValue::Table(table) = inner.get_ref() {
                let path = path.iter().copied().chain([key.get_ref().as_ref()]).collect();
                all.push(Place { table, span: inner.span(), path });
            }
        }
    }
    all
}
