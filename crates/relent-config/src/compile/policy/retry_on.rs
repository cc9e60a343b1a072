//! `retry_on = [ … ]`: conditions and gRPC status codes by name, HTTP statuses by number.

use relent_core::{GrpcCode, RetryOn};

use super::draft::Draft;
use crate::nearest;
use crate::report::Report;
use crate::text::Item;

const EXAMPLE: &str = "[\"connect\", \"reset\", \"timeout\", 503]";

type Adder = fn(RetryOn) -> RetryOn;

/// The conditions.
const CONDITIONS: [(&str, Adder); 3] =
    [("connect", RetryOn::connect), ("reset", RetryOn::reset), ("timeout", RetryOn::timeout)];

pub(super) fn read(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    let list = item.list(EXAMPLE, report)?;
    let mut set = RetryOn::nothing();
    let mut good = true;
    for entry in &list {
        match add(set, entry, report) {
            Some(wider) if wider == set => {
                entry.refuse("it is listed twice", "leave one out, or correct one", report);
                good = false;
            }
            Some(wider) => set = wider,
            None => good = false,
        }
    }
    draft.set(|builder| builder.retry_on(set));
    good.then_some(())
}

fn add(set: RetryOn, entry: &Item<'_>, report: &mut Report) -> Option<RetryOn> {
    if let Some(word) = entry.as_text() {
        if let Some((_, add)) = CONDITIONS.iter().find(|(name, _)| *name == word) {
            return Some(add(set));
        }
        return match GrpcCode::named(word) {
            Some(code) if code.name() == word => grpc(set, code, entry, report),
            _ => {
                entry.refuse("it is no condition", mend(word), report);
                None
            }
        };
    }
    let Some(code) = entry.as_whole() else {
        const EITHER: &str = "\"connect\", \"reset\", \"timeout\", or a status such as 503";
        return entry.mismatch("a condition or a status", EITHER, report);
    };
    let Some(code) = u16::try_from(code).ok().filter(|code| (100..600).contains(code)) else {
        entry.refuse("a status is from 100 to 599", "take 408, 409, 421, 425, 429 or a 5xx", report);
        return None;
    };
    set.status(code).map_err(|_| entry.refuse(why(code), "leave it out", report)).ok()
}

fn grpc(set: RetryOn, code: GrpcCode, entry: &Item<'_>, report: &mut Report) -> Option<RetryOn> {
    set.grpc(code)
        .map_err(|_| entry.refuse("it is a success, there is nothing to retry", "leave it out", report))
        .ok()
}

fn why(code: u16) -> &'static str {
    match code {
        100..=199 => "it is no final answer",
        200..=299 => "it is a success, there is nothing to retry",
        300..=399 => "a redirect is followed, not retried",
        400..=499 => "it fails the same way again; of 4xx only 408, 409, 421, 425 and 429 may be retried",
        501 => "not implemented fails the same way again",
        505 => "an HTTP version that is not supported fails the same way again",
        _ => "it can't be retried",
    }
}

fn mend(word: &str) -> String {
    let is_code = word.len() == 3 && word.bytes().all(|b| b.is_ascii_digit());
    if is_code {
        return format!("write {word} without quotes");
    }
    if word.eq_ignore_ascii_case("5xx") {
        return "write the statuses: 500, 502, 503, 504".to_owned();
    }
    if let Some(code) = GrpcCode::named(word) {
        return format!("write \"{code}\"");
    }
    match nearest(word, names()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "write \"connect\", \"reset\", \"timeout\", or a status such as 503".to_owned(),
    }
}

/// All words that an entry may be.
fn names() -> impl Iterator<Item = &'static str> {
    CONDITIONS.iter().map(|(name, _)| *name).chain(GrpcCode::all().skip(1).map(GrpcCode::name))
}
