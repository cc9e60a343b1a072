//! From a path or a text to a [`Config`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use crate::compile::{Spans, compile};
use crate::diagnostic::{ConfigErrors, Diagnostic, Place};
use crate::quoted;
use crate::report::{Fault, Report};
use crate::source::Source;
use crate::{Config, text};

/// The longest file that is read, in bytes.
pub const LONGEST_FILE: u64 = 1024 * 1024;

/// Reads and checks the policy file at `path`.
///
/// # Errors
/// [`ConfigErrors`]: all that is wrong with it, each with its place and its mend; or that it can't be read.
pub fn load(path: impl AsRef<Path>) -> Result<Config, ConfigErrors> {
    text_at(path.as_ref(), parse)
}

/// The text of the file at `path`, parsed under its name.
pub(crate) fn text_at<C>(
    path: &Path,
    parse: impl FnOnce(&str, &str) -> Result<C, ConfigErrors>,
) -> Result<C, ConfigErrors> {
    let name = path.display().to_string();
    let bytes = read(path).map_err(|error| unreadable(&name, error))?;
    match str::from_utf8(&bytes) {
        Ok(text) => parse(&name, text),
        Err(error) => Err(not_text(&name, &bytes, error.valid_up_to())),
    }
}

/// Refuses a text that is too long to be read.
pub(crate) fn bounded(name: &str, text: &str) -> Result<(), ConfigErrors> {
    const MEND: &str = "divide it; a policy takes a few lines";
    if text.len() as u64 > LONGEST_FILE {
        return Err(whole_file(name, "the file is over 1 MiB", MEND, None));
    }
    Ok(())
}

/// Reads and checks the text of a policy file; `name` stands for its path in what is reported.
///
/// # Errors
/// [`ConfigErrors`]: all that is wrong with it, each with its place and its mend.
pub fn parse(name: &str, text: &str) -> Result<Config, ConfigErrors> {
    bounded(name, text)?;
    let source = Source::new(name, text);
    let mut report = Report::default();
    let document = text::parse(&source, &mut report);
    let read = document.root.as_ref().map(|root| compile(root, &mut report));
    document.weak.into_iter().for_each(|fault| report.add_weak(fault));
    let (mut config, spans) = read.unwrap_or_default();
    config.origins = origins(spans, &source);
    report.finish(config, &source)
}

/// Where each field is set, as an error would name it.
fn origins(spans: Spans, source: &Source<'_>) -> BTreeMap<String, BTreeMap<&'static str, String>> {
    let file = quoted::plain(source.name());
    let place = |span| {
        let place = Place::new(source, span);
        format!("{file}:{}:{}", place.line(), place.column())
    };
    let of_policy = |spans: Vec<(&'static str, Range<usize>)>| {
        spans.into_iter().map(|(name, span)| (name, place(span))).collect()
    };
    spans.into_iter().map(|(name, spans)| (name, of_policy(spans))).collect()
}

/// All bytes, or one more than are read.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unreadable(name: &str, error: io::Error) -> ConfigErrors {
    let (message, mend) = match error.kind() {
        io::ErrorKind::NotFound => ("there is no such file".to_owned(), "check the path"),
        io::ErrorKind::IsADirectory => ("this is a directory".to_owned(), "name the file in it"),
        io::ErrorKind::PermissionDenied => ("the file may not be read".to_owned(), "let this user read it"),
        _ => (format!("the file can't be read: {error}"), "check the path"),
    };
    whole_file(name, &message, mend, Some(error))
}

fn not_text(name: &str, bytes: &[u8], at: usize) -> ConfigErrors {
    if bytes.len() as u64 > LONGEST_FILE {
        return whole_file(name, "the file is over 1 MiB", "divide it; a policy takes a few lines", None);
    }
    // The valid part stays as it is, so the place is right.
    let text = String::from_utf8_lossy(bytes);
    let bom = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let source = Source::new(name, &text);
    let mut report = Report::default();
    report.add(Fault::new(at - bom..at - bom + 1, "this is not UTF-8").mend("save the file as UTF-8"));
    match report.finish((), &source) {
        Err(errors) => errors,
        Ok(()) => unreachable!("a fault was added"),
    }
}

fn whole_file(name: &str, message: &str, mend: &str, cause: Option<io::Error>) -> ConfigErrors {
    let diagnostic = Diagnostic {
        file: quoted::plain(name),
        place: None,
        message: message.to_owned(),
        notes: Vec::new(),
        related: None,
        mend: Some(mend.to_owned()),
    };
    ConfigErrors { diagnostics: vec![diagnostic], more: 0, cause }
}
