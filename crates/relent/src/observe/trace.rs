//! Events as `tracing` has them.

use tracing::{debug, info, warn};

use crate::event::Event;

/// Writes `event` of the handle `name`, under the target `relent`.
pub(crate) fn trace(name: &str, event: &Event) {
    let text = event;
    match event {
        Event::Failed { attempt, failure } => {
            debug!(target: "relent", handle = name, attempt, cause = %failure.kind(), "{text}");
        }
        Event::Waiting { attempts, wait, .. } => {
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            debug!(target: "relent", handle = name, attempts, wait_ms, "{text}");
        }
        Event::Recovered { attempts, winner } => {
            info!(target: "relent", handle = name, attempts, winner, "{text}");
        }
        Event::Hedged { attempt } => debug!(target: "relent", handle = name, attempt, "{text}"),
        Event::HedgeRefused { reason } => {
            debug!(target: "relent", handle = name, reason = reason.name(), "{text}");
        }
        Event::Breaker(change) => {
            let (from, to, why) = (change.from.name(), change.to.name(), change.why.name());
            warn!(target: "relent", handle = name, from, to, why, "{text}");
        }
        Event::Stopped(stop) => {
            let (reason, attempts, ambiguous) = (stop.reason.name(), stop.attempts, stop.ambiguous);
            warn!(target: "relent", handle = name, reason, attempts, ambiguous, "{text}");
        }
    }
}
