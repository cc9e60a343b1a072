//! The reserve: for callers of few calls, refilled by successes and slowly.

use relent_core::{Budget, Deposit, Ratio, RatioConfig};

use super::books::{Books, config};
use crate::rig::{millis, secs};

#[test]
fn it_is_full_at_the_start_and_holds_a_whole_calls_retries() {
    for (attempts, tokens) in [(3, 3), (4, 3), (6, 5), (20, 19)] {
        let open = RatioConfig::new(Ratio::percent(10));
        let books = Books::of(RatioConfig { reserve: Some(open.reserve_for(attempts)), ..open });
        assert_eq!(books.budget.balance(books.now), tokens);
    }
}

#[test]
fn without_successes_nothing_refills() {
    let mut books = Books::of(config(Ratio::percent(10), secs(10), 3));
    assert_eq!(books.drain(), 3);
    for _ in 0..1_000 {
        books.pass(secs(60));
        assert!(!books.retry(), "a total outage of hours");
    }
}

#[test]
fn one_success_puts_back_at_most_one_token() {
    let mut books = Books::of(config(Ratio::ZERO, secs(10), 3));
    assert_eq!(books.drain(), 3);
    books.pass(secs(3_600));
    for _ in 0..3 {
        books.success();
        assert_eq!(books.drain(), 1);
    }
}

#[test]
fn many_successes_put_back_no_more_than_the_rate() {
    let mut books = Books::of(config(Ratio::ZERO, secs(10), 3));
    assert_eq!(books.drain(), 3);
    let mut granted = 0;
    for _ in 0..600_000 {
        books.pass(millis(1));
        books.success();
        granted += u64::from(books.retry());
    }
    assert!((59..=60).contains(&granted), "{granted} tokens in 600 s at 0.1 a second");
}

#[test]
fn a_higher_rate_is_kept_too() {
    let faster = RatioConfig { reserve_per_second: Ratio::of(2, 1), ..config(Ratio::ZERO, secs(1), 10) };
    let mut books = Books::of(faster);
    books.drain();
    let mut granted = 0;
    for _ in 0..100_000 {
        books.pass(millis(1));
        books.success();
        granted += u64::from(books.retry());
    }
    assert!((199..=200).contains(&granted), "{granted} tokens in 100 s at 2 a second");
}

#[test]
fn with_a_rate_of_zero_it_is_spent_once() {
    let frozen = RatioConfig { reserve_per_second: Ratio::ZERO, ..config(Ratio::ZERO, secs(10), 3) };
    let mut books = Books::of(frozen);
    assert_eq!(books.drain(), 3);
    for _ in 0..1_000 {
        books.pass(secs(10));
        books.success();
    }
    assert_eq!(books.drain(), 0);
}

#[test]
fn in_no_window_more_than_its_size_is_spent() {
    // A rate that would refill it many times over in one window.
    let fast = RatioConfig { reserve_per_second: Ratio::of(100, 1), ..config(Ratio::ZERO, secs(10), 4) };
    let mut books = Books::of(fast);
    let mut granted = 0;
    for _ in 0..100_000 {
        books.pass(millis(1));
        books.success();
        granted += books.drain();
    }
    assert!((36..=40).contains(&granted), "{granted} tokens in 100 s of 4 per 10 s");
}

#[test]
fn a_token_given_back_fills_it_up_and_not_over() {
    let mut books = Books::of(config(Ratio::ZERO, secs(10), 2));
    let when = books.now;
    let (one, two) = (books.take().unwrap(), books.take().unwrap());
    books.pass(secs(30));
    books.success();
    // One token was earned meanwhile; the two that come back find room for one.
    books.give_back(one, when);
    books.give_back(two, when);
    assert_eq!(books.drain(), 2);
}

#[test]
fn deposits_by_request_refill_it_by_successes_all_the_same() {
    let by_request = RatioConfig { deposit: Deposit::Request, ..config(Ratio::ZERO, secs(10), 3) };
    let mut books = Books::of(by_request);
    assert_eq!(books.drain(), 3);
    for _ in 0..100 {
        books.pass(secs(10));
        books.budget.on_start();
        assert!(!books.retry(), "nothing has succeeded");
    }
    books.success();
    assert!(books.retry());
}
