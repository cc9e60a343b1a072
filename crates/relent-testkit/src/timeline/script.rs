//! The file as a whole: sections at the margin, their entries indented, `#` for remarks.

use relent_core::Repeat;

use super::policy::Wishes;
use super::value::{Wrong, length, number, one_of};
use super::{Above, ScriptedCall, Skip, Timeline, attempt};

/// Reads a script; what is wrong comes with its line.
pub(super) fn parse(path: &str, text: &str) -> Result<Timeline, (usize, Wrong)> {
    let mut draft = Draft::new();
    let mut section = Section::None;
    for (index, line) in text.lines().enumerate() {
        let written = line.split('#').next().unwrap_or_default();
        let entry = written.trim();
        if entry.is_empty() {
            continue;
        }
        draft.line = index + 1;
        let taken = if written.starts_with(char::is_whitespace) {
            draft.entry(section, entry)
        } else {
            draft.heading(entry).map(|found| section = found)
        };
        taken.map_err(|wrong| (index + 1, wrong))?;
    }
    draft.finish(path, text.lines().count())
}

#[derive(Clone, Copy)]
enum Section {
    None,
    Policy,
    Above,
    Call,
    Expect,
}

/// A timeline in the making.
struct Draft {
    /// The line being read.
    line: usize,
    wishes: Wishes,
    /// Where the policy begins.
    policy_at: usize,
    repeat: Repeat,
    seed: u64,
    above: Above,
    calls: Vec<ScriptedCall>,
    /// How often the call being read is made.
    times: usize,
    expected: Vec<String>,
    expected_at: Vec<usize>,
    skips: Vec<Skip>,
}

const REPEAT: [(&str, Repeat); 3] =
    [("yes", Repeat::Yes), ("only-if-unprocessed", Repeat::UnprocessedOnly), ("no", Repeat::No)];

impl Draft {
    fn new() -> Draft {
        Draft {
            line: 0,
            wishes: Wishes::new(),
            policy_at: 0,
            repeat: Repeat::Yes,
            seed: 0,
            above: Above::default(),
            calls: Vec::new(),
            times: 0,
            expected: Vec::new(),
            expected_at: Vec::new(),
            skips: Vec::new(),
        }
    }

    fn heading(&mut self, text: &str) -> Result<Section, Wrong> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "policy" | "above" | "expect" if !rest.trim().is_empty() => {
                Err(format!("`{rest}`: the entries of `{word}` stand below it, indented"))
            }
            "policy" => {
                self.policy_at = self.line;
                Ok(Section::Policy)
            }
            "above" => Ok(Section::Above),
            "expect" => Ok(Section::Expect),
            "call" => self.begin_call(rest),
            "skip" => {
                let (drivers, reason) = rest.split_once(':').ok_or("a skip is `skip DRIVER, DRIVER: why`")?;
                let reason = reason.trim();
                if reason.is_empty() {
                    return Err("why is it skipped?".into());
                }
                let skip = |driver: &str| Skip { driver: driver.trim().into(), reason: reason.into() };
                self.skips.extend(drivers.split(',').map(skip));
                Ok(Section::None)
            }
            _ => Err(format!("`{word}` is no section: policy, above, call, expect, skip")),
        }
    }

    fn begin_call(&mut self, options: &str) -> Result<Section, Wrong> {
        self.repeat_last_call();
        let mut call = ScriptedCall { at: None, logged: true, attempts: Vec::new() };
        self.times = 1;
        let mut words = options.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "at" => call.at = Some(length(words.next().unwrap_or_default())?),
                "times" => self.times = number(words.next().unwrap_or_default())?,
                "unlogged" => call.logged = false,
                _ => return Err(format!("`{word}` is not one of: at TIME, times NUMBER, unlogged")),
            }
        }
        self.calls.push(call);
        Ok(Section::Call)
    }

    fn repeat_last_call(&mut self) {
        if let Some(call) = self.calls.last().cloned() {
            self.calls.extend(std::iter::repeat_n(call, self.times.saturating_sub(1)));
        }
    }

    fn entry(&mut self, section: Section, text: &str) -> Result<(), Wrong> {
        match section {
            Section::None => Err("an indented line belongs to a section, and none has begun".into()),
            Section::Policy => {
                let (key, value) = assignment(text)?;
                match key {
                    "repeat" => self.repeat = one_of(&REPEAT, value)?,
                    "seed" => self.seed = number(value)?,
                    _ => self.wishes.set(key, value)?,
                }
                Ok(())
            }
            Section::Above => {
                match assignment(text)? {
                    ("left", value) => self.above.left = Some(number(value)?),
                    ("deadline", value) => self.above.deadline = Some(length(value)?),
                    (key, _) => return Err(format!("`{key}` is not one of: left, deadline")),
                }
                Ok(())
            }
            Section::Call => {
                let attempt = attempt::parse(text)?;
                let call = self.calls.last_mut().expect("a call's heading came before its entries");
                call.attempts.push(attempt);
                Ok(())
            }
            Section::Expect => {
                self.expected.push(text.split_whitespace().collect::<Vec<_>>().join(" "));
                self.expected_at.push(self.line);
                Ok(())
            }
        }
    }

    fn finish(mut self, path: &str, last_line: usize) -> Result<Timeline, (usize, Wrong)> {
        self.repeat_last_call();
        if self.calls.is_empty() {
            return Err((last_line, "no call is made".into()));
        }
        if self.expected.is_empty() {
            return Err((last_line, "nothing is expected".into()));
        }
        if self.above.grants() && self.above.policy().is_none() {
            let wrong = "no layer above can grant just this";
            return Err((last_line, wrong.into()));
        }
        let policy = self.wishes.build().map_err(|wrong| (self.policy_at, wrong))?;
        let Draft { repeat, seed, above, calls, expected, expected_at, skips, .. } = self;
        let path = path.to_owned();
        Ok(Timeline { path, policy, repeat, seed, above, calls, expected, expected_at, skips })
    }
}

