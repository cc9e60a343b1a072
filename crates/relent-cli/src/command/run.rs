//! `relent run`: a command, and again while it fails.
//!
//! The library's own driver decides; here are only the parts that a command has and a function has not: a process group to
//! end, signals to hand on, a terminal to lend, an input that can be read once.
//!
//! The command runs in a process group of its own, so that an attempt that ran out of time ends as a whole, and nothing
//! else with it. What the terminal sends to relent is handed on to that group.

mod attempt;
mod ended;
mod group;
mod progress;
mod signals;
mod stage;
mod stdin;
mod terminal;

use relent::{Policy, Retry, RetryError, StopReason};

use crate::args::{RunArgs, Standard};
use crate::exit::{Exit, Failure};
use attempt::Attempts;
use ended::Ended;
use progress::Progress;
use signals::Signals;
use stage::Stage;
use stdin::Input;

/// Runs the command until it succeeds or the policy says stop.
pub(crate) fn run(args: &RunArgs) -> Result<Exit, Failure> {
    let policy = args.policy.build(Standard::Run)?;
    let cannot = |what: &str, error: std::io::Error| Failure::failed(format!("{what}: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot("can't start", error))?;
    let input =
        Input::choose(args.stdin, policy.attempts()).map_err(|error| cannot("can't look at stdin", error))?;
    let exit = runtime.block_on(async {
        let mut signals = Signals::listen().map_err(|error| cannot("can't listen to signals", error))?;
        let stage = Stage::new();
        tokio::select! {
            // A signal that came with the command's end is heard first.
            biased;
            never = stage.hand_on(&mut signals) => match never {},
            exit = attempts(args, policy, &stage, input) => exit,
        }
    });
    // A thread may still be reading stdin; nobody waits for what it reads.
    runtime.shutdown_background();
    exit
}

/// All attempts, and what they come to.
async fn attempts(args: &RunArgs, policy: Policy, stage: &Stage, input: Input) -> Result<Exit, Failure> {
    let progress = Progress::new(args.quiet, policy.attempts());
    let listener = progress.clone();
    let attempts = Attempts::new(args, &policy, stage, input, progress);
    // A command is no future that can be dropped: it takes its time to end. So the attempt itself keeps its timeout.
    let driven = args.policy.without_attempt_timeout().build(Standard::Run)?;
    let outcome = Retry::new(driven)
        .on_event(move |event| listener.hear(event))
        .classify(|ended: &Ended| attempts.classify(ended))
        .run(|attempt| attempts.make(attempt))
        .until(stage.cancelled())
        .await;
    stage.last_group_ended().await;
    match outcome {
        Ok(()) => Ok(Exit::Success),
        Err(error) => exit(&args.command[0], stage, &error),
    }
}

fn exit(command: &std::ffi::OsStr, stage: &Stage, error: &RetryError<Ended>) -> Result<Exit, Failure> {
    if error.reason() == StopReason::Cancelled {
        return Ok(stage.cancelled_exit());
    }
    match error.last() {
        _ if error.last_timed_out() => Ok(Exit::TimedOut),
        Some(ended) => ended.exit(command),
        None => Ok(Exit::Failed),
    }
}
