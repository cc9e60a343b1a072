//! Where time comes from: virtual time, tokio's paused time, and timers of one's own.

use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use relent::timer::{BlockingTimer, Clock, Manual, SystemTimer, Timer};
use relent::{Instant, Policy, Retry, StopReason, Verdict};

use crate::rig::{Busy, handle, ms, unbounded};
use crate::stepper::Stepper;

#[test]
fn virtual_time_stands_still_until_it_is_moved() {
    let time = Manual::new();
    assert_eq!((time.now(), time.elapsed()), (Instant::ZERO, Duration::ZERO));
    time.advance(ms(5));
    time.advance_to(Instant::ZERO + ms(7));
    assert_eq!(time.clone().elapsed(), ms(7), "clones share one clock");
    time.advance_to(Instant::ZERO + ms(3));
    assert_eq!(time.elapsed(), ms(7), "it never goes back");
    time.block_until(Instant::ZERO + ms(9));
    assert_eq!(time.elapsed(), ms(9), "a blocking wait moves it");
    time.advance(Duration::MAX);
    assert_eq!(time.now(), Instant::NEVER, "it ends where counting ends");
}

#[test]
fn sleepers_wake_in_their_order() {
    let time = Manual::new();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sleep = |until: u64, name: &'static str| {
        let (time, order) = (time.clone(), Arc::clone(&order));
        async move {
            time.sleep_until(Instant::ZERO + ms(until)).await;
            order.lock().unwrap().push((name, time.elapsed()));
        }
    };
    time.run(async {
        tokio::join!(sleep(20, "late"), sleep(10, "early"), sleep(0, "at once"));
    });
    assert_eq!(*order.lock().unwrap(), [("at once", ms(0)), ("early", ms(10)), ("late", ms(20))]);
    assert_eq!(time.advance_to_next(), None);
}

#[test]
fn a_sleeper_wakes_when_it_is_due_and_not_before() {
    let time = Manual::new();
    let woken = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut sleep = pin!(time.sleep_until(Instant::ZERO + ms(10)));
    let mut poll = || sleep.as_mut().poll(&mut Context::from_waker(&waker));

    assert!(poll().is_pending());
    assert_eq!(time.sleepers(), 1);
    time.advance(ms(9));
    assert_eq!(woken.0.load(Ordering::Relaxed), 0);
    assert!(poll().is_pending());
    assert_eq!(time.sleepers(), 1, "polled twice, it still sleeps once");
    assert_eq!(time.advance_to_next(), Some(Instant::ZERO + ms(10)));
    assert_eq!((woken.0.load(Ordering::Relaxed), time.sleepers()), (1, 0));
    assert!(poll().is_ready());
}

#[derive(Default)]
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn virtual_time_runs_a_future_to_its_end() {
    let time = Manual::new();
    let (asked, answers) = tokio::sync::oneshot::channel();
    let pair = async {
        tokio::join!(
            async {
                time.sleep_until(Instant::ZERO + ms(10)).await;
                asked.send(7).unwrap();
            },
            async { (answers.await.unwrap(), time.elapsed()) },
        )
    };
    assert_eq!(
        time.run(pair).1,
        (7, ms(10)),
        "woken by another future, it is polled before the clock moves on"
    );
}

#[test]
#[should_panic(expected = "nobody sleeps on this clock")]
fn virtual_time_does_not_wait_for_what_never_comes() {
    Manual::new().run(pending::<()>());
}

#[test]
fn a_dropped_sleeper_is_forgotten() {
    let time = Manual::new();
    let mut sleep = Stepper::new(&time, time.sleep_until(Instant::ZERO + ms(10)));
    assert!(sleep.poll().is_pending());
    drop(sleep);
    assert_eq!(time.sleepers(), 0);
    drop(time.sleep_until(Instant::ZERO + ms(10)));
    assert_eq!(time.sleepers(), 0);
}

