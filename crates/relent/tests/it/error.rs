//! How a call that gave up tells its story.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::future::{pending, ready};
use std::time::Duration;

use relent::timer::{Clock, Manual, Timer};
use relent::{Cause, Failure, Hint, Retry, RetryError, StopReason, StopScope, Verdict};

use crate::rig::{Busy, handle, ms, unbounded};

/// A call whose attempts come to `failures`, one after another, each after 10 ms.
fn gave_up(failures: &[Failure]) -> RetryError<Busy> {
    let time = Manual::new();
    let policy = unbounded(3).deadline(ms(60_000)).build().unwrap();
    let left = RefCell::new(failures.iter());
    let next = move |_: &Busy| *left.borrow_mut().next().expect("no attempt too many");
    let retry = Retry::with_timer(policy, time.clone()).classify(next);
    let outcome = retry.run_blocking(|attempt| {
        time.advance(ms(10));
        Err::<(), _>(Busy(attempt.number()))
    });
    outcome.unwrap_err()
}

#[test]
fn the_text_says_how_often_how_long_and_why() {
    let check = |failures: &[Failure], expected: &str| assert_eq!(gave_up(failures).to_string(), expected);
    let transient = Failure::new(Verdict::Transient);
    let reset = transient.cause(Cause::Reset).ambiguous();

    check(&[transient; 3], "gave up after 3 attempts in 50.0ms: all attempts are made");
    check(&[Verdict::Permanent.into()], "gave up after 1 attempt in 10.0ms: the failure is not retryable");
    check(&[Verdict::Rejected.into()], "gave up after 1 attempt in 10.0ms: the failure is not retryable");
    check(
        &[transient, transient.stop(StopScope::Host)],
        "gave up after 2 attempts in 30.0ms: the peer said not to retry",
    );
    check(
        &[transient.hint(Hint::at_least(Duration::from_secs(3600)))],
        "gave up after 1 attempt in 10.0ms: the server asked for too long a wait (3600s)",
    );
    check(&[reset; 3], "gave up after 3 attempts in 50.0ms: all attempts are made; it may have taken effect");
    check(
        &[reset, transient.not_replayable()],
        "gave up after 2 attempts in 30.0ms: the body can't be sent again; it may have taken effect",
    );
}

#[test]
fn the_text_of_timeouts() {
    let time = Manual::new();
    let check = |retry: Retry<_, Manual>, expected: &str| {
        let call = retry.run(async |_| pending::<Result<(), Busy>>().await);
        assert_eq!(time.run(call).unwrap_err().to_string(), expected);
    };
    check(
        handle(unbounded(2).attempt_timeout(ms(100)), &time),
        "gave up after 2 attempts in 210.0ms: all attempts are made; the last attempt timed out; it may have taken effect",
    );
    check(
        handle(unbounded(2).deadline(ms(100)), &time),
        "gave up after 1 attempt in 100.0ms: the deadline has passed; it may have taken effect",
    );
}

#[test]
fn the_facts() {
    let hint = Duration::from_secs(3600);
    let story =
        gave_up(&[Verdict::Transient.into(), Failure::new(Verdict::Transient).hint(Hint::at_least(hint))]);
    assert_eq!((story.reason(), story.attempts()), (StopReason::HintTooLong, 2));
    assert_eq!((story.elapsed(), story.hint()), (ms(30), Some(hint)));
    assert_eq!((story.ambiguous(), story.last_timed_out()), (false, false));
    assert_eq!(story.last(), Some(&Busy(2)));
    assert_eq!(story.into_last(), Some(Busy(2)));
}

#[test]
fn every_error_is_kept_on_request_only() {
    let time = Manual::new();
    let check = |keep: bool, expected: &[Busy]| {
        let retry = handle(unbounded(3), &time);
        let retry = if keep { retry.keep_errors() } else { retry };
        let story = retry.run_blocking(|attempt| Err::<(), _>(Busy(attempt.number()))).unwrap_err();
        assert_eq!(story.errors().copied().collect::<Vec<_>>(), expected);
    };
    check(false, &[Busy(3)]);
    check(true, &[Busy(1), Busy(2), Busy(3)]);
}

