//! `throttled = { … }` and `attempts_on = { … }`: what holds for one class of failures alone.

use relent_core::Cause;

use super::draft::Draft;
use crate::nearest;
use crate::report::{Fault, Report};
use crate::text::Item;

pub(super) const THROTTLED_FIELDS: [&str; 3] = ["base", "cap", "attempts"];

const CAUSES: [(&str, Cause); 4] = [
    ("connect", Cause::Connect),
    ("reset", Cause::Reset),
    ("timeout", Cause::Timeout),
    ("other", Cause::Other),
];

pub(super) fn read_throttled(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    let table = item.table("throttled", "{ base = \"1s\", cap = \"20s\", attempts = 2 }", report)?;
    table.refuse_unknown(&THROTTLED_FIELDS, &[], report);
    if let (Some(base), Some(short)) = (table.item("base"), draft.span(&["throttled_base"])) {
        report.add(
            Fault::new(base.key_span(), "the base of throttled says the same as throttled_base")
                .related("throttled_base is set here", short)
                .mend("leave one of them out"),
        );
        draft.spoil("throttled_base");
        return None;
    }
    let mut good = true;
    for (name, key) in
        THROTTLED_FIELDS.into_iter().zip(["throttled_base", "throttled.cap", "throttled.attempts"])
    {
        let Some(inner) = table.item(name) else { continue };
        draft.note(key, inner.span());
        let read = match name {
            "base" => inner.length(report).map(|base| draft.throttled.base = base),
            "cap" => inner.length(report).map(|cap| draft.throttled.cap = Some(cap)),
            _ => inner.whole("2", report).map(|attempts| draft.throttled.attempts = Some(attempts)),
        };
        if read.is_none() {
            draft.spoil(key);
            good = false;
        }
    }
    good.then_some(())
}

pub(super) fn read_attempts_on(draft: &mut Draft, item: &Item<'_>, report: &mut Report) -> Option<()> {
    let table = item.table("attempts_on", "{ connect = 2, 503 = 2 }", report)?;
    let mut good = true;
    for inner in table.items() {
        let cause = cause(inner.name());
        if cause.is_none() {
            let fault = Fault::new(inner.key_span(), format!("\"{}\" is no cause", inner.name()));
            report.add(fault.mend(mend(inner.name())));
        }
        match (cause, inner.whole("2", report)) {
            (Some(cause), Some(attempts)) => draft.limits.push((cause, attempts)),
            _ => good = false,
        }
    }
    good.then_some(())
}

fn cause(name: &str) -> Option<Cause> {
    let word = CAUSES.iter().find(|(word, _)| *word == name).map(|(_, cause)| *cause);
    let status = || name.parse().ok().filter(|code| (100..600).contains(code)).map(Cause::Status);
    word.or_else(status)
}

fn mend(name: &str) -> String {
    match nearest(name, CAUSES.iter().map(|(word, _)| *word)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write connect, reset, timeout, other, or a status such as 503".to_owned(),
    }
}
