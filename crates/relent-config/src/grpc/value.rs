//! Values of a service config, each read as what its field takes.

use std::time::Duration;

use relent_core::{GrpcCode, Ratio};

use super::json::{Field, Kind, Node};
use crate::decimal::{is_number, scale};
use crate::nearest;
use crate::quoted::{named, quoted, short};
use crate::report::{Fault, Report};

impl<'t> Node<'t> {
    /// What it is, in a sentence.
    fn shown(&self) -> String {
        match &self.kind {
            Kind::Null => "null".to_owned(),
            Kind::Flag(flag) => flag.to_string(),
            Kind::Number(number) => short(number),
            Kind::Text(text) => quoted(text).to_string(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Object(_) => "an object".to_owned(),
        }
    }
}

impl<'t> Field<'t> {
    /// Adds a fault of the value.
    pub(super) fn refuse(&self, wrong: &str, mend: &str, report: &mut Report) {
        let message = format!("{} is {}: {wrong}", named(&self.name), self.value.shown());
        report.add(Fault::new(self.value.span.clone(), message).mend(mend));
    }

    fn mismatch<T>(&self, due: &str, example: &str, report: &mut Report) -> Option<T> {
        let message = format!("{} must be {due}, not {}", named(&self.name), self.value.shown());
        let mend = format!("write \"{}\": {example}", self.name);
        report.add(Fault::new(self.value.span.clone(), message).mend(mend));
        None
    }

    pub(super) fn object(&self, report: &mut Report) -> Option<&[Field<'t>]> {
        match &self.value.kind {
            Kind::Object(fields) => Some(fields),
            _ => self.mismatch("an object", "{ … }", report),
        }
    }

    pub(super) fn list(&self, example: &str, report: &mut Report) -> Option<&[Node<'t>]> {
        match &self.value.kind {
            Kind::List(nodes) => Some(nodes),
            _ => self.mismatch("a list", example, report),
        }
    }

    pub(super) fn text(&self, example: &str, report: &mut Report) -> Option<&str> {
        match &self.value.kind {
            Kind::Text(text) => Some(text),
            _ => self.mismatch("text", example, report),
        }
    }

    /// A whole number of at least `least`.
    pub(super) fn whole(&self, least: u32, example: &str, report: &mut Report) -> Option<u32> {
        let Kind::Number(number) = self.value.kind else {
            return self.mismatch("a whole number", example, report);
        };
        let whole = number.strip_suffix(".0").unwrap_or(number).parse().ok().filter(|whole| *whole >= least);
        if whole.is_none() {
            let wrong = format!("it is no whole number from {least} on");
            self.refuse(&wrong, &format!("write \"{}\": {example}", self.name), report);
        }
        whole
    }

    /// A number above zero, as it is written.
    pub(super) fn number(&self, example: &str, report: &mut Report) -> Option<&'t str> {
        let Kind::Number(number) = self.value.kind else {
            return self.mismatch("a number", example, report);
        };
        let above_zero = !number.starts_with('-') && number.bytes().any(|b| matches!(b, b'1'..=b'9'));
        if !above_zero {
            self.refuse("it is not above zero", &format!("write \"{}\": {example}", self.name), report);
            return None;
        }
        Some(number)
    }

    /// The same as a ratio, exactly.
    pub(super) fn ratio(&self, example: &str, report: &mut Report) -> Option<Ratio> {
        let number = self.number(example, report)?;
        match number.parse() {
            Ok(ratio) => Some(ratio),
            Err(error) => {
                let wrong = format!("{error}");
                self.refuse(&wrong, &format!("write \"{}\": {example}", self.name), report);
                None
            }
        }
    }

    /// A length as proto3's JSON writes it: decimal seconds and an `s`.
    pub(super) fn length(&self, example: &str, report: &mut Report) -> Option<Duration> {
        let text = self.text(example, report)?;
        let mend = format!("write \"{}\": {example}", self.name);
        let Some(seconds) = text.strip_suffix('s') else {
            self.refuse("a length is seconds with an \"s\"", &mend, report);
            return None;
        };
        // grpc-go takes ".5s", as Go does.
        let seconds = if seconds.starts_with('.') { format!("0{seconds}") } else { seconds.to_owned() };
        if !is_number(&seconds) {
            self.refuse("it is no number of seconds from 0 on", &mend, report);
            return None;
        }
        match scale(&seconds, 1_000_000_000) {
            Ok(nanos) => Some(Duration::from_nanos(nanos)),
            Err(_) => {
                self.refuse("it is finer than a nanosecond, or longer than can be said", &mend, report);
                None
            }
        }
    }

    /// The same, and not zero.
    pub(super) fn length_above_zero(&self, example: &str, report: &mut Report) -> Option<Duration> {
        let length = self.length(example, report)?;
        if length.is_zero() {
            self.refuse("it is not above zero", &format!("write \"{}\": {example}", self.name), report);
            return None;
        }
        Some(length)
    }
}

/// A status code, by name or number.
pub(super) fn code(node: &Node<'_>, report: &mut Report) -> Option<GrpcCode> {
    let code = match &node.kind {
        Kind::Text(name) => GrpcCode::named(name),
        Kind::Number(number) => number.parse().ok().and_then(GrpcCode::numbered),
        _ => None,
    };
    let mend = match (&node.kind, code) {
        (_, Some(GrpcCode::Ok)) => "leave it out".to_owned(),
        (_, Some(code)) => return Some(code),
        (Kind::Text(name), None) => mend_of_name(name),
        _ => "write a name such as \"UNAVAILABLE\", or a number from 1 to 16".to_owned(),
    };
    let wrong =
        if code.is_some() { "it is a success, there is nothing to retry" } else { "it is no status code" };
    report.add(Fault::new(node.span.clone(), format!("{}: {wrong}", node.shown())).mend(mend));
    None
}

fn mend_of_name(name: &str) -> String {
    let all: Vec<String> = GrpcCode::all().skip(1).map(capitals).collect();
    match nearest(&name.to_ascii_uppercase(), all.iter().map(String::as_str)) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "write a name such as \"UNAVAILABLE\"".to_owned(),
    }
}

/// Its name in gRPC's own files.
fn capitals(code: GrpcCode) -> String {
    code.name().to_ascii_uppercase().replace('-', "_")
}

/// Fields of gRPC's that say nothing of retries.
const ASIDE: [&str; 5] = [
    "loadBalancingConfig",
    "loadBalancingPolicy",
    "healthCheckConfig",
    "maxRequestMessageBytes",
    "maxResponseMessageBytes",
];

/// What is known of a field that nobody reads: a misspelt one is a fault, since what it says would be lost.
pub(super) fn unread(field: &Field<'_>, known: &[&str], notes: &mut Report, report: &mut Report) {
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let same = known.iter().find(|name| plain(name) == plain(&field.name));
    match same.copied().or_else(|| nearest(&field.name, known.iter().copied())) {
        Some(near) if !ASIDE.contains(&&*field.name) => {
            let message = format!("{} is no field", named(&field.name));
            report.add(Fault::new(field.key.clone(), message).mend(format!("did you mean \"{near}\"?")));
        }
        _ => {
            let message = format!("{} is not about retries, and is left aside", named(&field.name));
            notes.add(Fault::new(field.key.clone(), message));
        }
    }
}
