//! The wait before a retry: it ends early when the program is told to.

use std::future::poll_fn;
use std::task::Poll;

use relent::timer::{Clock, SystemTimer, Timer};
use relent_core::{Instant, Step};

use super::call::Call;
use super::last::Last;
use crate::upstream::Connector;

impl<C: Connector> Call<'_, C> {
    /// Waits until then, and asks again; with what step that ends, and when.
    pub(super) async fn wait(&mut self, until: Instant) -> (Step, Instant) {
        self.replay.another_follows();
        self.paid = true;
        let mut drain = self.worker.drain.clone();
        let mut sleep = std::pin::pin!(SystemTimer.sleep_until(until));
        loop {
            let end = *drain.borrow_and_update();
            if let Some(end) = end {
                let step = self.shorten(end);
                if !matches!(step, Step::Wait { .. }) {
                    return (step, SystemTimer.now());
                }
            }
            let ended = tokio::select! {
                biased;
                () = read_on(&mut self.last) => false,
                () = sleep.as_mut() => true,
                // Nobody is left to tell: the sleep goes on alone.
                Ok(()) = drain.changed() => false,
            };
            let now = SystemTimer.now();
            if ended && now >= until {
                return (self.due(now), now);
            }
            if ended {
                // A timer may round down.
                sleep.set(SystemTimer.sleep_until(until));
            }
        }
    }
}

/// Reads the failed response to memory; never ends.
async fn read_on(last: &mut Option<Last>) {
    poll_fn(|cx| {
        if let Some(Last::Response(_, keeping)) = last {
            keeping.as_mut().poll_read(cx);
        }
        Poll::<()>::Pending
    })
    .await
}
