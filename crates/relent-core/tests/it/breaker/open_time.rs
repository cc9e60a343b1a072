//! How long it stays open.

use std::time::Duration;

use relent_core::{Breaker, BreakerState, ClassicConfig, Health, Instant, Ratio};

use super::{StdClassic, breaker, one, plain, tell};
use crate::rig::{at, secs};

/// How long it stays open at its first opening, and each time that its probe fails after that.
fn open_times(breaker: &StdClassic, times: usize) -> Vec<Duration> {
    let mut now = at(0);
    one(breaker, Health::Bad, now);
    let mut lengths = Vec::new();
    for _ in 0..times {
        let until = breaker.opens_again(now).expect("it is open");
        assert!(
            breaker.admit_first(Instant::from_nanos(until.as_nanos() - 1)).is_none(),
            "not a moment too early"
        );
        lengths.push(until.since(now));
        let probe = breaker.admit_first(until).expect("its time is up");
        now = until;
        tell(breaker, probe, Health::Bad, now);
    }
    lengths
}

#[test]
fn it_grows_while_probes_fail_and_starts_anew_when_it_closed() {
    let config = plain().open_growth(Ratio::of(2, 1), secs(6));
    let breaker = breaker(config);
    assert_eq!(open_times(&breaker, 5), [1, 2, 4, 6, 6].map(secs));
    let later = at(1_000_000);
    let probe = breaker.admit_first(later).unwrap();
    tell(&breaker, probe, Health::Good, later);
    assert_eq!(breaker.state(), BreakerState::Closed);
    one(&breaker, Health::Bad, later);
    assert_eq!(breaker.opens_again(later), Some(later + secs(1)));
}

#[test]
fn without_growth_it_is_always_the_same() {
    assert_eq!(open_times(&breaker(plain()), 3), [secs(1); 3]);
}

#[test]
fn jitter_only_adds_and_differs_between_breakers() {
    let config: ClassicConfig = plain().open_jitter(Ratio::percent(50));
    let mut seen = Vec::new();
    for seed in 0..200 {
        let breaker = StdClassic::new(config, seed, at(0));
        seen.extend(open_times(&breaker, 2));
    }
    assert!(seen.iter().all(|length| (secs(1)..=secs(1) * 3 / 2).contains(length)));
    assert!(seen.iter().min() < Some(&(secs(1) * 26 / 25)) && seen.iter().max() > Some(&(secs(1) * 36 / 25)));
    seen.sort();
    seen.dedup();
    assert!(seen.len() > 390, "{}", seen.len());
}

/// All times are the driver's: there is no clock inside that somebody could set.
#[test]
fn b17_time_that_does_not_pass_opens_nothing() {
    let breaker = breaker(plain());
    one(&breaker, Health::Bad, at(5_000));
    for now in [at(5_000), at(0), at(5_999)] {
        assert!(breaker.admit_first(now).is_none(), "{now:?}");
    }
    assert!(breaker.admit_first(at(6_000)).is_some());
}

#[test]
fn the_longest_open_time_ends_before_the_end_of_all_clocks() {
    let year = secs(365 * 24 * 3_600);
    let breaker = breaker(plain().open_for(year).open_growth(Ratio::of(1_000, 1), year));
    let late = Instant::from_nanos(u64::MAX - 10);
    one(&breaker, Health::Bad, late);
    assert!(breaker.admit_first(late).is_none());
}

#[test]
fn what_never_opens_or_never_closes_is_refused() {
    use relent_core::{BreakerWindow, PolicyError, defaults};

    let refused = |config: ClassicConfig| config.check().expect_err("it contradicts itself");
    let more = Ratio::percent(101);
    assert_eq!(refused(plain().no_failure_rate()), PolicyError::BreakerNeverOpens);
    assert_eq!(refused(plain().failure_rate(more)), PolicyError::FailureRateAboveOne(more));
    assert_eq!(refused(plain().slow_calls(secs(1), more)), PolicyError::SlowCallRateAboveOne(more));
    assert_eq!(refused(plain().open_jitter(more)), PolicyError::OpenJitterAboveOne(more));
    let less = Ratio::percent(99);
    assert_eq!(refused(plain().open_growth(less, secs(9))), PolicyError::OpenMultiplierBelowOne(less));
    let cap = plain().open_for(secs(2)).open_growth(Ratio::ONE, secs(1));
    assert_eq!(refused(cap), PolicyError::OpenCapBelowOpenFor { cap: secs(1), open_for: secs(2) });
    let few = plain().minimum_calls(11);
    assert_eq!(refused(few), PolicyError::MinimumCallsAboveWindow { minimum_calls: 11, calls: 10 });
    let many = defaults::BREAKER_MOST_CALLS + 1;
    assert_eq!(refused(plain().window(BreakerWindow::Calls(many))), PolicyError::TooManyCalls(many));
    assert!(plain().window(BreakerWindow::Calls(many - 1)).check().is_ok());
    for (config, field) in [
        (plain().probes(0), "breaker.probes"),
        (plain().minimum_calls(0), "breaker.minimum_calls"),
        (plain().consecutive_failures(0), "breaker.consecutive_failures"),
        (plain().window(BreakerWindow::Calls(0)), "breaker.calls"),
        (plain().window(BreakerWindow::Time(Duration::ZERO)), "breaker.window"),
        (plain().open_for(Duration::ZERO), "breaker.open_for"),
        (plain().slow_calls(Duration::ZERO, Ratio::ONE), "breaker.slow_call"),
        (plain().slow_calls(secs(1), Ratio::ZERO), "breaker.slow_call_rate"),
        (plain().failure_rate(Ratio::ZERO), "breaker.failure_rate"),
    ] {
        assert_eq!(refused(config), PolicyError::Zero(field));
    }
}
