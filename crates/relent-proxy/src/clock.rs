//! A future with an end.

use std::future::Future;
use std::pin::Pin;

use relent::timer::{Clock, SystemTimer, Timer};
use relent_core::Instant;

/// The output of `future`, unless `ends` comes first. At equal times the output wins.
pub(crate) async fn in_time<F: Future>(ends: Instant, mut future: Pin<&mut F>) -> Option<F::Output> {
    if ends.is_never() {
        return Some(future.await);
    }
    loop {
        tokio::select! {
            biased;
            output = future.as_mut() => return Some(output),
            () = SystemTimer.sleep_until(ends) => {
                // A timer may round down.
                if SystemTimer.now() >= ends {
                    return None;
                }
            }
        }
    }
}
