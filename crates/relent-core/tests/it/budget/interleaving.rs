//! Anything in any order, against the brute-force count.

use std::collections::VecDeque;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use relent_core::{Budget, Instant, Permit, Ratio, RatioConfig};

use super::books::{Books, config};
use crate::rig::{millis, secs};

#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many calls succeed, their driver knowing the time or not.
    Succeed {
        calls: u8,
        clocked: bool,
    },
    /// A call asks, and keeps what it gets.
    Retry,
    /// A call asks, and holds what it gets for a while.
    Take,
    /// The call that has held longest gives back, or spends.
    GiveBack,
    Spend,
    /// Thousandths of the window.
    Pass(u32),
    /// Long idle.
    Sleep,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (1..40_u8, any::<bool>()).prop_map(|(calls, clocked)| Event::Succeed { calls, clocked }),
        4 => Just(Event::Retry),
        2 => Just(Event::Take),
        1 => Just(Event::GiveBack),
        1 => Just(Event::Spend),
        6 => (0..400_u32).prop_map(Event::Pass),
        1 => Just(Event::Sleep),
    ]
}

fn configs() -> impl Strategy<Value = RatioConfig> {
    let ratio = prop_oneof![Just(1_000_000), 1..1_000_000_u32].prop_map(Ratio::from_parts_per_million);
    let window = prop_oneof![Just(secs(10)), Just(secs(1)), Just(millis(64)), Just(secs(3_600))];
    (ratio, window, 0..4_u32).prop_map(|(ratio, window, reserve)| config(ratio, window, reserve))
}

/// Lets time pass so that a budget whose deposits may be unclocked is turned at least every tenth of the window.
fn pass_turning(books: &mut Books, time: Duration) {
    let tenth = books.config.window / 10;
    let _ = books.budget.balance(books.now);
    if time > tenth {
        books.pass(tenth);
        let _ = books.budget.balance(books.now);
        books.pass(time - tenth);
    } else {
        books.pass(time);
    }
}

fn play(config: RatioConfig, events: &[Event], all_clocked: bool) {
    let window = config.window;
    let mut books = Books::of(config);
    let mut held: VecDeque<(Permit, Instant)> = VecDeque::new();
    let mut spent = Vec::new();
    for event in events {
        let time = match *event {
            Event::Pass(thousandths) => window * thousandths / 1_000,
            Event::Sleep => window * 7 / 2,
            _ => Duration::ZERO,
        };
        match *event {
            Event::Succeed { calls, clocked } => {
                for _ in 0..calls {
                    if clocked || all_clocked { books.success() } else { books.success_unclocked() }
                }
            }
            Event::Retry => _ = books.retry(),
            Event::Take => {
                let when = books.now;
                held.extend(books.take().map(|permit| (permit, when)));
            }
            Event::GiveBack => {
                if let Some((permit, when)) = held.pop_front() {
                    books.give_back(permit, when);
                }
            }
            Event::Spend => spent.extend(held.pop_front()),
            Event::Pass(_) | Event::Sleep if all_clocked => books.pass(time),
            Event::Pass(_) | Event::Sleep => pass_turning(&mut books, time),
        }
    }
}

fn seeded(cases: u32, seed: u64) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(seeded(300, 41))]

    /// Whoever knows the time of each success never gets a token too many, however seldom anything is asked.
    #[test]
    fn exact_where_successes_are_clocked(config in configs(), events in prop::collection::vec(event(), 1..120)) {
        play(config, &events, true);
    }

    #[test]
    fn exact_where_turned_every_tenth_of_the_window(
        config in configs(),
        events in prop::collection::vec(event(), 1..120),
    ) {
        play(config, &events, false);
    }
}

#[derive(Clone, Copy, Debug)]
enum Wild {
    Succeed(Option<u64>),
    Start,
    Take(u64),
    GiveBack,
    Ask(u64),
}

fn wild() -> impl Strategy<Value = Wild> {
    // Near zero, around some seconds, and at the end of all clocks; in any order.
    let time = prop_oneof![0..1_000_u64, 0..60_000_000_000_u64, any::<u64>(), (u64::MAX - 1_000)..=u64::MAX];
    prop_oneof![
        prop::option::of(time.clone()).prop_map(Wild::Succeed),
        Just(Wild::Start),
        time.clone().prop_map(Wild::Take),
        Just(Wild::GiveBack),
        time.prop_map(Wild::Ask),
    ]
}

proptest! {
    #![proptest_config(seeded(300, 42))]

    /// A clock that jumps back and forth makes nothing panic, and no token out of nothing.
    #[test]
    fn a_wild_clock_grants_no_more_than_was_earned(
        config in configs(),
        events in prop::collection::vec(wild(), 1..120),
    ) {
        let mut books = Books::of(config);
        let (mut held, mut earned) = (Vec::new(), 0_u64);
        for event in events {
            match event {
                Wild::Succeed(now) => {
                    books.budget.on_success(1, now.map(Instant::from_nanos));
                    earned += 1;
                }
                Wild::Start => books.budget.on_start(),
                Wild::Take(now) => {
                    books.now = Instant::from_nanos(now);
                    let budget = std::sync::Arc::clone(&books.budget);
                    held.extend(budget.withdraw(relent_core::TokenClass::Transient, books.now));
                    // Each success may pay for a share of a token and put one back into the reserve.
                    let most = earned * 2 + u64::from(config.reserve.unwrap_or(0));
                    prop_assert!(held.len() as u64 <= most, "{} of {most}", held.len());
                }
                Wild::GiveBack => drop(held.pop()),
                Wild::Ask(now) => _ = books.budget.balance(Instant::from_nanos(now)),
            }
        }
    }

    /// Going back in time, a clock gains nothing: the latest time that was seen counts.
    #[test]
    fn a_clock_that_falls_back_gains_nothing(back in 1..100_000_u64, successes in 0..200_u64) {
        let mut books = Books::of(config(Ratio::percent(50), secs(10), 0));
        for _ in 0..successes {
            books.success();
        }
        let share = books.drain();
        prop_assert_eq!(share, successes / 2);
        let earlier = Instant::from_nanos(books.now.as_nanos() - back * 1_000_000);
        prop_assert_eq!(books.budget.balance(earlier), 0);
    }
}
