//! Outcomes in order, as an operation and as a service; and the runner around them.

use std::time::Duration;

use relent::testing::{self, Script};
use relent::timer::{Clock, Manual, Timer};
use relent::{StopReason, Verdict};

use crate::rig::{Busy, handle, ms, unbounded};

#[test]
fn outcomes_come_in_order_and_take_their_time() {
    let (script, took) = testing::block_on(async |time| {
        let script = Script::on(&time).fails(Busy(1)).takes(ms(3)).fails(Busy(2)).succeeds(7).takes(ms(5));
        let answer = handle(unbounded(3), &time).run(script.operation()).await;
        assert_eq!(answer.unwrap(), 7);
        script
    });
    assert_eq!(took, ms(3 + 10 + 10 + 5));
    let seen: Vec<_> = script.seen().iter().map(|seen| (seen.attempt, seen.at)).collect();
    assert_eq!(seen, [(1, ms(0)), (2, ms(13)), (3, ms(23))]);
    assert_eq!(script.left(), 0);
}

#[test]
fn what_never_ends_is_ended_by_the_attempts_own_time() {
    let (gave_up, took) = testing::block_on(async |time| {
        let script = Script::<(), Busy, _>::on(&time).times_out().times_out();
        let gave_up = handle(unbounded(2).attempt_timeout(ms(40)), &time).run(script.operation()).await;
        assert!(script.seen().iter().all(|seen| seen.time_left == Some(ms(40))));
        gave_up.unwrap_err()
    });
    assert!(gave_up.last_timed_out() && gave_up.ambiguous());
    assert_eq!((gave_up.reason(), took), (StopReason::AttemptsExhausted, ms(90)));
}

#[test]
fn a_blocking_operation_moves_the_clock_itself() {
    let time = Manual::new();
    let script = Script::on(&time).fails_times(2, || Busy(1)).succeeds("done").takes(ms(4));
    let answer = handle(unbounded(3), &time).run_blocking(script.blocking());
    assert_eq!((answer.unwrap(), time.elapsed()), ("done", ms(24)));
}

#[test]
fn beyond_its_end_a_script_goes_on_as_it_was_told() {
    let time = Manual::new();
    let script = Script::on(&time)
        .fails(Busy(0))
        .then_always(|before| if before < 3 { Err(Busy(before)) } else { Ok(before) });
    assert_eq!(handle(unbounded(9), &time).run_blocking(script.blocking()).unwrap(), 3);
}

#[test]
#[should_panic(expected = "the script has 1 outcomes, and one attempt more was made")]
fn an_attempt_beyond_the_end_is_told() {
    let time = Manual::new();
    let script = Script::<(), _, _>::on(&time).fails(Busy(1));
    let _ = handle(unbounded(2), &time).run_blocking(script.blocking());
}

#[test]
#[should_panic(expected = "nobody sleeps on this clock")]
fn a_future_that_waits_for_nothing_is_told_rather_than_waited_for() {
    testing::block_on(async |time| {
        let script = Script::<(), Busy, _>::on(&time).times_out();
        handle(unbounded(2), &time).run(script.operation()).await
    })
    .0
    .unwrap();
}

#[test]
fn two_calls_at_once_are_a_join_of_their_futures() {
    let (_, took) = testing::block_on(async |time: Manual| {
        let retry = handle(unbounded(2), &time);
        let (a, b) = (
            Script::on(&time).fails(Busy(1)).takes(ms(20)).succeeds(1),
            Script::on(&time).succeeds(2).takes(ms(25)),
        );
        let (a, b) = (retry.run(a.operation()), retry.run(b.operation()));
        let (mut a, mut b) = (std::pin::pin!(a), std::pin::pin!(b));
        let (mut first, mut second) = (None, None);
        std::future::poll_fn(|cx| {
            use std::task::Poll;
            if first.is_none()
                && let Poll::Ready(answer) = a.as_mut().poll(cx)
            {
                first = Some((answer.unwrap(), time.elapsed()));
            }
            if second.is_none()
                && let Poll::Ready(answer) = b.as_mut().poll(cx)
            {
                second = Some((answer.unwrap(), time.elapsed()));
            }
            if first.is_some() && second.is_some() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        assert_eq!((first, second), (Some((1, ms(30))), Some((2, ms(25)))));
    });
    assert_eq!(took, ms(30));
}

#[test]
fn the_runner_starts_at_zero_and_says_how_long_it_took() {
    let (now, took) = testing::block_on(async |time| {
        time.sleep_until(time.now() + Duration::from_secs(86_400)).await;
        time.elapsed()
    });
    assert_eq!((now, took), (Duration::from_secs(86_400), Duration::from_secs(86_400)));
}

#[test]
#[cfg(feature = "tower")]
fn a_script_is_a_service_for_any_request() {
    use tower::{Layer, Service};

    let (script, _) = testing::block_on(async |time| {
        let script = Script::on(&time).fails(Busy(1)).succeeds(7);
        let retry = handle(unbounded(2), &time);
        let mut service = relent::RetryLayer::new(retry).layer(script.clone());
        assert_eq!(service.call("any request").await.unwrap(), 7);
        script
    });
    let seen: Vec<_> = script.seen().iter().map(|seen| (seen.attempt, seen.time_left)).collect();
    assert_eq!(seen, [(1, None), (2, None)]);
}

#[test]
fn a_hedge_takes_the_next_line() {
    use relent::HedgeConfig;

    let ((), took) = testing::block_on(async |time| {
        let script = Script::on(&time).succeeds("late").takes(ms(500)).succeeds("early").takes(ms(10));
        let policy = unbounded(2).hedge(HedgeConfig::after(ms(50)));
        let retry = handle(policy, &time).classify(|_: &Busy| Verdict::Transient);
        assert_eq!(retry.run(script.operation()).await.unwrap(), "early");
    });
    assert_eq!(took, ms(60));
}
