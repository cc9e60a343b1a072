//! What is retried and what is not: every kind of failure against every kind of request.
//!
//! No table of its own stands behind it. What may be repeated is asked of `relent::http`, what a status means too, and each
//! cell is one decision of the engine's session.

use std::time::UNIX_EPOCH;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use relent::http::{IDEMPOTENCY_KEY, failure_of_response, repeat};
use relent_core::{Cause, Failure, Instant, Policy, Repeat, Session, Step, StopReason, Verdict};
use serde::Serialize;

use super::alone::Alone;

/// The matrix of one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Matrix {
    pub(super) rows: Vec<Row>,
    /// What is never retried.
    pub(super) never: Vec<String>,
}

/// One kind of failure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) failure: String,
    /// GET, HEAD, OPTIONS, TRACE, PUT, DELETE.
    pub(super) idempotent: Answer,
    /// POST, PATCH.
    pub(super) other: Answer,
    /// POST, PATCH with an Idempotency-Key.
    pub(super) with_key: Answer,
}

/// What happens then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Answer {
    /// Again at once, for nothing.
    AtOnce,
    Repeat,
    RepeatSameKey,
    AfterTheHint,
    AfterTheHintSameKey,
    /// No: the work could be done twice.
    UnsafeToRepeat,
    /// No: `retry_on` does not name it, or it fails the same way again.
    NotRetryable,
    /// No: the policy makes one attempt.
    NoAttemptLeft,
}

impl Answer {
    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Answer::AtOnce => "at once",
            Answer::Repeat => "repeat",
            Answer::RepeatSameKey => "repeat, same key",
            Answer::AfterTheHint => "after the hint",
            Answer::AfterTheHintSameKey => "after the hint, same key",
            Answer::UnsafeToRepeat => "no",
            Answer::NotRetryable => "not in retry_on",
            Answer::NoAttemptLeft => "no attempt left",
        }
    }
}

/// A failure of an attempt, by name.
struct Case {
    name: String,
    failure: Failure,
    /// Whether it says how long to wait.
    hinted: bool,
}

impl Matrix {
    pub(super) fn of(policy: &Policy) -> Matrix {
        let unprocessed = Failure::new(Verdict::Unprocessed);
        let reset = Failure::new(Verdict::Transient).cause(Cause::Reset).ambiguous();
        let case = |name: &str, failure| Case { name: name.to_owned(), failure, hinted: false };
        let mut cases = vec![
            case("stale pooled connection, GOAWAY", unprocessed.free()),
            case("refused, connect timeout, TLS failure", unprocessed.cause(Cause::Connect)),
            case("REFUSED_STREAM, 421", unprocessed),
            case("reset after bytes were sent", reset),
            case("attempt timeout", Failure::timed_out()),
        ];
        // 421 says that nothing was executed, and stands above whether it is listed or not.
        let listed: Vec<u16> = policy.retry_on().statuses().filter(|code| *code != 421).collect();
        let plain: Vec<u16> = listed.iter().copied().filter(|code| *code != 429).collect();
        let hinting: Vec<u16> = listed.iter().copied().filter(|code| matches!(code, 429 | 503)).collect();
        cases.extend(statuses(&plain, spaced(&plain), false));
        cases.extend(statuses(&hinting, hinting_name(&hinting), true));
        let rows = cases.into_iter().map(|case| row(policy, case)).collect();
        Matrix { rows, never: never(&listed) }
    }
}

/// Statuses that mean the same, as one case; `None` without any.
fn statuses(codes: &[u16], name: String, hinted: bool) -> Option<Case> {
    let status = StatusCode::from_u16(*codes.first()?).ok()?;
    let mut headers = HeaderMap::new();
    if hinted {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("0"));
    }
    let failure = failure_of_response(status, &headers, UNIX_EPOCH)?;
    Some(Case { name, failure, hinted })
}

fn hinting_name(codes: &[u16]) -> String {
    let names =
        codes.iter().map(|code| if *code == 503 { "503 with Retry-After".into() } else { code.to_string() });
    names.collect::<Vec<_>>().join(", ")
}

fn row(policy: &Policy, case: Case) -> Row {
    let keyed: HeaderMap = [(IDEMPOTENCY_KEY, HeaderValue::from_static("k"))].into_iter().collect();
    let answer =
        |method, headers: &HeaderMap| answer(policy, repeat(policy.repeat(), &method, headers), &case);
    let idempotent = answer(Method::GET, &HeaderMap::new());
    let other = answer(Method::POST, &HeaderMap::new());
    let with_key = match (answer(Method::POST, &keyed), case.failure.verdict()) {
        // Nobody has seen the key then.
        (answer, Verdict::Unprocessed) => answer,
        (Answer::Repeat, _) => Answer::RepeatSameKey,
        (Answer::AfterTheHint, _) => Answer::AfterTheHintSameKey,
        (answer, _) => answer,
    };
    Row { failure: case.name, idempotent, other, with_key }
}

