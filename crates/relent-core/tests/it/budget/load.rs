//! What the budget makes of an outage: whole calls with sessions, many at once, over virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use relent_core::{
    Deposit, Instant, Policy, PolicyBuilder, Ratio, RatioConfig, Session, Step, Used, Verdict,
};

use crate::rig::{Bits, Rig, at, millis, secs};

/// What became of the calls that arrived in one stretch of time.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    calls: u32,
    attempts: u32,
    succeeded: u32,
}

impl Load {
    fn factor(self) -> f64 {
        f64::from(self.attempts) / f64::from(self.calls)
    }
}

/// Seconds from the start.
const fn sec(n: u64) -> Instant {
    at(n * 1_000)
}

/// Runs calls that start at `arrivals` (in order) against a target whose attempts take no time; `works` says, by the time
/// and the attempt's number, whether one succeeds. Launches are counted by when they happen.
fn run(
    rig: &Rig,
    arrivals: impl Iterator<Item = Instant>,
    mut works: impl FnMut(Instant, u32) -> bool,
    counted: (Instant, Instant),
) -> Load {
    let mut load = Load::default();
    let mut waiting: Vec<Option<Session>> = Vec::new();
    let mut wakes: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::new();
    let mut arrivals = arrivals.peekable();
    loop {
        let wake = wakes.peek().map_or(Instant::NEVER, |Reverse((until, _))| *until);
        let arrival = arrivals.peek().copied().unwrap_or(Instant::NEVER);
        let now = wake.min(arrival);
        if now.is_never() {
            return load;
        }
        let counts = now >= counted.0 && now < counted.1;
        let (mut session, mut step) = if arrival <= wake {
            arrivals.next();
            load.calls += u32::from(counts);
            let mut session = rig.session(now);
            let step = session.begin(&rig.context(), now);
            (session, step)
        } else {
            let Reverse((_, place)) = wakes.pop().unwrap();
            let mut session = waiting[place].take().unwrap();
            let step = session.due(&rig.context(), now);
            (session, step)
        };
        while let Step::Launch(launch) = step {
            load.attempts += u32::from(counts);
            if works(now, launch.number) {
                session.succeeded(&rig.context(), launch.id, Used::Unsaid, None);
                load.succeeded += u32::from(counts);
                break;
            }
            step = session.failed(&rig.context(), launch.id, Verdict::Transient.into(), now);
        }
        if let Step::Wait { until } = step {
            wakes.push(Reverse((until, waiting.len())));
            waiting.push(Some(session));
        }
    }
}

