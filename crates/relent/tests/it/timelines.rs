//! The timelines, on every driver of the library: on virtual time without a runtime, on tokio, blocking, and as a tower
//! layer.

use std::convert::Infallible;
use std::time::Duration;

use relent::timer::{BlockingTimer, Clock, Manual, SystemTimer, Timer};
use relent::{Event, Failure, Policy, Repeat, Retry, RetryError, Stop, Verdict};
use relent_testkit::{ScriptedOutcome, Stage, Timeline, Trace, check};

#[test]
fn the_async_driver_follows_every_timeline() {
    check("async", |timeline| {
        let time = Manual::new();
        let trace = time.run(asynchronous(timeline, time.clone()));
        assert_eq!(time.sleepers(), 0, "{}: somebody still sleeps", timeline.path);
        trace
    });
}

#[test]
fn the_async_driver_follows_every_timeline_on_tokio() {
    check("tokio", |timeline| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.unwrap().block_on(asynchronous(timeline, SystemTimer))
    });
}

#[test]
fn the_blocking_driver_follows_every_timeline() {
    check("blocking", |timeline| blocking(timeline, &Manual::new()));
}

#[test]
#[cfg(feature = "tower")]
fn the_tower_layer_follows_every_timeline() {
    check("tower", |timeline| {
        let time = Manual::new();
        let trace = time.run(layered(timeline, time.clone()));
        assert_eq!(time.sleepers(), 0, "{}: somebody still sleeps", timeline.path);
        trace
    });
}

/// What an attempt comes to when it fails.
#[derive(Debug)]
struct Scripted(Failure);

type Meaning = fn(&Scripted) -> Failure;

fn handle<T: Clock>(timeline: &Timeline, time: &T, stage: &Stage) -> Retry<Meaning, T> {
    let (clock, listening) = (time.clone(), stage.clone());
    let meaning: Meaning = |error| error.0;
    Retry::with_timer(timeline.policy.clone(), time.clone())
        .seed(timeline.seed)
        .on_event(move |event| {
            if let Event::Waiting { wait, origin, .. } = event {
                let now = clock.now();
                listening.wait(now, now + *wait, *origin);
            }
        })
        .classify(meaning)
}

async fn asynchronous<T: Timer>(timeline: &Timeline, time: T) -> Trace {
    let start = time.now();
    let stage = Stage::new(timeline, start);
    let retry = handle(timeline, &time, &stage);
    let calls = async {
        for call in &timeline.calls {
            time.sleep_until(start + call.at.unwrap_or_default()).await;
            stage.begin(call, time.now());
            let run = retry.run(|attempt| scripted_attempt(stage.clone(), time.clone(), attempt.number()));
            let outcome = match timeline.repeat {
                Repeat::Yes => run.await,
                _ => run.only_if_unprocessed().await,
            };
            finish(&stage, &time, &outcome);
        }
    };
    under_the_layers_above(timeline, &time, calls).await;
    stage.trace()
}

#[cfg(feature = "tower")]
async fn layered<T: Timer>(timeline: &Timeline, time: T) -> Trace {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tower::{Layer, Service, ServiceExt, service_fn};

    let start = time.now();
    let stage = Stage::new(timeline, start);
    let attempts = Arc::new(AtomicU32::new(0));
    let service = service_fn({
        let (stage, time, attempts) = (stage.clone(), time.clone(), attempts.clone());
        move |()| scripted_attempt(stage.clone(), time.clone(), attempts.fetch_add(1, Ordering::Relaxed) + 1)
    });
    let mut service = relent::RetryLayer::new(handle(timeline, &time, &stage)).layer(service);
    let calls = async {
        for call in &timeline.calls {
            time.sleep_until(start + call.at.unwrap_or_default()).await;
            stage.begin(call, time.now());
            attempts.store(0, Ordering::Relaxed);
            let run = service.ready().await.expect("a function is always ready").call(());
            let outcome = match timeline.repeat {
                Repeat::Yes => run.await,
                _ => run.only_if_unprocessed().await,
            };
            finish(&stage, &time, &outcome);
        }
    };
    under_the_layers_above(timeline, &time, calls).await;
    stage.trace()
}

