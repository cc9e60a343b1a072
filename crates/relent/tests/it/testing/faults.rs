//! Faults by chance: the same for the same seed, and none while they are switched off.

use relent::testing::{FaultCounts, Faults};
use relent::timer::Manual;
use relent::{Ratio, Retry, Verdict};

use crate::rig::{Busy, ms, unbounded};

/// Which of a hundred calls failed.
fn failed(faults: &Faults<Busy, Manual>, time: &Manual) -> Vec<bool> {
    let policy = unbounded(1).build().unwrap();
    let retry = Retry::with_timer(policy, time.clone()).classify(|_: &Busy| Verdict::Permanent);
    let call = || time.run(retry.run(faults.around(|_| std::future::ready(Ok::<_, Busy>(())))));
    (0..100).map(|_| call().is_err()).collect()
}

fn faults(seed: u64, time: &Manual) -> Faults<Busy, Manual> {
    Faults::seeded(seed)
        .timer(time)
        .errors(Ratio::percent(30), || Busy(9))
        .latency(Ratio::percent(10), ms(50))
}

#[test]
fn the_share_is_met_the_same_way_for_the_same_seed() {
    let time = Manual::new();
    let (one, same, other) = (faults(7, &time), faults(7, &time), faults(8, &time));
    for faults in [&one, &same, &other] {
        faults.turn_on();
    }
    let met = failed(&one, &time);
    assert_eq!(met, failed(&same, &time));
    assert_ne!(met, failed(&other, &time));
    let counts = one.counts();
    assert_eq!((counts.calls, counts.errors), (100, met.iter().filter(|failed| **failed).count() as u64));
    assert!((15..45).contains(&counts.errors) && (2..20).contains(&counts.delays), "{counts:?}");
}

#[test]
fn switched_off_they_do_nothing() {
    let time = Manual::new();
    let faults = faults(7, &time);
    assert!(failed(&faults, &time).iter().all(|failed| !failed));
    assert_eq!((faults.counts(), time.elapsed()), (FaultCounts::default(), ms(0)));
    faults.clone().turn_on();
    assert!(faults.is_on() && failed(&faults, &time).contains(&true));
    faults.turn_off();
    assert!(!failed(&faults, &time).contains(&true));
}

#[test]
fn a_delayed_call_is_made_late_and_one_with_an_error_is_not_made() {
    let time = Manual::new();
    let late = Faults::seeded(1).timer(&time).latency(Ratio::ONE, ms(50));
    late.turn_on();
    let retry = Retry::with_timer(unbounded(1).build().unwrap(), time.clone());
    let retry = retry.classify(|_: &Busy| Verdict::Permanent);
    let at = time.run(retry.run(late.around(async |_| Ok(time.elapsed()))));
    assert_eq!(at.unwrap(), ms(50));

    let broken = Faults::seeded(1).timer(&time).errors(Ratio::ONE, || Busy(1));
    broken.turn_on();
    let made = std::cell::Cell::new(false);
    let answer = time.run(retry.run(broken.around(|_| {
        made.set(true);
        std::future::ready(Ok(()))
    })));
    assert_eq!((answer.unwrap_err().into_last(), made.get()), (Some(Busy(1)), false));
}

#[test]
#[cfg(feature = "tower")]
fn retries_above_the_layer_meet_the_faults() {
    use relent::testing::{FaultLayer, Script};
    use tower::{Layer, Service};

    let time = Manual::new();
    let faults = Faults::seeded(3).timer(&time).errors(Ratio::percent(50), || Busy(1));
    faults.turn_on();
    let script = Script::on(&time).then_always(Ok);
    let retry = Retry::with_timer(unbounded(20).build().unwrap(), time.clone());
    let retry = retry.classify(|_: &Busy| Verdict::Transient);
    let mut service =
        relent::RetryLayer::new(retry).layer(FaultLayer::new(faults.clone()).layer(script.clone()));
    for expected in 0..20 {
        assert_eq!(time.run(service.call(())).unwrap(), expected);
    }
    let counts = faults.counts();
    assert!(counts.errors > 5 && counts.calls == 20 + counts.errors, "{counts:?}");
    assert_eq!(script.seen().len(), 20);
}

#[test]
#[should_panic(expected = "a share of the calls is at most 1, and this is 2")]
fn a_share_of_more_than_all_is_refused() {
    let _ = Faults::seeded(1).errors(Ratio::of(2, 1), || Busy(1));
}
