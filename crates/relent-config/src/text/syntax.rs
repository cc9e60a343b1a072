//! What is no TOML, in the words of the policy file.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue, Error};

use crate::quoted::named;
use crate::report::Fault;
use crate::source::Source;

/// The most of these faults that are looked into; one costs a pass over the text.
const MOST: usize = 50;

/// A fault, and whether the document is whole in spite of it.
pub(super) struct SyntaxFault {
    pub(super) fault: Fault,
    pub(super) recovered: bool,
}

/// The faults, at most one a line: what follows in a line mostly follows from the first.
pub(super) fn faults(source: &Source<'_>, root: &DeTable<'_>, errors: Vec<Error>) -> Vec<SyntaxFault> {
    let mut first_of_line: BTreeMap<usize, (Range<usize>, Error)> = BTreeMap::new();
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let line = source.line(source.boundary(span.start));
        let known = first_of_line.get(&line);
        if known.is_none_or(|(known, _)| span.start < known.start) {
            first_of_line.insert(line, (span, error));
        }
    }
    let all = first_of_line.into_values().take(MOST);
    all.map(|(span, error)| translate(source, root, span, error.message())).collect()
}

fn translate(source: &Source<'_>, root: &DeTable<'_>, span: Range<usize>, message: &str) -> SyntaxFault {
    let text = source.slice(&span);
    let (what, expected) = message.split_once(", expected ").unwrap_or((message, ""));
    let lost = |fault| SyntaxFault { fault, recovered: false };
    match what {
        "duplicate key" => SyntaxFault { fault: twice(source, root, span), recovered: true },
        "string values must be quoted" if text.is_empty() => lost(
            Fault::new(span, "there is no value here").mend("write one after the `=`, such as attempts = 3"),
        ),
        "string values must be quoted" | "invalid float" if is_word(text) => {
            let word = text.trim_matches(['“', '”', '„', '‘', '’']);
            let fault = Fault::new(span, "text needs quotes").mend(format!("write \"{word}\""));
            SyntaxFault { fault, recovered: true }
        }
        "string values must be quoted" => {
            lost(Fault::new(span, "this is no value").mend("text needs quotes: \"…\""))
        }
        "invalid boolean" => lost(Fault::new(span, "this is no value").mend("write true or false")),
        "key with no value" => {
            lost(Fault::new(span, "a name without a value").mend("write name = value, one to a line"))
        }
        _ => {
            let fault = Fault::new(span, what);
            lost(if expected.is_empty() { fault } else { fault.mend(format!("expected here: {expected}")) })
        }
    }
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

/// Where the key at `span` stood first. The parser keeps one place of a key only: the path to it is looked up there, and
/// then walked in what the file is up to the line of the second.
fn first(source: &Source<'_>, root: &DeTable<'_>, span: &Range<usize>) -> Option<Range<usize>> {
    let path = path_to(root, span, source.slice(span))?;
    let upto = source.extent(source.line(span.start)).start;
    let (before, _) = DeTable::parse_recoverable(source.slice(&(0..upto)));
    let before = before.into_inner();
    let mut table = &before;
    let (last, parents) = path.split_last()?;
    for name in parents {
        table = match table.get(name.as_str())?.get_ref() {
            DeValue::Table(inner) => inner,
            DeValue::Array(list) => list.last()?.get_ref().as_table()?,
            _ => return None,
        };
    }
    table.get_key_value(last.as_str()).map(|(key, _)| key.span())
}

/// The names on the way to the key at `span`: to a header's own key, else to `text` in the last table before it.
fn path_to(root: &DeTable<'_>, span: &Range<usize>, text: &str) -> Option<Vec<String>> {
    let mut tables = Vec::new();
    let mut found = None;
    let mut left = vec![(root, 0..0, Vec::<String>::new())];
    while let Some((table, place, path)) = left.pop() {
        for (key, value) in table {
            let inner = || path.iter().cloned().chain([key.get_ref().to_string()]).collect::<Vec<_>>();
            if key.span() == *span {
                found = Some(inner());
            }
            match value.get_ref() {
                DeValue::Table(table) => left.push((table, value.span(), inner())),
                DeValue::Array(list) => {
                    if let Some((table, item)) =
                        list.last().and_then(|item| Some((item.get_ref().as_table()?, item)))
                    {
                        left.push((table, item.span(), inner()));
                    }
                }
                _ => {}
            }
        }
        tables.push((place, path));
    }
    found.or_else(|| {
        let before = tables.into_iter().filter(|(place, _)| place.start <= span.start);
        let (_, mut path) = before.max_by_key(|(place, _)| place.start)?;
        path.push(text.to_owned());
        Some(path)
    })
}