#[test]
fn a74_the_wall_clock_changes_nothing() {
    let hour = Duration::from_secs(3600);
    let start = UNIX_EPOCH + 100 * hour;
    let check = |walls: [SystemTime; 2]| {
        let time = Manual::new();
        time.set_wall(start);
        let retry = handle(unbounded(3).deadline(ms(100)).attempt_timeout(ms(20)), &time);
        let call = retry.run(async |attempt| match attempt.number() {
            1 => {
                time.set_wall(walls[0]);
                Err(Busy(1))
            }
            2 => pending::<Result<(), Busy>>().await,
            _ => {
                time.set_wall(walls[1]);
                Err(Busy(3))
            }
        });
        let gave_up = time.run(call).unwrap_err();
        assert_eq!((gave_up.reason(), gave_up.elapsed()), (StopReason::AttemptsExhausted, ms(40)));
        assert_eq!(time.wall(), walls[1]);
    };
    check([start, start]);
    check([start - hour, start + hour]);
    check([start + hour, start - hour]);
    check([UNIX_EPOCH, UNIX_EPOCH + 1_000_000 * hour]);
}

#[tokio::test(start_paused = true)]
async fn the_system_timer_follows_tokios_paused_time() {
    let start = SystemTimer.now();
    let policy = Policy::constant(Duration::from_secs(3600)).no_deadline().build().unwrap();
    let retry = Retry::new(policy).classify(|_: &Busy| Verdict::Transient);
    let gave_up = retry.run(|_| ready(Err::<(), _>(Busy(1)))).await.unwrap_err();
    assert_eq!(gave_up.elapsed(), Duration::from_secs(7200));
    assert_eq!(SystemTimer.now().since(start), Duration::from_secs(7200));
}

#[test]
fn a_paused_clock_behind_the_first_one_still_runs() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "timer::the_first_reading_is_far_ahead"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "needs a process of its own; the test above starts it"]
fn the_first_reading_is_far_ahead() {
    // The process's first reading comes from a test whose clock is an hour ahead; in another test's time, waits must not be
    // longer for that.
    let paused = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap()
    };
    paused().block_on(async {
        tokio::time::advance(Duration::from_secs(3600)).await;
        let _ = SystemTimer.now();
    });
    paused().block_on(async {
        let start = SystemTimer.now();
        tokio::time::advance(ms(10)).await;
        assert_eq!(SystemTimer.now().since(start), ms(10));
    });
}

/// Virtual time whose sleeps end early, as those of coarse clocks do.
#[derive(Clone)]
struct Hasty {
    time: Manual,
    early: Duration,
}

impl Clock for Hasty {
    fn now(&self) -> Instant {
        self.time.now()
    }

    fn wall(&self) -> SystemTime {
        self.time.wall()
    }
}

impl Timer for Hasty {
    type Sleep = relent::timer::ManualSleep;

    fn sleep_until(&self, at: Instant) -> Self::Sleep {
        let wait = at.since(self.now());
        // The nearer, the better it meets: half the wait is slept, at least.
        self.time.sleep_until(self.now() + (wait - self.early.min(wait / 2)))
    }
}

#[test]
fn a_timer_that_wakes_early_costs_a_poll_and_nothing_else() {
    let time = Hasty { time: Manual::new(), early: Duration::from_micros(7) };
    let retry = handle(unbounded(2).attempt_timeout(ms(20)), &time);
    let call = retry.run(async |attempt| {
        if attempt.is_retry() { Ok(time.time.elapsed()) } else { pending::<Result<_, Busy>>().await }
    });
    assert_eq!(time.time.run(call).unwrap(), ms(30), "20 ms of the attempt, 10 ms of backoff");
}

#[test]
fn a_timer_that_wakes_early_ends_no_attempt_before_its_time() {
    let time = Hasty { time: Manual::new(), early: ms(1) };
    let retry = handle(unbounded(1).attempt_timeout(ms(20)), &time);
    let call = retry.run(async |_| {
        time.time.sleep_until(Instant::ZERO + ms(20)).await;
        Ok::<_, Busy>(7)
    });
    assert_eq!(time.time.run(call).unwrap(), 7);
}

#[test]
fn poll_is_what_a_call_needs_no_runtime_for() {
    let time = Manual::new();
    let retry = handle(unbounded(1), &time);
    let mut call = Stepper::new(&time, retry.run(|_| ready(Ok::<_, Busy>(7))));
    assert!(matches!(call.poll(), Poll::Ready(Ok(7))));
}
