//! `[policy.NAME]`: its fields, each by name, into a builder.

mod backoff;
mod breaker;
mod budget;
mod class;
mod contradiction;
mod draft;
mod handles;
mod hedge;
mod retry_on;

use std::ops::Range;

use relent_core::{Nested, Policy, RepeatRule};

use crate::report::{Fault, Report};
use crate::text::{Item, Table};

use draft::Draft;

/// Where fields are set, by name.
pub(super) type Spans = Vec<(&'static str, Range<usize>)>;

/// Reads one field into the draft; `None` if it was refused.
type Reader = fn(&mut Draft, &Item<'_>, &mut Report) -> Option<()>;

/// Every field of a policy.
const READERS: [(&str, Reader); 21] = [
    ("attempts", |d, item, report| item.whole("3", report).map(|v| d.set(|b| b.attempts(v)))),
    ("backoff", backoff::read),
    ("attempt_timeout", |d, item, report| {
        let value = item.length_or_none(report)?;
        d.set(|b| if let Some(v) = value { b.attempt_timeout(v) } else { b.no_attempt_timeout() });
        Some(())
    }),
    ("deadline", |d, item, report| {
        let value = item.length_or_none(report)?;
        d.set(|b| if let Some(v) = value { b.deadline(v) } else { b.no_deadline() });
        Some(())
    }),
    ("give_up_after", |d, item, report| {
        let value = item.length_or_none(report)?;
        d.set(|b| if let Some(v) = value { b.give_up_after(v) } else { b.no_give_up_after() });
        Some(())
    }),
    ("min_attempt_time", |d, item, report| item.length(report).map(|v| d.set(|b| b.min_attempt_time(v)))),
    ("throttled_base", |d, item, report| item.length(report).map(|v| d.throttled.base = v)),
    ("throttled", class::read_throttled),
    ("max_hint", |d, item, report| item.length(report).map(|v| d.set(|b| b.max_hint(v)))),
    ("budget", budget::read),
    ("breaker", breaker::read),
    ("hedge", hedge::read),
    ("hold", |d, item, report| item.choice(&hedge::HOLDS, report).map(|v| d.set(|b| b.hold(v)))),
    ("max_waiting", |d, item, report| item.whole("10000", report).map(|v| d.set(|b| b.max_waiting(v)))),
    ("repeat", |d, item, report| item.choice(&REPEAT, report).map(|v| d.set(|b| b.repeat(v)))),
    ("repeat_reason", read_reason),
    ("retry_on", retry_on::read),
    ("attempts_on", class::read_attempts_on),
    ("nested", |d, item, report| item.choice(&NESTED, report).map(|v| d.set(|b| b.nested(v)))),
    ("replay_limit", |d, item, report| item.size(report).map(|v| d.set(|b| b.replay_limit(v)))),
    ("replay_total", |d, item, report| item.size(report).map(|v| d.set(|b| b.replay_total(v)))),
];

const REPEAT: [(&str, RepeatRule); 4] = [
    ("idempotent-methods", RepeatRule::IdempotentMethods),
    ("never", RepeatRule::Never),
    ("key-honoured", RepeatRule::KeyHonoured),
    ("always", RepeatRule::Always),
];

const NESTED: [(&str, Nested); 3] =
    [("credit", Nested::Credit), ("pass-through", Nested::PassThrough), ("allow", Nested::Allow)];

/// The fields of inner tables, for who writes them a level too high.
const INNER: [(&str, &[&str]); 3] = [
    ("backoff", &backoff::FIELDS),
    ("budget", &budget::RATIO_FIELDS),
    ("throttled", &class::THROTTLED_FIELDS),
];

/// The longest reason.
const LONGEST_REASON: usize = 1000;

/// Reads a whole policy, and where its fields are set. `None` if anything in it was refused.
pub(super) fn read(table: &Table<'_>, report: &mut Report) -> Option<(Policy, Spans)> {
    let faults = report.total();
    table.refuse_unknown(&READERS.map(|(name, _)| name), &INNER, report);
    let mut draft = Draft::default();
    for (name, reader) in READERS {
        let Some(item) = table.item(name) else { continue };
        draft.note(name, item.span());
        if reader(&mut draft, &item, report).is_none() {
            draft.spoil(name);
        }
    }
    check_reason(table, report);
    let policy = contradiction::build(&mut draft, table, report);
    if let Some(policy) = &policy {
        check_waiting(policy, &draft, table, report);
    }
    policy.filter(|_| report.total() == faults).map(|policy| (policy, draft.spans()))
}

/// The reason is for the next reader of the file; here it only has to be one.
fn read_reason(_: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    let reason = item.text("\"orders are deduplicated by the ledger\"", report)?;
    let wrong = match reason.trim() {
        "" => "it says nothing",
        trimmed if trimmed.chars().count() > LONGEST_REASON => "it is over 1000 characters",
        _ => return Some(()),
    };
    item.refuse(wrong, "say in a sentence why repeating does no harm", report);
    None
}

/// `always` is a promise about the receiver; whoever makes it has to say what it rests on.
fn check_reason(table: &Table<'_>, report: &mut Report) {
    let always = table.item("repeat").filter(|item| item.as_text() == Some("always"));
    match (always, table.item("repeat_reason")) {
        (Some(repeat), None) => report.add(
            Fault::new(repeat.span(), "repeat = \"always\" needs a repeat_reason: it also repeats what may have been done already")
                .mend("add repeat_reason = \"…\", why repeating does no harm, or take \"key-honoured\" or \"idempotent-methods\""),
        ),
        (None, Some(reason)) => report.add(
            Fault::new(reason.key_span(), "repeat_reason is for repeat = \"always\" alone").mend("leave it out"),
        ),
        _ => {}
    }
}

/// What the core takes, and a file should not say: it could never have an effect.
fn check_waiting(policy: &Policy, draft: &Draft, table: &Table<'_>, report: &mut Report) {
    if policy.attempts() > 1 && policy.max_waiting() == 0 && draft.is_good(&["max_waiting", "attempts"]) {
        let span = draft.span(&["max_waiting"]).unwrap_or_else(|| table.span());
        report.add(
            Fault::new(span, "max_waiting is 0, so no call could ever wait for a retry")
                .mend("raise it, or set attempts to 1, which means: no retry"),
        );
    }
}
