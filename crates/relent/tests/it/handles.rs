//! What clones of a handle share, what handles share only if told so, and what a handle refuses.

use std::future::{pending, ready};
use std::sync::Arc;

use relent::timer::{Clock, Manual};
use relent::{
    Budget, Instant, Policy, PolicyError, Ratio, RatioConfig, RetriesOnlyConfig, Retry, StopReason,
};

use crate::rig::{Busy, Transient, handle, ms, unbounded};
use crate::stepper::Stepper;

fn reserve_of(tokens: u32) -> RatioConfig {
    RatioConfig {
        reserve: Some(tokens),
        reserve_per_second: Ratio::ZERO,
        ..RatioConfig::new(Ratio::percent(10))
    }
}

fn fails<T: Clock + relent::timer::BlockingTimer>(retry: &Retry<Transient, T>) -> StopReason {
    retry.run_blocking(|_| Err::<(), _>(Busy(1))).unwrap_err().reason()
}

#[test]
fn clones_share_one_budget() {
    let retry = handle(unbounded(2).budget(reserve_of(1)), &Manual::new());
    let clone = retry.clone();
    assert_eq!(fails(&retry), StopReason::AttemptsExhausted);
    assert_eq!((retry.budget_balance(), clone.budget_balance()), (Some(0), Some(0)));
    assert_eq!(fails(&clone), StopReason::BudgetExhausted);
    // Another meaning of errors, the same budget.
    let reclassified = clone.classify(|_: &Busy| relent::Verdict::Transient);
    let gave_up = reclassified.run_blocking(|_| Err::<(), _>(Busy(1))).unwrap_err();
    assert_eq!(gave_up.reason(), StopReason::BudgetExhausted);
}

#[test]
fn a73_two_handles_have_nothing_in_common() {
    let time = Manual::new();
    let half = RetriesOnlyConfig { minimum_calls: 2, ..RetriesOnlyConfig::DEFAULT };
    let make = || handle(unbounded(2).budget(reserve_of(3)).breaker(half), &time);
    let (dead_host, healthy_host) = (make(), make());
    assert_eq!(fails(&dead_host), StopReason::AttemptsExhausted);
    assert_eq!(fails(&dead_host), StopReason::BreakerOpen);
    assert_eq!(dead_host.budget_balance(), Some(2));

    assert_eq!(healthy_host.budget_balance(), Some(3));
    let flaky = healthy_host.run_blocking(|attempt| if attempt.is_retry() { Ok(()) } else { Err(Busy(1)) });
    assert!(flaky.is_ok());
}

#[test]
fn a41_stacked_layers_on_one_budget_deposit_for_each_of_their_own_calls() {
    // A budget counts what its handles call. Two handles in one stack are two callers: ten logical requests are then
    // twenty successful calls. With a budget each, as by default, it is ten and ten: share one between handles that stand
    // side by side, not one above the other.
    let time = Manual::new();
    let lender = handle(unbounded(2).budget(reserve_of(0)), &time);
    let stack = |outer: &Retry<Transient, Manual>, inner: &Retry<Transient, Manual>| {
        for _ in 0..10 {
            let answer =
                outer.run_blocking(|_| inner.run_blocking(|_| Ok::<_, Busy>(())).map_err(Busy::from));
            assert!(answer.is_ok());
        }
    };
    let inner = handle(unbounded(2).budget(reserve_of(0)), &time);
    stack(&lender, &inner);
    assert_eq!((lender.budget_balance(), inner.budget_balance()), (Some(1), Some(1)));

    // A handle of ours, counted through a budget that only counts: one deposit for each call, whatever attempts it took.
    let counting = Arc::new(Counting::default());
    let handle_on = |counting: &Arc<Counting>| {
        handle(unbounded(3), &time).budget(Arc::clone(counting) as Arc<dyn Budget>)
    };
    let flaky = handle_on(&counting);
    for _ in 0..10 {
        assert!(flaky.run_blocking(|a| if a.number() < 3 { Err(Busy(1)) } else { Ok(()) }).is_ok());
    }
    assert_eq!(counting.deposits(), 10);
    stack(&handle_on(&counting), &handle_on(&counting));
    assert_eq!(counting.deposits(), 10 + 20);
}

/// Grants everything and counts successes.
#[derive(Debug, Default)]
struct Counting(std::sync::atomic::AtomicU32);

impl Counting {
    fn deposits(&self) -> u32 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

impl Budget for Counting {
    fn on_start(&self) {}

