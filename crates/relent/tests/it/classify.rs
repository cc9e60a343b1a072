//! From errors to verdicts: however wrapped, whatever their type, and what is unknown is not retried.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::future::pending;
use std::io::{self, ErrorKind};

use relent::timer::Manual;
use relent::{Boxed, Cause, Classify, Failure, Retry, Standard, StopReason, Transient, Verdict};

use crate::rig::{ms, unbounded};

/// An error around another one.
#[derive(Debug)]
struct Wrapped(Box<dyn Error + Send + Sync>);

impl fmt::Display for Wrapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("something went wrong inside")
    }
}

impl Error for Wrapped {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

fn wrapped(inner: impl Error + Send + Sync + 'static, times: usize) -> Wrapped {
    let innermost: Box<dyn Error + Send + Sync> = Box::new(inner);
    Wrapped((1..times).fold(innermost, |inner, _| Box::new(Wrapped(inner))))
}

fn timeout() -> io::Error {
    io::Error::from(ErrorKind::TimedOut)
}

#[test]
fn a29_a_timeout_is_found_however_it_is_wrapped() {
    fn check(error: impl Error + 'static) {
        let failure = Standard.classify(&error);
        assert_eq!((failure.verdict(), failure.kind()), (Verdict::Transient, Cause::Timeout), "{error:?}");
        assert!(failure.is_ambiguous());
    }
    check(timeout());
    check(wrapped(timeout(), 1));
    check(wrapped(timeout(), 4));
    check(io::Error::other(timeout()));
    check(io::Error::other(wrapped(timeout(), 4)));
    check(wrapped(io::Error::other(wrapped(io::Error::other(timeout()), 2)), 2));
    check(io::Error::new(ErrorKind::InvalidData, timeout()));
    check(io::Error::new(ErrorKind::TimedOut, "with a text of its own"));
}

#[test]
fn the_kinds_of_io_errors() {
    let check = |kind: ErrorKind, verdict: Verdict, cause: Cause, ambiguous: bool| {
        let failure = Standard.classify(&io::Error::from(kind));
        assert_eq!(
            (failure.verdict(), failure.kind(), failure.is_ambiguous()),
            (verdict, cause, ambiguous),
            "{kind}"
        );
    };
    let connect = |kind| check(kind, Verdict::Unprocessed, Cause::Connect, false);
    connect(ErrorKind::ConnectionRefused);
    connect(ErrorKind::HostUnreachable);
    connect(ErrorKind::NetworkUnreachable);
    let reset = |kind| check(kind, Verdict::Transient, Cause::Reset, true);
    reset(ErrorKind::ConnectionReset);
    reset(ErrorKind::ConnectionAborted);
    reset(ErrorKind::BrokenPipe);
    reset(ErrorKind::UnexpectedEof);
    check(ErrorKind::Interrupted, Verdict::Transient, Cause::Other, true);
    // A socket's own timeout on Unix.
    check(ErrorKind::WouldBlock, Verdict::Transient, Cause::Timeout, true);
    let permanent = |kind| check(kind, Verdict::Permanent, Cause::Other, false);
    permanent(ErrorKind::NotFound);
    permanent(ErrorKind::PermissionDenied);
    permanent(ErrorKind::InvalidInput);
    permanent(ErrorKind::Other);
}

#[test]
fn the_outermost_known_error_decides() {
    let refused = io::Error::from(ErrorKind::ConnectionRefused);
    assert_eq!(Standard.classify(&wrapped(refused, 2)).verdict(), Verdict::Unprocessed);
    let missing = io::Error::new(ErrorKind::TimedOut, io::Error::from(ErrorKind::NotFound));
    assert_eq!(Standard.classify(&missing).verdict(), Verdict::Transient);
}

#[test]
fn what_is_unknown_is_not_retried() {
    let check = |failure: Failure| assert_eq!(failure.verdict(), Verdict::Permanent);
    check(Standard.classify(&fmt::Error));
    check(Standard.classify(&wrapped(fmt::Error, 4)));
    check(Standard.classify(&io::Error::other("nobody knows")));
    check(Boxed.classify(&anyhow::anyhow!("nobody knows")));

    let calls = Cell::new(0);
    let retry = Retry::with_timer(unbounded(5).build().unwrap(), Manual::new());
    let gave_up = retry.run_blocking(|_| {
        calls.set(calls.get() + 1);
        Err::<(), _>(fmt::Error)
    });
    assert_eq!((gave_up.unwrap_err().reason(), calls.get()), (StopReason::NotRetryable, 1));
}

#[test]
fn boxed_errors_are_looked_into() {
    fn check<E: AsRef<dyn Error + Send + Sync + 'static>>(error: E) {
        assert_eq!(Boxed.classify(&error).kind(), Cause::Timeout);
    }
    check(Box::<dyn Error + Send + Sync>::from(timeout()));
    check(Box::<dyn Error + Send + Sync>::from(wrapped(timeout(), 3)));
    check(anyhow::Error::from(timeout()));
    check(anyhow::Error::from(timeout()).context("while doing one thing").context("while doing another"));
    check(anyhow::Error::from(wrapped(timeout(), 3)));
}

