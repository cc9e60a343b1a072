//! Classifiers out of classifiers: what each refinement changes, and what it leaves.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use relent::timer::Manual;
use relent::{
    Boxed, Cause, Classify, ClassifyExt, Event, Failure, Hint, Retry, Standard, StopReason, Verdict,
    WaitOrigin,
};

use crate::rig::{ms, unbounded};

/// A driver's error: with a code, a wait that its server may have asked for, and a cause.
#[derive(Debug)]
struct Refusal {
    code: u16,
    wait: Option<Duration>,
    cause: Option<io::Error>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused with {}", self.code)
    }
}

impl Error for Refusal {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

fn code(code: u16) -> Refusal {
    Refusal { code, wait: None, cause: None }
}

fn over(kind: ErrorKind) -> Refusal {
    Refusal { code: 1, wait: None, cause: Some(kind.into()) }
}

fn failure(classifier: &impl Classify<Refusal>, error: &Refusal) -> Failure {
    classifier.classify(error)
}

#[test]
fn a29_types_are_found_along_the_chain_before_anybody_else_is_asked() {
    let judge = |error: &Refusal| match error.code {
        40 => Some(Verdict::Transient),
        41 => Some(Verdict::Permanent),
        _ => None,
    };
    let boxed = Boxed.on_source(judge);
    let wrapped = |error: Refusal| anyhow::Error::from(io::Error::other(error)).context("one").context("two");
    assert_eq!(boxed.classify(&wrapped(code(40))).verdict(), Verdict::Transient);
    // It goes before what the standard knows of the cause below ...
    let reset = |code| Refusal { code, ..over(ErrorKind::ConnectionReset) };
    assert_eq!(boxed.classify(&wrapped(reset(41))).verdict(), Verdict::Permanent);
    // ... which is asked where it does not know.
    assert_eq!(boxed.classify(&wrapped(reset(42))).kind(), Cause::Reset);
    assert_eq!(boxed.classify(&wrapped(code(42))).verdict(), Verdict::Permanent);
    // Two types, the later said first.
    let two = Standard.on_source(judge).on_source(|_: &io::Error| Verdict::Unprocessed);
    assert_eq!(failure(&two, &reset(40)).verdict(), Verdict::Unprocessed);
    assert_eq!(failure(&two, &code(40)).verdict(), Verdict::Transient);
    // Also on top of a closure.
    let own = (|_: &Refusal| Verdict::Rejected).on_source(|_: &io::Error| Verdict::Transient);
    assert_eq!(failure(&own, &reset(40)).verdict(), Verdict::Transient);
    assert_eq!(failure(&own, &code(40)).verdict(), Verdict::Rejected);
}

#[test]
fn what_one_does_not_know_the_next_is_asked() {
    let chain = Standard.or(|error: &Refusal| (error.code == 1).then_some(Verdict::Unprocessed));
    assert_eq!(failure(&chain, &over(ErrorKind::TimedOut)).kind(), Cause::Timeout);
    assert_eq!(failure(&chain, &over(ErrorKind::NotFound)).verdict(), Verdict::Permanent, "it is known");
    assert_eq!(failure(&chain, &code(1)).verdict(), Verdict::Unprocessed);
    assert_eq!(failure(&chain, &code(2)).verdict(), Verdict::Permanent);
    assert_eq!(chain.known(&code(2)), None);
    let last = chain.or(|_: &Refusal| Verdict::Transient);
    assert_eq!(failure(&last, &code(2)).verdict(), Verdict::Transient);
}

#[test]
fn retry_if_decides_alone_and_keeps_what_is_known() {
    let exactly = Standard.retry_if(|error: &Refusal| error.code == 1);
    assert_eq!(failure(&exactly, &code(1)), Verdict::Transient.into());
    assert_eq!(failure(&exactly, &over(ErrorKind::NotFound)).verdict(), Verdict::Transient);
    assert_eq!(failure(&exactly, &over(ErrorKind::ConnectionRefused)).verdict(), Verdict::Unprocessed);
    let timeout = failure(&exactly, &Refusal { code: 2, ..over(ErrorKind::TimedOut) });
    assert_eq!((timeout.verdict(), timeout.kind()), (Verdict::Permanent, Cause::Timeout));
    assert!(timeout.is_ambiguous(), "whether it was executed is another question");
    // What was refused before it was sent stays so.
    let refused = (|_: &Refusal| Verdict::Rejected).retry_if(|_: &Refusal| true);
    assert_eq!(failure(&refused, &code(1)).verdict(), Verdict::Rejected);
}

#[test]
fn some_more_and_some_less() {
    let retry = Standard.also_if(|e: &Refusal| e.code == 2).but_not_if(|e: &Refusal| e.wait.is_some());
    let verdict = |error: &Refusal| failure(&retry, error).verdict();
    assert_eq!(verdict(&over(ErrorKind::ConnectionReset)), Verdict::Transient);
    assert_eq!(verdict(&code(1)), Verdict::Permanent);
    assert_eq!(verdict(&code(2)), Verdict::Transient);
    assert_eq!(verdict(&Refusal { wait: Some(ms(1)), ..code(2) }), Verdict::Permanent);
}

#[test]
fn cause_and_doubt_are_taken_from_the_error() {
    let judge = Standard
        .also_if(|_: &Refusal| true)
        .cause_from(|e: &Refusal| (e.code >= 500).then_some(Cause::Status(e.code)))
        .ambiguous_if(|e: &Refusal| e.code == 504)
        .map_failure(|e: &Refusal, failure| if e.code == 500 { failure.not_replayable() } else { failure });
    assert_eq!(failure(&judge, &code(1)), Verdict::Transient.into());
    let transient = |code| Failure::new(Verdict::Transient).cause(Cause::Status(code));
    assert_eq!(failure(&judge, &code(503)), transient(503));
    assert_eq!(failure(&judge, &code(504)), transient(504).ambiguous());
    assert_eq!(failure(&judge, &code(500)), transient(500).not_replayable());
}

#[test]
fn a38_the_hint_rides_on_the_error_which_keeps_its_sources() {
    let time = Manual::new();
    let retry = Retry::with_timer(unbounded(5).build().unwrap(), time.clone())
        .retry_after_from(|error: &Refusal| error.wait);
    let error =
        || Refusal { code: 9, wait: Some(Duration::from_secs(60)), cause: Some(ErrorKind::TimedOut.into()) };
    let gave_up = retry.run_blocking(|_| Err::<(), _>(error())).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.hint()), (StopReason::HintTooLong, Some(Duration::from_secs(60))));
    let last = gave_up.source().expect("the last error");
    assert!(last.is::<Refusal>() && last.source().is_some_and(|cause| cause.is::<io::Error>()));
    assert_eq!(time.elapsed(), Duration::ZERO);
}

