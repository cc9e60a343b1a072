//! Anything in any order, against a model that keeps every attempt.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use relent_core::{
    Admission, Breaker, BreakerState, BreakerWindow, ClassicConfig, Health, Instant, Ratio, defaults,
};

use super::{StdClassic, breaker, plain};
use crate::rig::{at, millis, secs};

/// An attempt takes this long, or is slow.
const SLOW: Duration = secs(2);

/// The breaker as one would tell it to a child: a list of the last calls, and a few numbers.
struct Model {
    config: ClassicConfig,
    state: BreakerState,
    /// How many states there were before this one.
    age: u32,
    /// Failed, slow.
    calls: VecDeque<(bool, bool)>,
    in_a_row: u32,
    until: Instant,
    openings: u32,
    probes_out: u32,
    probes_good: u32,
    last_probe: Instant,
}

/// A leave in the model: of which state, and whether it is a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leave {
    age: u32,
    probe: bool,
}

impl Model {
    fn new(config: ClassicConfig) -> Model {
        Model {
            config,
            state: BreakerState::Closed,
            age: 0,
            calls: VecDeque::new(),
            in_a_row: 0,
            until: at(0),
            openings: 0,
            probes_out: 0,
            probes_good: 0,
            last_probe: at(0),
        }
    }

    fn go(&mut self, state: BreakerState) {
        self.state = state;
        self.age += 1;
        (self.in_a_row, self.probes_out, self.probes_good) = (0, 0, 0);
    }

    fn close(&mut self) {
        self.calls.clear();
        self.openings = 0;
        self.go(BreakerState::Closed);
    }

    fn trip(&mut self, now: Instant) {
        let growth = self.config.open_multiplier.parts_per_million() / 1_000_000;
        let grown = self.config.open_for * growth.pow(self.openings.min(10));
        self.until = now + grown.min(self.config.open_cap);
        self.openings += 1;
        self.go(BreakerState::Open);
    }

    fn would_admit(&self, now: Instant) -> bool {
        let taken = self.probes_out + self.probes_good;
        match self.state {
            BreakerState::Closed => true,
            BreakerState::Open => now >= self.until,
            BreakerState::HalfOpen => taken < self.config.probes || self.lost(now),
            _ => false,
        }
    }

    fn lost(&self, now: Instant) -> bool {
        now >= self.last_probe + defaults::PROBE_LEASE
    }

    fn admit(&mut self, now: Instant) -> Option<Leave> {
        if !self.would_admit(now) {
            return None;
        }
        if self.state == BreakerState::Closed {
            return Some(Leave { age: self.age, probe: false });
        }
        if self.state == BreakerState::Open || self.probes_out + self.probes_good >= self.config.probes {
            self.go(BreakerState::HalfOpen);
        }
        self.probes_out += 1;
        self.last_probe = now;
        Some(Leave { age: self.age, probe: true })
    }

    fn record(&mut self, leave: Leave, health: Health, slow: bool, now: Instant) {
        if leave.age != self.age {
            return;
        }
        if leave.probe {
            self.probes_out -= 1;
            match health {
                Health::Unknown => {}
                Health::Good if !slow => self.probes_good += 1,
                _ => return self.trip(now),
            }
            if self.probes_good == self.config.probes {
                self.close();
            }
        } else if health != Health::Unknown {
            self.count(health == Health::Bad, slow, now);
        }
    }

    fn count(&mut self, bad: bool, slow: bool, now: Instant) {
        self.in_a_row = if bad { self.in_a_row + 1 } else { 0 };
        self.calls.push_back((bad, slow));
        if let BreakerWindow::Calls(most) = self.config.window
            && self.calls.len() > most as usize
        {
            self.calls.pop_front();
        }
        let (all, failed, slowly) = self.counts();
        let reaches = |part: u64, rate: Ratio| {
            all >= u64::from(self.config.minimum_calls)
                && part * 1_000_000 >= all * u64::from(rate.parts_per_million())
        };
        // Good calls are counted, and judged with the next that is not.
        let trips = (bad && self.config.consecutive_failures.is_some_and(|most| self.in_a_row >= most))
            || self.config.failure_rate.is_some_and(|rate| reaches(failed, rate))
            || (self.config.slow_call.is_some() && reaches(slowly, self.config.slow_call_rate));
        if trips && (bad || slow) {
            self.trip(now);
        }
    }

