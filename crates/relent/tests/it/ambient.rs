//! The ambient deadline without a retry: told once, seen by all that runs inside, only ever lowered.

use std::cell::Cell;
use std::future::{pending, poll_fn, ready};
use std::task::Poll;
use std::time::Duration;

use relent::timer::{Clock, Manual, SystemTimer, Timer};
use relent::{Classify, Deadline, Instant, Retry, Scope, Standard, StopReason, Verdict};

use crate::rig::{Busy, handle, ms, spend_all_credit, unbounded};
use crate::stepper::Stepper;

fn at(time: u64) -> Option<Instant> {
    Some(Instant::ZERO + ms(time))
}

/// The ambient deadline.
fn seen(time: &Manual) -> Option<Instant> {
    Deadline::current_on(time.clone()).map(|deadline| deadline.at())
}

async fn sleep(time: &Manual, length: u64) {
    time.sleep_until(time.now() + ms(length)).await;
}

#[test]
fn it_is_there_inside_and_gone_outside() {
    let time = Manual::new();
    let deadline = Deadline::within_on(time.clone(), ms(100));
    assert_eq!(seen(&time), None);
    assert_eq!(deadline.run_blocking(|| seen(&time)), at(100));
    assert_eq!(time.run(deadline.run(async { seen(&time) })), at(100));
    assert_eq!(time.run(deadline.enforce(async { seen(&time) })), Ok(at(100)));
    assert_eq!(seen(&time), None);
}

#[test]
fn it_is_there_at_every_poll_and_between_polls_it_is_not() {
    let time = Manual::new();
    let deadline = Deadline::within_on(time.clone(), ms(100));
    let mut call = Stepper::new(
        &time,
        deadline.run(async {
            sleep(&time, 10).await;
            seen(&time)
        }),
    );
    assert_eq!(call.poll(), Poll::Pending);
    assert_eq!(seen(&time), None);
    call.until_woken();
    assert_eq!(call.poll(), Poll::Ready(at(100)));
}

#[test]
fn it_is_only_lowered() {
    let time = Manual::new();
    let within = |length| Deadline::within_on(time.clone(), ms(length));
    for (outer, inner, expected) in [(100, 200, 100), (100, 50, 50), (100, 100, 100)] {
        let nested = within(outer).run_blocking(|| within(inner).run_blocking(|| seen(&time)));
        assert_eq!(nested, at(expected), "{outer} around {inner}");
        let nested = within(outer).run(async { within(inner).run(async { seen(&time) }).await });
        assert_eq!(time.run(nested), at(expected), "{outer} around {inner}");
    }
    let back = within(100).run_blocking(|| {
        within(50).run_blocking(|| ());
        seen(&time)
    });
    assert_eq!(back, at(100), "what an inner one lowered comes back after it");
    assert_eq!(within(100).sooner(within(50)).at(), within(50).sooner(within(100)).at());
}

#[test]
fn calls_inside_fit_into_it() {
    let time = Manual::new();
    let deadline = Deadline::within_on(time.clone(), ms(100));
    let told = |policy: relent::PolicyBuilder| {
        let call = handle(policy, &time);
        deadline.run_blocking(|| call.run_blocking(|attempt| Ok::<_, Busy>(attempt.time_left())).unwrap())
    };
    assert_eq!(told(unbounded(1)), Some(ms(100)));
    assert_eq!(told(unbounded(1).deadline(ms(2000))), Some(ms(100)));
    assert_eq!(told(unbounded(1).deadline(ms(30))), Some(ms(30)));

    let retry = handle(unbounded(100), &time);
    let gave_up = time.run(deadline.run(retry.run(async |_| Err::<(), _>(Busy(1))))).unwrap_err();
    assert_eq!(gave_up.reason(), StopReason::DeadlineTooClose);
    assert_eq!(gave_up.last(), Some(&Busy(1)));
    assert!(time.elapsed() < ms(100), "nobody waits only to be refused: {:?}", time.elapsed());
}

#[test]
fn an_attempt_grants_less_than_the_deadline_around_its_call() {
    let time = Manual::new();
    let outer = handle(unbounded(1), &time);
    let deadline = Deadline::within_on(time.clone(), ms(100));
    let granted = deadline.run_blocking(|| outer.run_blocking(|_| Ok::<_, Busy>(seen(&time))));
    assert_eq!(granted.unwrap(), at(95));
}

#[test]
fn when_the_time_is_up_the_future_is_dropped_with_all_inside() {
    struct Dropped<'a>(&'a Cell<Option<Duration>>, &'a Manual);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.set(Some(self.1.elapsed()));
        }
    }
    let (time, dropped) = (Manual::new(), Cell::new(None));
    let outer = handle(unbounded(1), &time);
    let deadline = Deadline::within_on(time.clone(), ms(100));
    let work = deadline.enforce(outer.run(|_| async {
        let _inside = Dropped(&dropped, &time);
        // An own timer that nothing bounds.
        pending::<Result<(), Busy>>().await
    }));
    // The call inside is told the same time, and answers first.
    let gave_up = time.run(work).unwrap().unwrap_err();
    assert_eq!((gave_up.reason(), dropped.take()), (StopReason::DeadlineExceeded, Some(ms(100))));

    let deadline = Deadline::within_on(time.clone(), ms(100));
    let exceeded = time.run(deadline.enforce(async {
        let _inside = Dropped(&dropped, &time);
        pending::<()>().await;
    }));
    assert!(exceeded.unwrap_err().may_have_run());
    assert_eq!((dropped.take(), time.elapsed()), (Some(ms(200)), ms(200)));
}

