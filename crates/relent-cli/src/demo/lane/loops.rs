//! The two loops that are found in the wild.
//!
//! They repeat what failed (5xx, 429, a time-out, a broken connection), whatever the method: neither asks whether a
//! request may be repeated, so both repeat payments whose answer was lost.

use std::future::Future;
use std::time::Duration;

use http::StatusCode;

/// Tries in all of every lane that retries.
const TRIES: u32 = 3;
/// The textbook lane's first wait and its ceiling, those that guides name.
const TEXTBOOK_BASE: Duration = Duration::from_millis(100);
const TEXTBOOK_CAP: Duration = Duration::from_secs(10);

/// What one attempt of the loops came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    Status(StatusCode),
    NoAnswer,
    TimedOut,
}

impl Tried {
    pub(super) fn is_ok(self) -> bool {
        matches!(self, Tried::Status(status) if status.is_success())
    }

    /// What such loops take for worth another try.
    fn looks_transient(self) -> bool {
        match self {
            Tried::Status(status) => status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS,
            Tried::NoAnswer | Tried::TimedOut => true,
        }
    }
}

/// What one writes first.
pub(super) async fn naive<F, A>(mut once: F) -> Tried
where
    F: FnMut() -> A,
    A: Future<Output = Tried>,
{
    let mut tried = once().await;
    for _ in 1..TRIES {
        if !tried.looks_transient() {
            break;
        }
        tried = once().await;
    }
    tried
}

/// What guides recommend.
pub(super) async fn textbook<F, A, W, S, Z>(mut once: F, mut wait: W, sleep: S) -> Tried
where
    F: FnMut() -> A,
    A: Future<Output = Tried>,
    W: FnMut(u32) -> Duration,
    S: Fn(Duration) -> Z,
    Z: Future<Output = ()>,
{
    let mut tried = once().await;
    for retry in 1..TRIES {
        if !tried.looks_transient() {
            break;
        }
        sleep(wait(retry)).await;
        tried = once().await;
    }
    tried
}

/// The longest wait before retry number `retry`.
pub(super) fn textbook_ceiling(retry: u32) -> Duration {
    TEXTBOOK_BASE.saturating_mul(2u32.saturating_pow(retry - 1)).min(TEXTBOOK_CAP)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::ready;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const OK: Tried = Tried::Status(StatusCode::OK);
    const BUSY: Tried = Tried::Status(StatusCode::SERVICE_UNAVAILABLE);
    const MISSING: Tried = Tried::Status(StatusCode::NOT_FOUND);

    /// The output of a future that never has to wait.
    fn at_once<T>(work: impl Future<Output = T>) -> T {
        match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(output) => output,
            Poll::Pending => panic!("it waits"),
        }
    }

    /// What a loop makes of these attempts, and how many it used.
    fn with_naive(script: &[Tried]) -> (Tried, usize) {
        let mut used = 0;
        let once = || {
            used += 1;
            ready(script[used - 1])
        };
        (at_once(naive(once)), used)
    }

    /// The same, and the waits it made.
    fn with_textbook(script: &[Tried]) -> (Tried, usize, Vec<u128>) {
        let mut used = 0;
        let waits = RefCell::new(Vec::new());
        let once = || {
            used += 1;
            ready(script[used - 1])
        };
        let sleep = |wait: Duration| {
            waits.borrow_mut().push(wait.as_millis());
            ready(())
        };
        let tried = at_once(textbook(once, textbook_ceiling, sleep));
        (tried, used, waits.into_inner())
    }

    #[test]
    fn the_naive_loop_tries_three_times_whatever_it_was() {
        assert_eq!(with_naive(&[OK]), (OK, 1));
        assert_eq!(with_naive(&[Tried::NoAnswer, OK]), (OK, 2));
        assert_eq!(with_naive(&[Tried::TimedOut, BUSY, Tried::NoAnswer]), (Tried::NoAnswer, 3));
        assert_eq!(with_naive(&[BUSY, MISSING]), (MISSING, 2));
    }

    #[test]
    fn the_textbook_loop_waits_before_each_retry_only() {
        assert_eq!(with_textbook(&[OK]), (OK, 1, vec![]));
        assert_eq!(with_textbook(&[BUSY, OK]), (OK, 2, vec![100]));
        assert_eq!(with_textbook(&[BUSY, Tried::TimedOut, BUSY]), (BUSY, 3, vec![100, 200]));
        assert_eq!(with_textbook(&[MISSING]), (MISSING, 1, vec![]));
    }

    #[test]
    fn ceilings_double_to_the_cap() {
        let ceilings = [1, 2, 3, 8, 40].map(|retry| textbook_ceiling(retry).as_millis());
        assert_eq!(ceilings, [100, 200, 400, 10_000, 10_000]);
    }
}