async fn scripted_attempt<T: Timer>(stage: Stage, time: T, number: u32) -> Result<(), Scripted> {
    let now = time.now();
    let attempt = stage.launch(number, now);
    time.sleep_until(now + attempt.takes).await;
    match attempt.outcome {
        ScriptedOutcome::Succeeds => Ok(()),
        ScriptedOutcome::Fails { failure, used } => {
            let _ = layer_below(used, &time).run(|_| async { Err::<(), _>(Failed) }).await;
            Err(Scripted(failure))
        }
    }
}

async fn under_the_layers_above<T: Timer>(timeline: &Timeline, time: &T, calls: impl Future<Output = ()>) {
    if !timeline.above.grants() {
        return calls.await;
    }
    let policy = timeline.above.policy().expect("checked when the script was read");
    let mut calls = Some(calls);
    let attempt = move |_| {
        let calls = calls.take().expect("its first attempt succeeds");
        async move {
            calls.await;
            Ok::<(), Infallible>(())
        }
    };
    Retry::with_timer(policy, time.clone()).run(attempt).await.expect("it succeeds");
}

fn blocking(timeline: &Timeline, time: &Manual) -> Trace {
    let start = time.now();
    let stage = Stage::new(timeline, start);
    let retry = handle(timeline, time, &stage);
    let calls = || {
        for call in &timeline.calls {
            time.block_until(start + call.at.unwrap_or_default());
            stage.begin(call, time.now());
            let attempt =
                |attempt: relent::Attempt| scripted_blocking_attempt(&stage, time, attempt.number());
            let outcome = match timeline.repeat {
                Repeat::Yes => retry.run_blocking(attempt),
                _ => retry.run_blocking_only_if_unprocessed(attempt),
            };
            finish(&stage, time, &outcome);
        }
    };
    if timeline.above.grants() {
        let policy = timeline.above.policy().expect("checked when the script was read");
        let above = Retry::with_timer(policy, time.clone());
        let attempt = |_| {
            calls();
            Ok::<(), Infallible>(())
        };
        above.run_blocking(attempt).expect("it succeeds");
    } else {
        calls();
    }
    stage.trace()
}

fn scripted_blocking_attempt(stage: &Stage, time: &Manual, number: u32) -> Result<(), Scripted> {
    let attempt = stage.launch(number, time.now());
    time.advance(attempt.takes);
    match attempt.outcome {
        ScriptedOutcome::Succeeds => Ok(()),
        ScriptedOutcome::Fails { failure, used } => {
            let _ = layer_below(used, time).run_blocking(|_| Err::<(), _>(Failed));
            Err(Scripted(failure))
        }
    }
}

#[derive(Debug)]
struct Failed;

/// A handle whose calls make `used` extra attempts in vain, as far as they are granted.
fn layer_below<T: Clock>(used: u32, time: &T) -> Retry<fn(&Failed) -> Verdict, T> {
    let policy =
        Policy::constant(Duration::ZERO).attempts(used + 1).no_budget().no_attempt_timeout().no_deadline();
    Retry::with_timer(policy.build().unwrap(), time.clone()).classify(|_: &Failed| Verdict::Transient)
}

fn finish<T: Clock>(stage: &Stage, time: &T, outcome: &Result<(), RetryError<Scripted>>) {
    match outcome {
        Ok(()) => stage.succeed(time.now()),
        Err(error) => {
            let stop = Stop {
                reason: error.reason(),
                attempts: error.attempts(),
                ambiguous: error.ambiguous(),
                hint: error.hint(),
            };
            stage.stop(time.now(), &stop);
        }
    }
}
