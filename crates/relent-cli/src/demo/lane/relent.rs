//! The lane of relent's defaults: a client under [`HttpRetryLayer`], as a user of the library would write it.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use relent::http::{HttpRetry, HttpRetryLayer, ReplayBody, Stopped};
use relent::{Policy, PolicyError, Retry, StopReason};
use tower_layer::Layer;
use tower_service::Service;

use super::{Ending, finish};
use crate::demo::wire::Wire;

/// A client that retries by relent's defaults.
#[derive(Clone, Debug)]
pub(super) struct Relent {
    client: HttpRetry<Wire<ReplayBody<Full<Bytes>>>>,
}

impl Relent {
    /// All defaults; only the attempt timeout is the one that all lanes have.
    pub(super) fn new(
        wire: Wire<ReplayBody<Full<Bytes>>>,
        attempt_timeout: Duration,
    ) -> Result<Relent, PolicyError> {
        let policy = Policy::builder().attempt_timeout(attempt_timeout).build()?;
        Ok(Relent { client: HttpRetryLayer::new(Retry::new(policy)).layer(wire) })
    }

    /// One call.
    pub(super) async fn call(&self, request: Request<Full<Bytes>>) -> Ending {
        let mut client = self.client.clone();
        let answer = match poll_fn(|cx| client.poll_ready(cx)).await {
            Ok(()) => client.call(request).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(response) => {
                let stopped = response.extensions().get::<Stopped>().copied();
                ended(finish(response).await, stopped)
            }
            Err(error) => Ending { ok: false, stop: Some(error.reason()), ambiguous: error.ambiguous() },
        }
    }
}

/// A response came in the end: the call's, or the last failed one with the reason beside it.
fn ended(status: StatusCode, stopped: Option<Stopped>) -> Ending {
    let stop = stopped.map_or(StopReason::Succeeded, |stopped| stopped.reason);
    Ending {
        ok: status.is_success(),
        stop: Some(stop),
        ambiguous: stopped.is_some_and(|stopped| stopped.ambiguous),
    }
}

#[cfg(test)]
mod tests {
    use relent::{Jitter, defaults};

    use super::*;

    #[test]
    fn the_defaults_are_what_the_demo_says_of_them() {
        let policy = Policy::builder().build().unwrap();
        let about = crate::demo::lane::Lane::Relent.about();
        assert_eq!(about, "relent's defaults: 3 tries, the same waits, and a budget of 10 %");
        assert_eq!((policy.attempts(), policy.backoff().jitter()), (3, Jitter::Full));
        assert_eq!(defaults::BUDGET_RATIO, relent::Ratio::percent(10));
        let ceilings = [1, 2].map(crate::demo::lane::loops::textbook_ceiling);
        assert_eq!(ceilings, [defaults::BASE, defaults::BASE * 2]);
    }

    #[test]
    fn an_ending_is_what_the_response_and_its_reason_say() {
        let fine = ended(StatusCode::OK, None);
        assert_eq!(fine, Ending { ok: true, stop: Some(StopReason::Succeeded), ambiguous: false });
    }
}