#[test]
fn a38_an_error_that_only_names_a_wait_is_throttled() {
    let judge = Standard.retry_after_from(|error: &Refusal| error.wait);
    let waits = Refusal { wait: Some(ms(30)), ..code(1) };
    let hint = Hint::at_least(ms(30));
    assert_eq!(failure(&judge, &waits), Verdict::Throttled { hint: Some(hint) }.into());
    assert_eq!(failure(&judge, &code(1)).verdict(), Verdict::Permanent);
    // What is known keeps its verdict.
    let missing = Refusal { wait: Some(ms(30)), ..over(ErrorKind::NotFound) };
    assert_eq!(
        (failure(&judge, &missing).verdict(), failure(&judge, &missing).asked()),
        (Verdict::Permanent, Some(hint))
    );
}

#[test]
fn a37_whose_word_a_wait_follows_is_told_also_for_hints_from_errors() {
    let time = Manual::new();
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let listener = told.clone();
    let retry = Retry::with_timer(unbounded(3).build().unwrap(), time)
        .on_event(move |event| {
            if let Event::Waiting { origin, .. } = event {
                listener.lock().unwrap().push(*origin);
            }
        })
        .also_if(|_: &Refusal| true)
        .retry_after_from(|error: &Refusal| error.wait);
    let mut errors = [Some(Duration::from_secs(5)), None].into_iter();
    let _ = retry.run_blocking(|_| Err::<(), _>(Refusal { wait: errors.next().flatten(), ..code(1) }));
    assert_eq!(*told.lock().unwrap(), [WaitOrigin::Server, WaitOrigin::Backoff]);
}

#[test]
fn a_handle_and_its_refinements_share_what_they_share() {
    let retry = Retry::with_timer(unbounded(2).build().unwrap(), Manual::new());
    let picky = retry.clone().retry_if(|error: &Refusal| error.code == 1);
    let attempts = |wrong: u16| picky.run_blocking(|_| Err::<(), _>(code(wrong))).unwrap_err().attempts();
    assert_eq!((attempts(1), attempts(2)), (2, 1));
    assert_eq!(retry.run_blocking(|_| Err::<(), _>(code(1))).unwrap_err().attempts(), 1);
}
