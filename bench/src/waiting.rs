//! What a call in backoff holds: a million of them at once, on tokio's timer.

use std::future::Ready;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;

use relent::{Attempt, Policy, Retry, Verdict};

use crate::counting::counted;

/// Fails at once, so that every call goes straight into its wait.
fn operation(_: Attempt) -> Ready<Result<(), &'static str>> {
    std::future::ready(Err("busy"))
}

/// Bytes per waiting call, on its stack and on the heap, beside the operation's own future and its error.
pub(crate) fn bytes_per_call(calls: u32) -> f64 {
    let policy = Policy::exponential(Duration::from_secs(60), Duration::from_secs(60))
        .floor(Duration::from_secs(60))
        .no_deadline()
        .no_budget()
        .max_waiting(calls)
        .build()
        .expect("the lengths are in order");
    let retry = Retry::new(policy).classify(|_: &&str| Verdict::Transient);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _context = runtime.enter();
    let mut waiting = Vec::with_capacity(calls as usize);
    let ((), counts) = counted(|| {
        for _ in 0..calls {
            let mut call = Box::pin(retry.run(operation as fn(Attempt) -> Ready<Result<(), &'static str>>));
            assert!(poll(call.as_mut()), "the first attempt fails, and the call waits");
            waiting.push(call);
        }
    });
    assert_eq!(retry.waiting(), calls);
    let own = size_of::<Ready<Result<(), &str>>>() + size_of::<fn(Attempt)>() + size_of::<&str>();
    counts.held as f64 / f64::from(calls) - own as f64
}

/// Polls once; says whether the future is pending.
fn poll<F: Future>(future: Pin<&mut F>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

pub(crate) fn report(calls: u32) {
    println!("{calls} calls in backoff: {:.1} bytes each beside the operation's own", bytes_per_call(calls));
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_waiting_call_is_small() {
        let bytes = super::bytes_per_call(1000);
        assert!(bytes <= 312.0, "{bytes} bytes");
    }
}
