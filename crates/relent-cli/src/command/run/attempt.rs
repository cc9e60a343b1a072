//! One attempt: the command started, fed, waited for, and ended if its time is up.

use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::time::Duration;

use relent::timer::{Clock, SystemTimer, Timer};
use relent::{Attempt, Failure as Outcome, Policy};
use tokio::process::{Child, Command};

use super::ended::Ended;
use super::group::Group;
use super::progress::Progress;
use super::stage::Stage;
use super::stdin::Input;
use crate::args::{ExitCodes, RunArgs};

/// What all attempts of a call have in common.
#[derive(Debug)]
pub(super) struct Attempts<'a> {
    command: &'a [OsString],
    retry_on: Option<&'a ExitCodes>,
    timeout: Option<Duration>,
    grace: Duration,
    stage: &'a Stage,
    input: Input,
    progress: Progress,
}

impl<'a> Attempts<'a> {
    pub(super) fn new(
        args: &'a RunArgs,
        policy: &Policy,
        stage: &'a Stage,
        input: Input,
        progress: Progress,
    ) -> Attempts<'a> {
        Attempts {
            command: &args.command,
            retry_on: args.retry_on_exit.as_ref(),
            timeout: policy.attempt_timeout(),
            grace: args.kill_after,
            stage,
            input,
            progress,
        }
    }

    /// What a failed attempt means for another one.
    pub(super) fn classify(&self, ended: &Ended) -> Outcome {
        let outcome = ended.classify(self.retry_on);
        if self.input.is_whole() { outcome } else { outcome.not_replayable() }
    }

    /// Makes one. Once the call is called off it does not end, and whoever calls it off takes over.
    pub(super) async fn make(&self, attempt: Attempt) -> Result<(), Ended> {
        if self.stage.is_cancelled() {
            return pending().await;
        }
        let ended = match self.start(attempt.number()) {
            Ok(running) => running.ended(self.timeout, &self.input).await,
            Err(error) => Some(Ended::NotStarted(error)),
        };
        let cancelled = self.stage.leave(ended.as_ref());
        let Some(ended) = ended else {
            self.progress.succeeded(attempt.number());
            return Ok(());
        };
        self.progress.ended(&ended);
        match ended.exit(&self.command[0]) {
            Ok(exit) if cancelled => {
                self.stage.keep_last(exit);
                pending().await
            }
            _ => Err(ended),
        }
    }

    fn start(&self, number: u32) -> io::Result<Running<'a>> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).env("RELENT_ATTEMPT", number.to_string());
        let child = command.process_group(0).stdin(self.input.stdio()?).spawn()?;
        let group = Group::of(&child).expect("a child that was not waited for has an id");
        self.stage.enter(group);
        Ok(Running { stage: self.stage, child: Some(child), group, grace: self.grace })
    }
}

/// A command that runs. Dropped before its end, it is ended with its whole group, and the stage told to wait for that.
struct Running<'a> {
    stage: &'a Stage,
    child: Option<Child>,
    group: Group,
    grace: Duration,
}

impl Running<'_> {
    /// Waits for its end, or brings it about when its time is up. `None`: it succeeded.
    async fn ended(mut self, timeout: Option<Duration>, input: &Input) -> Option<Ended> {
        let child = self.child.as_mut()?;
        let feed = input.feed(child.stdin.take());
        let in_time = tokio::select! {
            // At equal times its own end beats the clock.
            biased;
            status = child.wait() => Some(status),
            () = feed => None,
            () = time(timeout) => None,
        };
        let ended = match in_time {
            Some(Ok(status)) => Ended::of(status),
            Some(Err(error)) => Some(Ended::NotStarted(error)),
            None => {
                self.group.end(child, self.grace).await;
                Some(Ended::OutOfTime)
            }
        };
        self.child = None;
        ended
    }
}

async fn time(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => SystemTimer.sleep_until(SystemTimer.now() + timeout).await,
        None => pending().await,
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let (group, grace) = (self.group, self.grace);
            self.stage.set_ending(tokio::spawn(async move { group.end(&mut child, grace).await }));
        }
    }
}
