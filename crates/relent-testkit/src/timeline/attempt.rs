//! One attempt's line: how long it takes and what it comes to.

use relent_core::{Failure, Health, Hint, StopScope, Verdict};

use super::policy::cause;
use super::value::{Wrong, length, number, one_of};
use super::{ScriptedAttempt, ScriptedOutcome};

/// `10ms ok`, or `10ms transient cause=503 hint=2s`.
pub(super) fn parse(text: &str) -> Result<ScriptedAttempt, Wrong> {
    let mut words = text.split_whitespace();
    let takes = length(words.next().unwrap_or_default())?;
    let kind = words.next().ok_or("what does the attempt come to? `ok` or a verdict goes here")?;
    if kind == "ok" {
        return match words.next() {
            None => Ok(ScriptedAttempt { takes, outcome: ScriptedOutcome::Succeeds }),
            Some(word) => Err(format!("`{word}`: a success has nothing more to say")),
        };
    }
    let (mut failure, mut used) = (Failure::new(one_of(&VERDICTS, kind)?), 0);
    for word in words {
        match word.split_once('=') {
            Some(("used", count)) => used = number(count)?,
            Some((key, value)) => failure = with(failure, key, value)?,
            None => failure = marked(failure, word)?,
        }
    }
    Ok(ScriptedAttempt { takes, outcome: ScriptedOutcome::Fails { failure, used } })
}

const VERDICTS: [(&str, Verdict); 5] = [
    ("transient", Verdict::Transient),
    ("throttled", Verdict::Throttled { hint: None }),
    ("unprocessed", Verdict::Unprocessed),
    ("permanent", Verdict::Permanent),
    ("rejected", Verdict::Rejected),
];

const SCOPES: [(&str, StopScope); 3] =
    [("host", StopScope::Host), ("service", StopScope::Service), ("chain", StopScope::Chain)];

const HEALTH: [(&str, Health); 3] =
    [("good", Health::Good), ("bad", Health::Bad), ("unknown", Health::Unknown)];

fn with(failure: Failure, key: &str, value: &str) -> Result<Failure, Wrong> {
    Ok(match key {
        "cause" => failure.cause(cause(value)?),
        "hint" => failure.hint(Hint::at_least(length(value)?)),
        "pushback" => failure.hint(Hint::exactly(length(value)?)),
        "stop" => failure.stop(one_of(&SCOPES, value)?),
        "health" => failure.health(one_of(&HEALTH, value)?),
        _ => return Err(format!("`{key}` is nothing that a failure has")),
    })
}

fn marked(failure: Failure, mark: &str) -> Result<Failure, Wrong> {
    Ok(match mark {
        "ambiguous" => failure.ambiguous(),
        "not-replayable" => failure.not_replayable(),
        "free" => failure.free(),
        _ => return Err(format!("`{mark}` is not one of: ambiguous, not-replayable, free")),
    })
}
