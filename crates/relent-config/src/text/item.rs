//! One value of the file, read as what its field takes; a fault with the mend where it is something else.

use std::ops::Range;
use std::time::Duration;

use relent_core::Ratio;
use toml::Spanned;
use toml::de::{DeString, DeValue};

use super::Table;
use crate::duration::{self, parse_duration};
use crate::quoted::{named, quoted};
use crate::report::{Fault, Report};
use crate::size::{self, parse_size};
use crate::{nearest, quoted as escape};

/// A named value.
#[derive(Clone, Debug)]
pub(crate) struct Item<'t> {
    name: &'t str,
    key: Range<usize>,
    span: Range<usize>,
    value: &'t DeValue<'t>,
    /// It is in the list of that name.
    listed: bool,
}

impl<'t> Item<'t> {
    pub(super) fn of(key: &'t Spanned<DeString<'t>>, value: &'t Spanned<DeValue<'t>>) -> Item<'t> {
        Item {
            name: key.get_ref(),
            key: key.span(),
            span: value.span(),
            value: value.get_ref(),
            listed: false,
        }
    }

    pub(crate) fn name(&self) -> &'t str {
        self.name
    }

    /// Where the value stands.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Where the name stands.
    pub(crate) fn key_span(&self) -> Range<usize> {
        self.key.clone()
    }

    /// The value, if it is text.
    pub(crate) fn as_text(&self) -> Option<&'t str> {
        self.value.as_str()
    }

    /// The value, if it is a whole number that fits.
    pub(crate) fn as_whole(&self) -> Option<i128> {
        let whole = self.value.as_integer()?;
        i128::from_str_radix(whole.as_str(), whole.radix()).ok()
    }

    pub(crate) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    pub(crate) fn is_table(&self) -> bool {
        self.value.is_table()
    }

    /// Adds a fault of this value: what it is, and what is wrong with that.
    pub(crate) fn refuse(&self, wrong: impl std::fmt::Display, mend: impl Into<String>, report: &mut Report) {
        report.add_shown(self.span(), |span| {
            let verb = if self.listed { "has" } else { "is" };
            Fault::new(span, format!("{} {verb} {}: {wrong}", named(self.name), self.shown())).mend(mend)
        });
    }

    /// Text; anything else is a fault.
    pub(crate) fn text(&self, example: &str, report: &mut Report) -> Option<&'t str> {
        self.as_text().or_else(|| self.mismatch("text", example, report))
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, report: &mut Report) -> Option<bool> {
        self.value.as_bool().or_else(|| self.mismatch("true or false", "true", report))
    }

    /// A whole number from 0 to `u32::MAX`.
    pub(crate) fn whole(&self, example: &str, report: &mut Report) -> Option<u32> {
        if self.value.is_float() {
            self.refuse("it is no whole number", format!("write {} = {example}", self.name), report);
            return None;
        }
        if !self.value.is_integer() {
            return self.mismatch("a whole number", example, report);
        }
        let whole = self.as_whole().and_then(|whole| u32::try_from(whole).ok());
        if whole.is_none() {
            self.refuse("it is not from 0 to 4294967295", format!("write {} = {example}", self.name), report);
        }
        whole
    }

    /// A number such as 0.1 or 2, taken exactly as it is written.
    pub(crate) fn ratio(&self, example: &str, report: &mut Report) -> Option<Ratio> {
        let literal = match self.value {
            DeValue::Integer(_) => self.as_whole().map_or_else(|| "".to_owned(), |whole| whole.to_string()),
            DeValue::Float(float) => float.as_str().to_owned(),
            _ => return self.mismatch("a number", example, report),
        };
        match literal.strip_prefix('+').unwrap_or(&literal).parse() {
            Ok(ratio) => Some(ratio),
            Err(error) => {
                self.refuse(error, format!("write {} = {example}", self.name), report);
                None
            }
        }
    }

    /// A length of time with its unit.
    pub(crate) fn length(&self, report: &mut Report) -> Option<Duration> {
        let Some(text) = self.as_text() else {
            return self.unitless("a length of time with its unit", duration::mend, report);
        };
        match parse_duration(text) {
            Ok(length) => Some(length),
            Err(_) if text == "none" => {
                self.refuse(
                    "only attempt_timeout, deadline and give_up_after can be none",
                    "write a length, such as \"250ms\"",
                    report,
                );
                None
            }
            Err(error) => {
                self.refuse(error, duration::mend(text), report);
                None
            }
        }
    }

    /// A length of time, or `"none"`.
    pub(crate) fn length_or_none(&self, report: &mut Report) -> Option<Option<Duration>> {
        if self.as_text() == Some("none") { Some(None) } else { self.length(report).map(Some) }
    }

    /// A length of time above zero and up to a year, for what the core does not check.
    pub(crate) fn positive_length(&self, report: &mut Report) -> Option<Duration> {
        let length = self.length(report)?;
        let wrong = match length {
            Duration::ZERO => "it is zero",
            _ if length > Duration::from_secs(365 * 24 * 3600) => "it is over 365 days",
            _ => return Some(length),
        };
        self.refuse(wrong, "give a length above zero and up to 365 days", report);
        None
    }

    /// A number of bytes with its unit.
    pub(crate) fn size(&self, report: &mut Report) -> Option<u64> {
        let Some(text) = self.as_text() else {
            return self.unitless("a number of bytes with its unit", size::mend, report);
        };
        parse_size(text).map_err(|error| self.refuse(error, size::mend(text), report)).ok()
    }

    /// One of the given words.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)], report: &mut Report) -> Option<T> {
        let all = || choices.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let Some(text) = self.as_text() else {
            return self.mismatch(&format!("one of {}", all()), &format!("\"{}\"", choices[0].0), report);
        };
        let chosen = choices.iter().find(|(word, _)| *word == text);
        if chosen.is_none() {
            let mend = match nearest(text, choices.iter().map(|(word, _)| *word)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("write one of {}", all()),
            };
            self.refuse("it is none of the words known here", mend, report);
        }
        chosen.map(|(_, value)| *value)
    }

    /// A list; its items have the list's name.
    pub(crate) fn list(&self, example: &str, report: &mut Report) -> Option<Vec<Item<'t>>> {
        let Some(list) = self.value.as_array() else {
            return self.mismatch("a list", example, report);
        };
        let item = |value: &'t Spanned<DeValue<'t>>| Item {
            name: self.name,
            key: self.key.clone(),
            span: value.span(),
            value: value.get_ref(),
            listed: true,
        };
        Some(list.iter().map(item).collect())
    }

    /// A table.
    pub(crate) fn table(&self, title: &str, example: &str, report: &mut Report) -> Option<Table<'t>> {
        match self.value.as_table() {
            Some(table) => Some(Table::new(table, self.span(), title)),
            None => self.mismatch("a table", example, report),
        }
    }

    /// Adds the fault that this is something else than its field takes.
    pub(crate) fn mismatch<T>(&self, expected: &str, example: &str, report: &mut Report) -> Option<T> {
        report.add_shown(self.span(), |span| {
            let (who, mend) = if self.listed {
                (format!("an entry of {}", named(self.name)), format!("write {example}"))
            } else {
                (named(self.name).to_string(), format!("write {} = {example}", self.name))
            };
            Fault::new(span, format!("{who} must be {expected}, not {}", self.kind())).mend(mend)
        });
        None
    }

    /// The fault of a number where one with a unit is wanted.
    fn unitless<T>(&self, expected: &str, mend: fn(&str) -> String, report: &mut Report) -> Option<T> {
        let literal = match self.value {
            DeValue::Integer(whole) => whole.as_str(),
            DeValue::Float(float) => float.as_str(),
            _ => "",
        };
        let message = format!("{} must be {expected}, in quotes, not {}", named(self.name), self.kind());
        report.add(Fault::new(self.span(), message).mend(mend(literal)));
        None
    }

    fn kind(&self) -> &'static str {
        match self.value {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a bare number",
            DeValue::Float(_) => "a bare number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }

    fn shown(&self) -> String {
        match self.value {
            DeValue::String(text) => quoted(text).to_string(),
            DeValue::Integer(whole) => escape::short(&whole.to_string()),
            DeValue::Float(float) => escape::short(float.as_str()),
            DeValue::Boolean(flag) => flag.to_string(),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => self.kind().to_owned(),
        }
    }
}
