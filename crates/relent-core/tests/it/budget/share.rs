//! The share in small, countable cases.

use std::sync::Arc;
use std::time::Duration;

use relent_core::{Budget, Deposit, Ratio, RatioConfig, TokenClass};

use super::books::{Books, config};
use crate::rig::{millis, secs};

#[test]
fn a40_the_ratio_is_exact() {
    for hundredths in [30, 40, 60, 70, 90, 10, 5, 99, 100] {
        let mut books = Books::of(config(Ratio::percent(hundredths), secs(10), 0));
        for _ in 0..1_000 {
            books.success();
        }
        assert_eq!(books.drain(), u64::from(hundredths) * 10, "ratio 0.{hundredths:02}");
    }
}

#[test]
fn a40_thirds_are_exact_too() {
    let mut books = Books::of(config(Ratio::from_parts_per_million(333_333), secs(10), 0));
    for successes in 1..=2_000_u64 {
        books.success();
        books.drain();
        assert_eq!(books.granted_in_window(), successes * 333_333 / 1_000_000);
    }
}

#[test]
fn a47_without_a_budget_to_speak_of_nothing_is_granted() {
    let mut books = Books::of(config(Ratio::ZERO, secs(10), 0));
    for _ in 0..10_000 {
        books.success();
    }
    assert_eq!((books.drain(), books.budget.balance(books.now)), (0, 0));
}

#[test]
fn a44_a_drained_budget_recovers_by_first_tries_that_succeed() {
    let mut books = Books::of(config(Ratio::percent(10), secs(10), 3));
    for _ in 0..100 {
        books.success();
    }
    assert_eq!(books.drain(), 13);
    books.pass(secs(1));
    assert!(!books.retry());
    books.pass(secs(10));
    for _ in 0..10 {
        books.pass(millis(1));
        books.success();
    }
    assert!(books.retry());
}

#[test]
fn a_call_deposits_once_however_many_attempts_it_took() {
    let books = Books::of(config(Ratio::ONE, secs(10), 0));
    books.budget.on_success(7, Some(books.now));
    assert_eq!(books.budget.balance(books.now), 1);
}

#[test]
fn the_balance_is_what_would_be_granted() {
    let mut books = Books::of(config(Ratio::percent(25), secs(10), 2));
    for successes in 0..200 {
        let balance = books.budget.balance(books.now);
        let mut held = Vec::new();
        while let Some(permit) = Arc::clone(&books.budget).withdraw(TokenClass::Timeout, books.now) {
            held.push(permit);
        }
        assert_eq!(held.len() as u64, balance, "after {successes} successes");
        drop(held);
        assert_eq!(books.budget.balance(books.now), balance);
        books.success();
        books.pass(millis(30));
    }
}

#[test]
fn a_token_given_back_can_be_granted_again() {
    let mut books = Books::of(config(Ratio::percent(10), secs(10), 1));
    for _ in 0..10 {
        books.success();
    }
    for _ in 0..1_000 {
        let when = books.now;
        let (one, two) = (books.take().unwrap(), books.take().unwrap());
        assert!(books.take().is_none());
        books.pass(millis(1));
        books.give_back(two, when);
        books.give_back(one, when);
    }
    assert_eq!(books.drain(), 2);
}

#[test]
fn a_token_given_back_after_its_window_adds_nothing() {
    let mut books = Books::of(config(Ratio::percent(10), secs(10), 0));
    for _ in 0..10 {
        books.success();
    }
    let when = books.now;
    let old = books.take().unwrap();
    books.pass(secs(30));
    for _ in 0..10 {
        books.success();
    }
    assert!(books.retry());
    books.give_back(old, when);
    assert!(!books.retry());
}

#[test]
fn every_window_length_keeps_the_ratio() {
    for window in [millis(1), millis(10), millis(999), secs(1), secs(60), secs(86_400), secs(365 * 86_400)] {
        let mut books = Books::of(config(Ratio::percent(50), window, 0));
        for _ in 0..500 {
            books.pass(window / 40);
            books.success();
            books.drain();
        }
        let granted = books.granted_in_window();
        assert!((16..=20).contains(&granted), "{window:?}: {granted} of half of 40");
    }
}

#[test]
fn deposits_by_request_come_at_the_start_and_not_at_the_success() {
    let by_request = RatioConfig { deposit: Deposit::Request, ..config(Ratio::ONE, secs(10), 0) };
    let books = Books::of(by_request);
    books.budget.on_start();
    books.budget.on_start();
    assert_eq!(books.budget.balance(books.now), 2);
    books.budget.on_success(1, Some(books.now));
    assert_eq!(books.budget.balance(books.now), 2);

    let by_success = Books::of(config(Ratio::ONE, secs(10), 0));
    by_success.budget.on_start();
    assert_eq!(by_success.budget.balance(by_success.now), 0);
}

#[test]
fn counts_beyond_any_traffic_saturate() {
    let books = Books::of(config(Ratio::ONE, secs(365 * 86_400), u32::MAX));
    assert_eq!(books.budget.balance(books.now), u64::from(u32::MAX));
    assert!(Arc::clone(&books.budget).withdraw(TokenClass::Transient, books.now).is_some());
    let end = relent_core::Instant::from_nanos(u64::MAX - 1);
    assert!(books.budget.balance(end) >= u64::from(u32::MAX) - 1);
    let _ = books.budget.balance(relent_core::Instant::from_nanos(0) + Duration::from_secs(1));
}