/// What the engine decides after this failure of a first attempt, with nothing else in the way.
fn answer(policy: &Policy, repeat: Repeat, case: &Case) -> Answer {
    let (alone, random) = (Alone::new(), || 0);
    let context = alone.context(policy, &random);
    let now = Instant::ZERO;
    let mut session = Session::new(policy, repeat, Instant::NEVER, now);
    let Step::Launch(launch) = session.begin(&context, now) else { return Answer::NoAttemptLeft };
    match session.failed(&context, launch.id, case.failure, now) {
        Step::Launch(_) => Answer::AtOnce,
        Step::Wait { .. } if case.hinted => Answer::AfterTheHint,
        Step::Wait { .. } => Answer::Repeat,
        Step::Stop(stop) => match stop.reason {
            StopReason::UnsafeToRepeat => Answer::UnsafeToRepeat,
            StopReason::NotRetryable => Answer::NotRetryable,
            _ => Answer::NoAttemptLeft,
        },
    }
}

/// What a reader may expect to be retried and is not, and what never is.
fn never(listed: &[u16]) -> Vec<String> {
    let could = [408, 409, 425, 429, 500, 502, 503, 504];
    let left_out: Vec<u16> = could.into_iter().filter(|code| !listed.contains(code)).collect();
    let mut never = Vec::new();
    if !left_out.is_empty() {
        never.push(format!("{}: not in retry_on", spaced(&left_out)));
    }
    never.push("every other 4xx, 501, 505: they fail the same way again".into());
    never.push("the call's own deadline, a cancelled call, a peer's stop mark".into());
    never.push("anything after the first response byte went to the caller".into());
    never
}

fn spaced(codes: &[u16]) -> String {
    codes.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use relent_core::{RepeatRule, RetryOn};

    use super::*;

    fn cells(policy: &Policy, failure: &str) -> [Answer; 3] {
        let matrix = Matrix::of(policy);
        let row = matrix.rows.iter().find(|row| row.failure == failure).unwrap();
        [row.idempotent, row.other, row.with_key]
    }

    #[test]
    fn the_default_repeats_what_http_calls_idempotent() {
        use Answer::{AfterTheHint, Repeat, UnsafeToRepeat};
        let policy = Policy::default();
        assert_eq!(cells(&policy, "refused, connect timeout, TLS failure"), [Repeat; 3]);
        assert_eq!(cells(&policy, "attempt timeout"), [Repeat, UnsafeToRepeat, UnsafeToRepeat]);
        assert_eq!(cells(&policy, "500 502 503 504"), [Repeat, UnsafeToRepeat, UnsafeToRepeat]);
        assert_eq!(
            cells(&policy, "429, 503 with Retry-After"),
            [AfterTheHint, UnsafeToRepeat, UnsafeToRepeat]
        );
        assert_eq!(Matrix::of(&policy).never[0], "408 409 425: not in retry_on");
    }

    #[test]
    fn the_repeat_rule_moves_the_cells() {
        use Answer::{AtOnce, Repeat, RepeatSameKey, UnsafeToRepeat};
        let policy = |rule| Policy::builder().repeat(rule).build().unwrap();
        let reset = "reset after bytes were sent";
        assert_eq!(cells(&policy(RepeatRule::KeyHonoured), reset), [Repeat, UnsafeToRepeat, RepeatSameKey]);
        assert_eq!(cells(&policy(RepeatRule::Always), reset), [Repeat, Repeat, RepeatSameKey]);
        assert_eq!(cells(&policy(RepeatRule::Never), "REFUSED_STREAM, 421"), [UnsafeToRepeat; 3]);
        assert_eq!(cells(&policy(RepeatRule::Never), "stale pooled connection, GOAWAY"), [AtOnce; 3]);
    }

    #[test]
    fn what_retry_on_leaves_out_is_said() {
        let on = RetryOn::nothing().connect().status(503).unwrap();
        let policy = Policy::builder().retry_on(on).build().unwrap();
        assert_eq!(cells(&policy, "reset after bytes were sent"), [Answer::NotRetryable; 3]);
        assert_eq!(cells(&policy, "503 with Retry-After")[0], Answer::AfterTheHint);
        assert_eq!(Matrix::of(&policy).never[0], "408 409 425 429 500 502 504: not in retry_on");
    }

    #[test]
    fn one_attempt_is_one_attempt() {
        let policy = Policy::builder().attempts(1).build().unwrap();
        assert_eq!(cells(&policy, "attempt timeout")[0], Answer::NoAttemptLeft);
    }
}
