//! The four ways to call: without retries, with the loop that one writes first, with the loop that guides recommend,
//! and with relent.

mod loops;
mod relent;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ::relent::StopReason;
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full};

use super::arrivals::Call;
use super::clock::Clock;
use super::dice::{Dice, Stream};
use super::ledger::Ledger;
use super::scenario::Scenario;
use super::wire::{Wire, request};
use loops::{Tried, naive, textbook, textbook_ceiling};
use relent::Relent;

/// A way to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// One try.
    None,
    /// Three tries, one right after the other.
    Naive,
    /// Three tries, exponential waits, full jitter.
    Textbook,
    /// `relent proxy`, with its defaults.
    Relent,
}

impl Lane {
    /// All of them, in the order in which they are shown.
    pub(crate) const ALL: [Lane; 4] = [Lane::None, Lane::Naive, Lane::Textbook, Lane::Relent];

    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Lane::None => "none",
            Lane::Naive => "naive",
            Lane::Textbook => "textbook",
            Lane::Relent => "relent",
        }
    }

    /// Its name for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Lane::None => "no retries",
            other => other.name(),
        }
    }

    /// What it does.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Lane::None => "one try",
            Lane::Naive => "3 tries, one right after the other",
            Lane::Textbook => "3 tries, exponential waits from 100 ms, full jitter, no budget",
            Lane::Relent => "relent proxy by default: 3 tries, the same waits, and a budget of 10 %",
        }
    }
}

/// How a call ended, for its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// A 2xx came.
    pub(crate) ok: bool,
    /// Why no further attempt was made, where a lane can say.
    pub(crate) stop: Option<StopReason>,
    /// It failed, and the user was told that it may have been executed.
    pub(crate) ambiguous: bool,
}

/// A lane's client: how all calls of one lane are made.
#[derive(Debug)]
pub(crate) struct Caller {
    lane: Lane,
    server: SocketAddr,
    clock: Clock,
    scenario: Arc<Scenario>,
    /// What the lanes without relent send their attempts with.
    wire: Wire<Full<Bytes>>,
    /// The lane of relent alone has it.
    relent: Option<Relent>,
}

impl Caller {
    pub(crate) async fn start(
        lane: Lane,
        server: SocketAddr,
        scenario: Arc<Scenario>,
        clock: Clock,
        ledger: &Arc<Ledger>,
    ) -> io::Result<Caller> {
        let relent = match lane {
            Lane::Relent => Some(Relent::start(server, ledger, scenario.attempt_timeout).await?),
            _ => None,
        };
        Ok(Caller { lane, server, clock, scenario, wire: Wire::new(Arc::clone(ledger)), relent })
    }

    /// Makes one call, as its lane does.
    pub(crate) async fn call(&self, call: &Call) -> Ending {
        if let Some(relent) = &self.relent {
            return relent.call(request(relent.door(), call)).await;
        }
        let once = || self.once(call);
        let tried = match self.lane {
            Lane::None | Lane::Relent => once().await,
            Lane::Naive => naive(once).await,
            Lane::Textbook => {
                textbook(once, |retry| self.textbook_wait(call, retry), |wait| self.clock.sleep(wait)).await
            }
        };
        Ending { ok: tried.is_ok(), stop: None, ambiguous: false }
    }

    /// One attempt under the attempt timeout.
    async fn once(&self, call: &Call) -> Tried {
        let attempt = self.wire.send(request(self.server, call));
        match self.clock.within(self.scenario.attempt_timeout, attempt).await {
            None => Tried::TimedOut,
            Some(Err(_)) => Tried::NoAnswer,
            Some(Ok(response)) => Tried::Status(finish(response).await),
        }
    }

    fn textbook_wait(&self, call: &Call, retry: u32) -> Duration {
        let share = Dice::seeded(self.scenario.seed).roll(Stream::Jitter, call.id, retry);
        textbook_ceiling(retry).mul_f64(share)
    }
}

/// Reads the answer's (small) body, so that its connection can be used again.
async fn finish<B: Body>(response: Response<B>) -> StatusCode {
    let status = response.status();
    // A body that breaks off ends the connection, not what its status said.
    let _ = response.into_body().collect().await;
    status
}