#[test]
fn a_dropped_outer_call_drops_the_inner_one() {
    let (time, running) = (Manual::new(), Cell::new(0));
    struct Running<'a>(&'a Cell<u32>);
    impl Drop for Running<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    let (outer, inner) = (handle(unbounded(3), &time), handle(unbounded(3), &time));
    let deadline = Deadline::within_on(time.clone(), ms(100));
    let mut call = Stepper::new(
        &time,
        deadline.enforce(outer.run(async |_| {
            let call = inner.run(async |_| {
                running.set(running.get() + 1);
                let _running = Running(&running);
                pending::<Result<(), Busy>>().await
            });
            call.await.map_err(Busy::from)
        })),
    );
    assert!(call.poll().is_pending());
    assert_eq!(running.get(), 1);
    drop(call);
    assert_eq!((running.get(), time.sleepers()), (0, 0));
}

#[test]
fn an_answer_beats_the_clock_and_late_work_is_not_begun() {
    let time = Manual::new();
    let deadline = Deadline::within_on(time.clone(), ms(100));
    let exact = deadline.enforce(async {
        sleep(&time, 100).await;
        7
    });
    assert_eq!(time.run(exact), Ok(7));
    assert!(deadline.is_past(), "at the very point it has passed");
    assert_eq!((deadline.time_left(), deadline.check().is_err()), (Duration::ZERO, true));
    let late = time.run(deadline.enforce(async { panic!("nothing may run") }));
    assert!(!late.unwrap_err().may_have_run());
}

#[test]
fn a_nearer_deadline_around_ends_it_too() {
    let time = Manual::new();
    let within = |length| Deadline::within_on(time.clone(), ms(length));
    let nested = within(50).run(async { within(100).enforce(pending::<()>()).await });
    assert!(time.run(nested).is_err());
    assert_eq!(time.elapsed(), ms(50));
}

#[test]
fn it_leaves_the_credit_where_it_is() {
    let time = Manual::new();
    let outer = handle(unbounded(6), &time);
    let left = outer.run_blocking(|_| {
        let deadline = Deadline::within_on(time.clone(), ms(100));
        let inner = handle(unbounded(3), &time);
        let _ = deadline.run_blocking(|| inner.run_blocking(|_| Err::<(), _>(Busy(1))));
        Ok::<_, Busy>(spend_all_credit())
    });
    assert_eq!(left.unwrap(), Some(2), "what was spent inside is spent outside");
}

#[test]
fn clocks_do_not_see_one_another() {
    let time = Manual::new();
    let virtual_one = Deadline::within_on(time.clone(), ms(100));
    assert_eq!(virtual_one.run_blocking(Deadline::current), None);
    let real = Deadline::within(ms(100));
    assert_eq!(real.run_blocking(|| seen(&time)), None);
    // The one inside hides the other, and gives it back.
    let (inside, after) =
        real.run_blocking(|| (virtual_one.run_blocking(|| seen(&time)), Deadline::current()));
    assert_eq!((inside, after), (at(100), Some(real)));
}

#[tokio::test(start_paused = true)]
async fn a_scope_carries_it_over_a_spawn() {
    let deadline = Deadline::within(ms(100));
    let task = deadline.run_blocking(|| {
        let mut scope = Scope::take();
        tokio::spawn(async move {
            let lost = Deadline::current();
            (lost, scope.run(async { Deadline::current() }).await)
        })
    });
    assert_eq!(task.await.unwrap(), (None, Some(deadline)));
}

#[tokio::test(start_paused = true)]
async fn under_paused_time_the_first_poll_of_a_plain_call_sees_it() {
    let retry = handle(unbounded(1).deadline(ms(100)), &SystemTimer);
    let left = retry.run(async |_| Ok::<_, Busy>(Deadline::current().map(|deadline| deadline.time_left())));
    assert_eq!(left.await.unwrap(), Some(ms(95)));
}

#[test]
fn to_a_retry_it_is_a_timeout_that_blames_nobody() {
    let time = Manual::new();
    let within = |length| Deadline::within_on(time.clone(), ms(length));
    let amid = time.run(within(5).enforce(pending::<()>())).unwrap_err();
    let before = time.run(within(0).enforce(ready(()))).unwrap_err();
    let (amid, before) = (Standard.classify(&amid), Standard.classify(&before));
    assert_eq!((amid.verdict(), before.verdict()), (Verdict::Transient, Verdict::Unprocessed));
    assert_eq!((amid.kind(), before.kind()), (relent::Cause::Timeout, relent::Cause::Timeout));
}

#[test]
fn an_attempt_hears_that_work_inside_it_was_cut_off() {
    let time = Manual::new();
    let outer = Retry::with_timer(unbounded(1).build().unwrap(), time.clone());
    let call = outer.run(async |_| {
        let cut_off = Deadline::within_on(time.clone(), ms(5)).enforce(pending::<()>()).await;
        // Its own error says nothing of it.
        cut_off.map_err(|_| std::io::Error::from(std::io::ErrorKind::NotFound))
    });
    assert!(time.run(call).unwrap_err().ambiguous());
}

#[test]
fn it_is_seen_where_the_future_is_dropped() {
    struct Seen<'a>(&'a Manual, &'a Cell<Option<Instant>>);
    impl Drop for Seen<'_> {
        fn drop(&mut self) {
            self.1.set(seen(self.0));
        }
    }
    let (time, saw) = (Manual::new(), Cell::new(None));
    let deadline = Deadline::within_on(time.clone(), ms(100));
    let mut call = Stepper::new(
        &time,
        deadline.run(async {
            let _seen = Seen(&time, &saw);
            poll_fn(|_| Poll::<()>::Pending).await;
        }),
    );
    assert!(call.poll().is_pending());
    drop(call);
    assert_eq!(saw.get(), at(100));
}