    fn counts(&self) -> (u64, u64, u64) {
        let count = |of: fn(&(bool, bool)) -> bool| self.calls.iter().filter(|call| of(call)).count() as u64;
        (count(|_| true), count(|(bad, _)| *bad), count(|(_, slow)| *slow))
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// An attempt asks, as a first one or as a retry, and is held.
    Ask {
        retry: bool,
    },
    /// One of those that are held ends.
    End {
        which: usize,
        health: Health,
        slow: bool,
    },
    /// An attempt asks, and ends at once.
    Call {
        health: Health,
        slow: bool,
    },
    Pass(Duration),
    OpenByHand,
    CloseByHand,
}

fn event() -> impl Strategy<Value = Event> {
    let health = prop_oneof![3 => Just(Health::Good), 3 => Just(Health::Bad), 1 => Just(Health::Unknown)];
    let slow = prop::bool::weighted(0.25);
    let end = (any::<prop::sample::Index>(), health.clone(), slow);
    let lengths = [millis(1), millis(999), secs(1), secs(4), defaults::PROBE_LEASE];
    prop_oneof![
        5 => any::<bool>().prop_map(|retry| Event::Ask { retry }),
        5 => end.prop_map(|(which, health, slow)| Event::End { which: which.index(64), health, slow }),
        6 => (health, slow).prop_map(|(health, slow)| Event::Call { health, slow }),
        4 => prop::sample::select(lengths.to_vec()).prop_map(Event::Pass),
        1 => prop::bool::weighted(0.3).prop_map(|open| if open { Event::OpenByHand } else { Event::CloseByHand }),
    ]
}

fn configs() -> impl Strategy<Value = ClassicConfig> {
    let rate = || (1..=10_u16).prop_map(|tenths| Ratio::percent(tenths * 10));
    let window = prop_oneof![
        (1..12_u32).prop_map(BreakerWindow::Calls),
        Just(BreakerWindow::Time(secs(365 * 24 * 3_600))),
    ];
    let conditions = (prop::option::of(rate()), prop::option::of(rate()), prop::option::of(1..6_u32));
    (conditions, window, 1..12_u32, 1..4_u32, any::<bool>()).prop_map(
        |((failures, slow, in_a_row), window, minimum, probes, grows)| {
            let most = if let BreakerWindow::Calls(calls) = window { calls } else { minimum };
            let growth = if grows { Ratio::of(2, 1) } else { Ratio::ONE };
            let mut config = plain()
                .window(window)
                .minimum_calls(minimum.min(most))
                .open_growth(growth, secs(6))
                .probes(probes);
            config.failure_rate = failures;
            config = if let Some(rate) = slow { config.slow_calls(SLOW, rate) } else { config };
            match (failures, slow, in_a_row) {
                (None, None, None) => config.consecutive_failures(2),
                (_, _, Some(failures)) => config.consecutive_failures(failures),
                _ => config,
            }
        },
    )
}

struct Play {
    breaker: StdClassic,
    model: Model,
    now: Instant,
    held: Vec<(Admission, Leave)>,
}

impl Play {
    fn ask(&mut self, retry: bool) -> Option<(Admission, Leave)> {
        let asked = self.breaker.admits_retry(self.now, self.now);
        let ask = if retry { Breaker::admit_retry } else { Breaker::admit_first };
        let (got, should) = (ask(&self.breaker, self.now), self.model.admit(self.now));
        assert_eq!((asked, got.is_some()), (should.is_some(), should.is_some()));
        let pair = got.zip(should)?;
        assert_eq!(pair.0.is_probe(), pair.1.probe);
        Some(pair)
    }

    fn end(&mut self, (admission, leave): (Admission, Leave), health: Health, slow: bool) {
        let took = if slow { SLOW } else { SLOW - millis(1) };
        self.breaker.record(admission, health, took, self.now);
        self.model.record(leave, health, slow && self.model.config.slow_call.is_some(), self.now);
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Ask { retry } => {
                let asked = self.ask(retry);
                self.held.extend(asked);
            }
            Event::End { which, health, slow } if !self.held.is_empty() => {
                let held = self.held.remove(which % self.held.len());
                self.end(held, health, slow);
            }
            Event::End { .. } => {}
            Event::Call { health, slow } => {
                if let Some(asked) = self.ask(false) {
                    self.end(asked, health, slow);
                }
            }
            Event::Pass(length) => self.now = self.now + length,
            Event::OpenByHand => {
                self.breaker.open(self.now);
                self.model.go(BreakerState::ForcedOpen);
            }
            Event::CloseByHand => {
                self.breaker.close(self.now);
                self.model.close();
            }
        }
    }

    fn check(&self) {
        assert_eq!(self.breaker.state(), self.model.state);
        for later in [Duration::ZERO, millis(500), secs(1), secs(6), defaults::PROBE_LEASE] {
            let then = self.now + later;
            assert_eq!(
                self.breaker.admits_retry(self.now, then),
                self.model.would_admit(then),
                "in {later:?}"
            );
        }
        let until = (self.model.state == BreakerState::Open && self.model.until > self.now)
            .then_some(self.model.until);
        assert_eq!(self.breaker.opens_again(self.now), until);
    }
}

fn seeded(cases: u32, seed: u64) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(seeded(500, 43))]

    #[test]
    fn it_does_what_the_model_does(config in configs(), events in prop::collection::vec(event(), 1..150)) {
        let mut play =
            Play { breaker: breaker(config), model: Model::new(config), now: at(0), held: Vec::new() };
        for event in events {
            play.step(event);
            play.check();
        }
        prop_assert_eq!(play.breaker.counts(play.now), play.model.counts());
    }

    /// Whatever happened before: once everything that was admitted has ended, or is long ago, it closes again.
    #[test]
    fn it_is_never_stuck(config in configs(), events in prop::collection::vec(event(), 1..150), leak in any::<bool>()) {
        let mut play =
            Play { breaker: breaker(config), model: Model::new(config), now: at(0), held: Vec::new() };
        for event in events {
            if !matches!(event, Event::OpenByHand) {
                play.step(event);
            }
        }
        let held = std::mem::take(&mut play.held);
        for pair in held.into_iter().filter(|_| !leak) {
            play.end(pair, Health::Unknown, false);
        }
        play.now = play.now + config.open_cap;
        for _ in 0..2 * config.probes {
            match play.ask(false) {
                Some(pair) => play.end(pair, Health::Good, false),
                None => play.now = play.now + defaults::PROBE_LEASE,
            }
        }
        prop_assert_eq!(play.breaker.state(), BreakerState::Closed);
    }
}