#[test]
fn boxed_errors_are_retried() {
    let retry = Retry::with_timer(unbounded(3).build().unwrap(), Manual::new()).classify(Boxed);
    let answer = retry.run_blocking(|attempt| {
        if attempt.number() < 3 {
            return Err(anyhow::Error::from(timeout()).context("reading"));
        }
        Ok(7)
    });
    assert_eq!(answer.ok(), Some(7));
}

#[test]
fn an_error_can_be_marked_transient() {
    assert_eq!(Standard.classify(&Transient::new(fmt::Error)).verdict(), Verdict::Transient);
    assert_eq!(Standard.classify(&wrapped(Transient::new(fmt::Error), 3)).verdict(), Verdict::Transient);
    assert_eq!(Standard.classify(&io::Error::other(Transient::new("why not"))).verdict(), Verdict::Transient);
    // The mark counts, whatever is below.
    assert_eq!(
        Standard.classify(&Transient::new(io::Error::from(ErrorKind::NotFound))).verdict(),
        Verdict::Transient
    );
    assert!(Transient::new(fmt::Error).into_inner().is::<fmt::Error>());
}

#[test]
fn closures_answer_with_a_verdict_or_with_all_they_know() {
    let time = Manual::new();
    let policy = unbounded(2).build().unwrap();
    let by_verdict = Retry::with_timer(policy.clone(), time.clone()).classify(|n: &u32| match n {
        1 => Verdict::Transient,
        _ => Verdict::Permanent,
    });
    let gave_up = by_verdict.run_blocking(|attempt| Err::<(), _>(attempt.number())).unwrap_err();
    assert_eq!((gave_up.reason(), gave_up.into_last()), (StopReason::NotRetryable, Some(2)));

    let by_failure = Retry::with_timer(policy, time)
        .classify(|_: &u32| Failure::new(Verdict::Transient).cause(Cause::Reset).ambiguous());
    let gave_up = by_failure.run_blocking(|attempt| Err::<(), _>(attempt.number())).unwrap_err();
    assert!(gave_up.ambiguous());
}

#[test]
fn a_classifier_may_be_a_type_of_ones_own() {
    struct ByCode;
    impl Classify<u16> for ByCode {
        fn classify(&self, code: &u16) -> Failure {
            Failure::new(if *code >= 500 { Verdict::Transient } else { Verdict::Permanent })
        }
    }
    let retry = Retry::with_timer(unbounded(2).build().unwrap(), Manual::new()).classify(ByCode);
    let attempts = |code: u16| retry.run_blocking(|_| Err::<(), _>(code)).unwrap_err().attempts();
    assert_eq!((attempts(500), attempts(404)), (2, 1));
}

#[test]
fn a_chain_without_an_end_is_given_up() {
    /// Its own source.
    #[derive(Debug)]
    struct Ouroboros;
    impl fmt::Display for Ouroboros {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("round and round")
        }
    }
    impl Error for Ouroboros {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self)
        }
    }
    assert_eq!(Standard.classify(&Ouroboros).verdict(), Verdict::Permanent);
    assert_eq!(Standard.classify(&wrapped(timeout(), 10_000)).verdict(), Verdict::Permanent);
}

#[test]
fn a_call_that_gave_up_is_classified_by_its_last_error() {
    let time = Manual::new();
    let inner = Retry::with_timer(unbounded(2).build().unwrap(), time);
    let check = |kind: ErrorKind, expected: Verdict| {
        let gave_up = inner.run_blocking(|_| Err::<(), _>(io::Error::from(kind))).unwrap_err();
        assert_eq!(Standard.classify(&gave_up).verdict(), expected, "{kind}");
    };
    check(ErrorKind::ConnectionReset, Verdict::Transient);
    check(ErrorKind::ConnectionRefused, Verdict::Unprocessed);
    check(ErrorKind::NotFound, Verdict::Permanent);
}

#[test]
fn a_call_whose_attempts_all_timed_out_is_a_timeout_to_the_layer_above() {
    let time = Manual::new();
    let inner = Retry::with_timer(unbounded(2).attempt_timeout(ms(20)).build().unwrap(), time.clone());
    let gave_up = time.run(inner.run(async |_| pending::<io::Result<()>>().await)).unwrap_err();
    let failure = Standard.classify(&gave_up);
    assert_eq!((failure.verdict(), failure.kind()), (Verdict::Transient, Cause::Timeout));
    assert!(failure.is_ambiguous());
}