    fn on_success(&self, _attempts: u32, _now: Option<Instant>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    fn on_failure(&self, _verdict: relent::Verdict, _health: relent::Health, _now: Instant) {}

    fn withdraw(self: Arc<Self>, _class: relent::TokenClass, _now: Instant) -> Option<relent::Permit> {
        Some(relent::Permit::new(self, relent::Grant { source: 0, mark: 0 }))
    }

    fn give_back(&self, _grant: relent::Grant) {}

    fn balance(&self, _now: Instant) -> u64 {
        u64::MAX
    }
}

#[test]
fn a43_a_total_outage_is_throttled_end_to_end() {
    let (calls, reserve) = (200, 3);
    let time = Manual::new();
    let retry = handle(unbounded(3).budget(reserve_of(reserve)), &time);
    for _ in 0..calls {
        assert!(retry.run_blocking(|_| Ok::<_, Busy>(())).is_ok());
    }
    let attempts: u32 = (0..calls)
        .map(|_| {
            time.advance(ms(10));
            time.run(retry.run(|_| ready(Err::<(), _>(Busy(1))))).unwrap_err().attempts()
        })
        .sum();
    // A tenth of the calls that succeeded, and the reserve; nothing refills it while all fail.
    assert_eq!(attempts, calls + calls / 10 + reserve);
}

#[test]
fn the_room_to_wait_is_bounded_and_shared() {
    let time = Manual::new();
    let retry = handle(unbounded(2).max_waiting(2), &time);
    let mut waiting: Vec<_> =
        (0..2).map(|_| Stepper::new(&time, retry.run(|_| ready(Err::<(), _>(Busy(1)))))).collect();
    for call in &mut waiting {
        assert!(call.poll().is_pending());
    }
    assert_eq!(retry.waiting(), 2);
    assert_eq!(fails(&retry), StopReason::TooManyWaiting);
    drop(waiting.pop());
    assert_eq!(retry.waiting(), 1);
    assert_eq!(fails(&retry), StopReason::AttemptsExhausted);
    // An attempt that runs waits for nobody's turn.
    let mut running = Stepper::new(&time, retry.run(|_| pending::<Result<(), Busy>>()));
    assert!(running.poll().is_pending());
    assert_eq!(retry.waiting(), 1);
}

#[test]
fn a_seeded_handle_waits_the_same_every_time() {
    let waits = |seed: u64| {
        let time = Manual::new();
        let retry = handle(unbounded(5).jitter(relent::Jitter::Full).cap(ms(1000)), &time).seed(seed);
        assert_eq!(fails(&retry), StopReason::AttemptsExhausted);
        time.elapsed()
    };
    assert_eq!(waits(1), waits(1));
    assert_ne!(waits(1), waits(2));
}

#[test]
fn calls_of_an_unseeded_handle_do_not_share_a_sequence() {
    let waits = || {
        let time = Manual::new();
        fails(&handle(unbounded(5).jitter(relent::Jitter::Full).cap(ms(1000)), &time));
        time.elapsed()
    };
    let first = waits();
    assert!((0..10).any(|_| waits() != first), "eleven calls with the very same waits");
    let elsewhere = std::thread::spawn(waits).join().unwrap();
    assert_ne!(elsewhere, first, "two threads draw from one sequence");
}

#[test]
#[should_panic(expected = "a handle is configured before it is cloned")]
fn a_handle_that_has_clones_is_configured_no_more() {
    let retry = handle(unbounded(2), &Manual::new());
    let _clone = retry.clone();
    let _ = retry.keep_errors();
}

#[test]
fn a23_no_bound_is_said_aloud_and_never_a_zero() {
    let base = || Policy::constant(ms(10));
    let none: Option<std::time::Duration> = base().no_deadline().build().unwrap().deadline();
    assert_eq!(none, None);
    assert_eq!(base().deadline(ms(0)).build(), Err(PolicyError::Zero("deadline")));
    assert_eq!(base().attempt_timeout(ms(0)).build(), Err(PolicyError::Zero("attempt_timeout")));
    assert_eq!(base().attempts(0).build(), Err(PolicyError::NoAttempts));
}

#[test]
fn a26_to_stop_is_a_word_not_a_wait() {
    // Whoever drives the engine gets one of three answers, and the compiler asks for all of them: no wait means stop.
    let name = |step: relent_core::Step| match step {
        relent_core::Step::Launch(_) => "launch",
        relent_core::Step::Wait { until: _ } => "wait",
        relent_core::Step::Stop(_) => "stop",
    };
    let stop = relent_core::Stop {
        reason: StopReason::AttemptsExhausted,
        attempts: 1,
        ambiguous: false,
        hint: None,
    };
    assert_eq!(name(relent_core::Step::Stop(stop)), "stop");
}