#[test]
fn an_attempt_that_timed_out_has_no_error_and_hides_none() {
    let time = Manual::new();
    let retry = handle(unbounded(4).attempt_timeout(ms(20)), &time).keep_errors();
    let call = retry.run(async |attempt| match attempt.number() {
        2 | 4 => pending::<Result<(), Busy>>().await,
        number => Err(Busy(number)),
    });
    let story = time.run(call).unwrap_err();
    assert_eq!((story.attempts(), story.last_timed_out(), story.ambiguous()), (4, true, true));
    assert_eq!(story.errors().copied().collect::<Vec<_>>(), [Busy(1), Busy(3)]);
    assert_eq!(story.last(), Some(&Busy(3)), "the last real one");

    let all_hang = time.run(retry.run(async |_| pending::<Result<(), Busy>>().await)).unwrap_err();
    assert_eq!((all_hang.last(), all_hang.errors().count()), (None, 0));
    assert_eq!(all_hang.source().unwrap().to_string(), "no attempt was answered in time");
}

#[test]
fn a38_the_source_chain_is_whole() {
    let time = Manual::new();
    let hinted =
        |_: &Outer| Failure::new(Verdict::Throttled { hint: Some(Hint::at_least(Duration::from_secs(99))) });
    let retry = Retry::with_timer(unbounded(2).build().unwrap(), time).classify(hinted);
    let story = retry.run_blocking(|_| Err::<(), _>(Outer(Busy(7)))).unwrap_err();
    assert_eq!(story.reason(), StopReason::HintTooLong);

    let mut chain: Vec<String> = Vec::new();
    let mut current: Option<&dyn Error> = Some(&story);
    while let Some(error) = current {
        chain.push(error.to_string());
        current = error.source();
    }
    assert_eq!(chain.len(), 3);
    assert!(chain[0].starts_with("gave up after 1 attempt"), "{}", chain[0]);
    assert_eq!(chain[1..], ["the outer error", "busy 7"]);
}

#[derive(Debug)]
struct Outer(Busy);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the outer error")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn a_story_can_change_its_error_type() {
    let story = gave_up(&[Verdict::Permanent.into()]).map(|busy| busy.0);
    assert_eq!((story.last(), story.reason()), (Some(&1), StopReason::NotRetryable));
}

#[test]
fn errors_need_not_be_errors() {
    // A type that is nothing but Debug: it can be retried and carried, only `source()` needs more.
    #[derive(Debug, PartialEq)]
    struct Plain;
    let retry = Retry::with_timer(unbounded(2).build().unwrap(), Manual::new())
        .classify(|_: &Plain| Verdict::Transient);
    let story = retry.run_blocking(|_| Err::<(), _>(Plain)).unwrap_err();
    assert_eq!((story.attempts(), story.into_last()), (2, Some(Plain)));
}

#[test]
fn elapsed_without_a_clock_counts_from_what_took_time() {
    // No timeout and no deadline: the first attempt reads no clock. Waits count, an attempt that was pending counts.
    let time = Manual::new();
    let retry = handle(unbounded(2), &time);
    let story = retry.run_blocking(|_| Err::<(), _>(Busy(1))).unwrap_err();
    assert_eq!(story.elapsed(), ms(10));
    let call = retry.run(async |_| {
        time.sleep_until(time.now() + ms(5)).await;
        Err::<(), _>(Busy(1))
    });
    assert_eq!(time.run(call).unwrap_err().elapsed(), ms(20));
}

#[test]
fn an_operation_may_see_the_error_of_the_attempt_before() {
    let time = Manual::new();
    let retry = handle(unbounded(4), &time);
    let seen = RefCell::new(Vec::new());
    let outcome = time.run(retry.run_seeing(|attempt, last: Option<&Busy>| {
        seen.borrow_mut().push(last.copied());
        ready(if attempt.number() < 3 { Err(Busy(attempt.number())) } else { Ok(()) })
    }));
    assert!(outcome.is_ok());
    assert_eq!(seen.take(), [None, Some(Busy(1)), Some(Busy(2))]);
    let outcome = retry.run_blocking_seeing(|attempt, last: Option<&Busy>| {
        seen.borrow_mut().push(last.copied());
        if attempt.number() < 3 { Err(Busy(attempt.number())) } else { Ok(()) }
    });
    assert!(outcome.is_ok());
    assert_eq!(seen.take(), [None, Some(Busy(1)), Some(Busy(2))]);
}
