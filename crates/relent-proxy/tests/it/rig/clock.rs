//! The one clock of the tests, read through relent's own timer: paused with tokio's, real over sockets.

use std::time::Duration;

use relent::Instant;
use relent::timer::{Clock as _, SystemTimer, Timer as _};

pub(crate) fn now() -> Instant {
    SystemTimer.now()
}

pub(crate) async fn sleep(takes: Duration) {
    SystemTimer.sleep_until(now() + takes).await;
}

/// How long something takes.
pub(crate) struct Watch(Instant);

impl Watch {
    pub(crate) fn start() -> Watch {
        Watch(now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        now().since(self.0)
    }
}
