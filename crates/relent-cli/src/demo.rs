//! `relent demo`: four ways to retry meet the same outage, live and measured.
//!
//! Each lane has its own server with a queue and a capacity ([`backend`]), and all get the same calls ([`arrivals`]). A
//! lane differs from another only in how it calls ([`lane`]). What happens is written down ([`ledger`]) and turned into
//! figures afterwards ([`measure`]); nothing that is printed is known before.

mod arrivals;
mod backend;
mod clock;
mod dice;
mod json;
mod lane;
mod ledger;
mod measure;
mod scenario;
mod story;
mod table;
mod timeline;
mod view;
mod wire;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use arrivals::Call;
use backend::Backend;
use clock::Clock;
use lane::{Caller, Lane};
use ledger::{Ledger, Pages};
use measure::{LaneReport, measure};
use view::Progress;

pub(crate) use scenario::Scenario;
pub(crate) use story::opening;
pub(crate) use view::{Colour, View};

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Report {
    scenario: Arc<Scenario>,
    lanes: Vec<LaneReport>,
    timeline: Option<String>,
}

impl Report {
    /// For people: the table, one call's timeline, and the moral.
    pub(crate) fn text(&self) -> String {
        let timeline = self
            .timeline
            .as_ref()
            .map_or_else(String::new, |text| format!("One call of the relent lane: {text}\n"));
        format!(
            "\n{}\n{}\n{timeline}{}",
            table::table(&self.lanes),
            table::legend(),
            story::closing(&self.scenario, &self.lanes)
        )
    }

    /// For programs.
    pub(crate) fn json(&self) -> String {
        json::json(&self.scenario, &self.lanes)
    }
}

/// Runs the scenario in real time and shows it.
///
/// # Errors
/// No server could listen, or nobody reads the output any more.
pub(crate) async fn run<W: Write>(scenario: Scenario, view: &mut View<W>) -> io::Result<Report> {
    let scenario = Arc::new(scenario);
    let calls: Arc<[Call]> = arrivals::schedule(&scenario).into();
    let clock = Clock::start();
    let mut tracks = Vec::new();
    for lane in Lane::ALL {
        tracks.push(Track::lay(lane, &scenario, calls.len(), clock).await?);
    }
    let mut traffic = JoinSet::new();
    for track in &tracks {
        traffic.spawn(drive(Arc::clone(&calls), track.clone(), clock));
    }
    watch(&scenario, &tracks, clock, view).await?;
    traffic.join_all().await;
    Ok(report(scenario, &calls, &tracks))
}

/// One lane, ready to go.
#[derive(Clone, Debug)]
struct Track {
    lane: Lane,
    backend: Arc<Backend>,
    ledger: Arc<Ledger>,
    caller: Arc<Caller>,
}

impl Track {
    async fn lay(lane: Lane, scenario: &Arc<Scenario>, calls: usize, clock: Clock) -> io::Result<Track> {
        let backend = Arc::new(Backend::start(Arc::clone(scenario), calls, clock).await?);
        let ledger = Arc::new(Ledger::new(calls, scenario.seconds(), clock));
        let caller = Caller::start(lane, backend.address(), Arc::clone(scenario), clock, &ledger).await?;
        Ok(Track { lane, backend, ledger, caller: Arc::new(caller) })
    }

    async fn make(&self, call: Call, clock: Clock) {
        let began = clock.now();
        let ending = self.caller.call(&call).await;
        self.ledger.call_ended(call.id, call.payment, began, ending);
    }
}

/// Makes every call at its time, whatever became of the earlier ones; ends with the last call.
async fn drive(calls: Arc<[Call]>, track: Track, clock: Clock) {
    let mut open = JoinSet::new();
    for call in calls.iter().copied() {
        clock.sleep_until(call.at).await;
        let track = track.clone();
        open.spawn(async move { track.make(call, clock).await });
        while open.try_join_next().is_some() {}
    }
    open.join_all().await;
}

/// Shows each second when it is over.
async fn watch<W: Write>(
    scenario: &Scenario,
    tracks: &[Track],
    clock: Clock,
    view: &mut View<W>,
) -> io::Result<()> {
    for elapsed in 1..=scenario.seconds() {
        clock.sleep_until(Duration::from_secs(elapsed as u64)).await;
        let lanes = tracks.iter().map(|track| (track.lane, track.ledger.seconds())).collect();
        view.second(&Progress { scenario, elapsed, lanes })?;
    }
    Ok(())
}

fn report(scenario: Arc<Scenario>, calls: &[Call], tracks: &[Track]) -> Report {
    let is_payment = |call: usize| calls.get(call).is_some_and(|call| call.payment);
    let pages: Vec<Pages> = tracks.iter().map(|track| track.ledger.read()).collect();
    let figures = |(track, pages): (&Track, &Pages)| {
        measure(&scenario, track.lane, pages, track.backend.account(is_payment))
    };
    let lanes = tracks.iter().zip(&pages).map(figures).collect();
    let relent = tracks.iter().position(|track| track.lane == Lane::Relent);
    let timeline = relent.and_then(|at| timeline::timeline(&pages[at]));
    Report { scenario, lanes, timeline }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fifth of a second, for whether the parts fit; what it measures is not looked at.
    fn tiny() -> Scenario {
        let ms = Duration::from_millis;
        Scenario {
            rate: 400.0,
            payments: 0.5,
            length: ms(200),
            outage_from: ms(50),
            outage_to: ms(100),
            service: ms(1),
            attempt_timeout: ms(20),
            refused: 0.1,
            lost: 0.1,
            ..Scenario::shown(5)
        }
    }

    #[test]
    fn every_lane_ends_every_call_and_relent_repeats_no_payment() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let report = runtime.block_on(run(tiny(), &mut View::<Vec<u8>>::Quiet)).unwrap();
        let calls = arrivals::schedule(&tiny()).len();
        assert!(calls > 20, "{calls}");
        for lane in &report.lanes {
            assert_eq!(lane.calls, calls, "{lane:?}");
            // Below one where a busy machine lets attempts run out of time before they have left the proxy.
            assert!(lane.load_factor <= 3.0, "{lane:?}");
        }
        let [none, _, _, relent] = &report.lanes[..] else { panic!("four lanes") };
        assert_eq!((none.load_factor, none.executed_twice), (1.0, 0));
        assert_eq!(relent.executed_twice, 0);
    }
}