/// A Poisson process.
fn arrivals(bits: &Bits, every: Duration, end: Instant) -> Vec<Instant> {
    let mut times = Vec::new();
    let mut now = Instant::ZERO;
    loop {
        let uniform = (bits.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64;
        now = now + every.mul_f64(-uniform.ln());
        if now >= end {
            return times;
        }
        times.push(now);
    }
}

fn rig(policy: PolicyBuilder, seed: u64) -> Rig {
    let mut rig = Rig::new(policy.build().unwrap());
    rig.bits = Bits::seeded(seed);
    rig
}

fn budget(ratio: Ratio, deposit: Deposit) -> RatioConfig {
    RatioConfig { deposit, ..RatioConfig::new(ratio) }
}

#[test]
fn a43_a_total_outage_is_throttled_whatever_the_ratio() {
    for ratio in [Ratio::percent(5), Ratio::percent(10), Ratio::percent(30), Ratio::ONE] {
        for attempts in [2, 3, 9] {
            let policy = Policy::builder().attempts(attempts).budget(RatioConfig::new(ratio));
            let rig = rig(policy, 1);
            let reserve =
                rig.policy.budget().and_then(|budget| budget.as_ratio()).unwrap().reserve_for(attempts);
            let calls = arrivals(&Bits::seeded(2), millis(10), sec(40)).into_iter();
            let load = run(&rig, calls, |now, _| now < sec(20), (sec(20), sec(60)));
            assert_eq!(load.succeeded, 0);
            let ratio = f64::from(ratio.parts_per_million()) / 1e6;
            let most = f64::from(load.calls) * (1.0 + ratio) + f64::from(reserve);
            assert!(f64::from(load.attempts) <= most, "{} attempts for {} calls", load.attempts, load.calls);
        }
    }
}

#[test]
fn once_share_and_reserve_are_spent_the_load_factor_is_one() {
    let rig = rig(Policy::builder(), 3);
    let calls = arrivals(&Bits::seeded(4), millis(10), sec(120)).into_iter();
    let load = run(&rig, calls, |now, _| now < sec(30), (sec(50), sec(120)));
    assert_eq!(load.attempts, load.calls);
}

#[test]
fn a44_after_the_outage_retries_are_granted_again() {
    let rig = rig(Policy::builder(), 5);
    let calls = arrivals(&Bits::seeded(6), millis(10), sec(120)).into_iter();
    // Every fiftieth attempt fails, once the outage from 20 to 60 is over.
    let mut n = 0;
    let works = |now: Instant, _| {
        n += 1;
        (now < sec(20) || now >= sec(60)) && n % 50 != 0
    };
    let load = run(&rig, calls, works, (sec(75), sec(200)));
    // One or two that arrived earlier may succeed within these seconds.
    assert!((load.calls..load.calls + 3).contains(&load.succeeded), "each had its retry: {load:?}");
}

#[test]
fn at_one_call_a_second_and_half_of_them_failing_the_load_factor_is_at_most_one_point_two() {
    let mut all = Load::default();
    for seed in 0..20 {
        let rig = rig(Policy::builder(), seed);
        let calls = arrivals(&Bits::seeded(100 + seed), secs(1), sec(600)).into_iter();
        let errors = Bits::seeded(200 + seed);
        let load = run(&rig, calls, |_, _| errors.chance(0.5), (sec(0), sec(700)));
        assert!(load.factor() <= 1.2, "seed {seed}: {}", load.factor());
        all.attempts += load.attempts;
        all.calls += load.calls;
    }
    assert!(all.factor() > 1.05, "and yet there are retries: {}", all.factor());
}

#[test]
fn an_isolated_failure_of_a_rare_caller_is_always_retried() {
    for every in [1, 2, 3, 10] {
        let rig = rig(Policy::builder(), 7);
        let calls = arrivals(&Bits::seeded(8), secs(100), sec(100_000)).into_iter();
        let mut n = 0;
        let works = |_, number| {
            n += u32::from(number == 1);
            number > 1 || n % every != 0
        };
        let load = run(&rig, calls, works, (sec(0), sec(200_000)));
        assert!(load.calls > 900);
        assert_eq!(load.succeeded, load.calls, "one in {every} calls fails at first");
    }
}

#[test]
fn a_thousand_small_processes_in_an_outage_of_a_minute() {
    let (mut all, mut worst) = (Load::default(), Load::default());
    for process in 0..1_000 {
        let calls = || arrivals(&Bits::seeded(10_000 + process), secs(1), sec(90));
        for (sum, counted) in [(&mut all, (sec(30), sec(90))), (&mut worst, (sec(30), sec(33)))] {
            let rig = rig(Policy::builder(), process);
            let load = run(&rig, calls().into_iter(), |now, _| now < sec(30), counted);
            sum.attempts += load.attempts;
            sum.calls += load.calls;
        }
    }
    assert!(all.calls > 58_000);
    assert!(all.factor() <= 1.1, "{}", all.factor());
    // At first each call may have all its attempts: the reserve is what a fleet of rare callers has to reckon with.
    assert!(worst.factor() <= 3.0, "{}", worst.factor());
}

#[test]
fn ordinary_errors_all_get_their_retry() {
    let rig = rig(Policy::builder(), 9);
    let calls = arrivals(&Bits::seeded(10), millis(10), sec(100)).into_iter();
    let errors = Bits::seeded(11);
    let load = run(&rig, calls, |_, _| !errors.chance(0.02), (sec(0), sec(200)));
    let failed = load.calls - load.succeeded;
    assert!(failed <= 2, "{failed} of {} calls, where one in 125 000 is to be expected", load.calls);
    assert!(load.factor() < 1.03);
}

#[test]
fn deposits_by_request_let_an_outage_have_its_share_and_no_more() {
    for ratio in [Ratio::percent(10), Ratio::percent(50)] {
        let rig = rig(Policy::builder().budget(budget(ratio, Deposit::Request)), 12);
        let calls = arrivals(&Bits::seeded(13), millis(10), sec(120)).into_iter();
        let steady = run(&rig, calls, |now, _| now < sec(30), (sec(45), sec(120))).factor();
        let share = f64::from(ratio.parts_per_million()) / 1e6;
        assert!(steady <= 1.0 + share * 1.02 && steady > 1.0 + share * 0.9, "ratio {ratio}: {steady}");
    }
}

#[test]
fn deposits_by_request_do_not_feed_the_reserve_of_a_small_process() {
    let mut all = Load::default();
    for seed in 0..50 {
        let rig = rig(Policy::builder().budget(budget(Ratio::percent(10), Deposit::Request)), seed);
        let calls = arrivals(&Bits::seeded(300 + seed), secs(1), sec(600)).into_iter();
        let load = run(&rig, calls, |now, _| now < sec(30), (sec(60), sec(600)));
        all.attempts += load.attempts;
        all.calls += load.calls;
    }
    assert!(all.factor() <= 1.1, "1 + ratio, and no reserve on top: {}", all.factor());
}