fn assignment(text: &str) -> Result<(&str, &str), Wrong> {
    let (key, value) = text.split_once('=').ok_or("a setting is `key = value`")?;
    Ok((key.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use crate::Timeline;

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let check = |text: &str, expected: &str| {
            let error = Timeline::parse("x.txt", text).expect_err(text).to_string();
            assert_eq!(error, expected);
        };
        check("polcy\n", "x.txt:1: `polcy` is no section: policy, above, call, expect, skip");
        check("# hello\n  base = 1s\n", "x.txt:2: an indented line belongs to a section, and none has begun");
        check("policy\n  bass = 1s\n", "x.txt:2: `bass` is nothing that a policy has");
        check("policy\n  base = 1\n", "x.txt:2: `1` is no length such as 250ms or 1.5s");
        check("call\n  1ms fine\n", VERDICTS);
        check("call\n  1ms ok hint=2s\n", "x.txt:2: `hint=2s`: a success has nothing more to say");
        check("call twice\n", "x.txt:1: `twice` is not one of: at TIME, times NUMBER, unlogged");
        check("skip blocking:\n", "x.txt:1: why is it skipped?");
        check("call\n  1ms ok\n", "x.txt:2: nothing is expected");
        check("expect\n  0ms launch 1\n", "x.txt:2: no call is made");
    }

    #[test]
    fn an_impossible_policy_is_told_where_it_begins() {
        let text = "# x\npolicy\n  attempts = 0\ncall\n  1ms ok\nexpect\n  0ms launch 1\n";
        let error = Timeline::parse("x.txt", text).unwrap_err();
        assert_eq!((error.line, error.message.contains("attempts")), (2, true));
    }

    const VERDICTS: &str =
        "x.txt:2: `fine` is not one of: transient, throttled, unprocessed, permanent, rejected";

    #[test]
    fn a_call_is_made_as_often_as_it_says() {
        let text = "call times 3 unlogged\n  1ms ok\ncall at 2s\n  1ms ok\nexpect\n  2s launch 1\n";
        let timeline = Timeline::parse("x.txt", text).unwrap();
        let logged: Vec<bool> = timeline.calls.iter().map(|call| call.logged).collect();
        assert_eq!(logged, [false, false, false, true]);
    }
}
