//! Events as `metrics` counts them, by the names that `relent proxy` has for the same things.

use metrics::{counter, histogram};
use relent_core::{Cause, Failure, Verdict};

use crate::event::Event;

/// Counts `event` of the handle `name`.
pub(crate) fn meter(name: &'static str, event: &Event) {
    match event {
        Event::Failed { failure, .. } => {
            let (verdict, cause) = (verdict(failure), class(failure.kind()));
            counter!("relent_attempts_failed_total", "handle" => name, "verdict" => verdict, "cause" => cause)
                .increment(1);
        }
        Event::Waiting { wait, .. } => {
            counter!("relent_retries_total", "handle" => name).increment(1);
            histogram!("relent_wait_seconds", "handle" => name).record(wait.as_secs_f64());
        }
        Event::Recovered { .. } => counter!("relent_recovered_calls_total", "handle" => name).increment(1),
        Event::Hedged { .. } => counter!("relent_hedges_total", "handle" => name).increment(1),
        Event::HedgeRefused { reason } => {
            counter!("relent_hedges_refused_total", "handle" => name, "reason" => reason.name()).increment(1);
        }
        Event::Breaker(change) => {
            counter!("relent_breaker_changes_total", "handle" => name, "to" => change.to.name()).increment(1);
        }
        Event::Stopped(stop) => {
            counter!("relent_stops_total", "handle" => name, "reason" => stop.reason.name()).increment(1);
            if stop.ambiguous {
                counter!("relent_ambiguous_calls_total", "handle" => name).increment(1);
            }
        }
    }
}

fn verdict(failure: &Failure) -> &'static str {
    match failure.verdict() {
        Verdict::Transient => "transient",
        Verdict::Throttled { .. } => "throttled",
        Verdict::Unprocessed => "unprocessed",
        Verdict::Rejected => "rejected",
        _ => "permanent",
    }
}

/// A few values, whatever servers answer.
fn class(cause: Cause) -> &'static str {
    match cause {
        Cause::Connect => "connect",
        Cause::Reset => "reset",
        Cause::Timeout => "timeout",
        Cause::Status(code) if code < 500 => "4xx",
        Cause::Status(_) => "5xx",
        Cause::Grpc(code) => code.name(),
        _ => "other",
    }
}
