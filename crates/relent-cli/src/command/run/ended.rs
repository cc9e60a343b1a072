//! What an attempt of a command came to, and what that means for another one.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use nix::sys::signal::Signal;
use relent::{Failure as Outcome, Verdict};

use crate::args::ExitCodes;
use crate::exit::{Exit, Failure};

/// How a failed attempt ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The command exited.
    Code(u8),
    /// A signal ended it.
    Signal(i32),
    /// Its time was up, and its process group was ended.
    OutOfTime,
    /// It could not be started.
    NotStarted(io::Error),
}

impl Ended {
    /// `None`: it succeeded.
    pub(super) fn of(status: ExitStatus) -> Option<Ended> {
        match (status.code(), status.signal()) {
            (Some(0), _) => None,
            // Unix has eight bits for it.
            (Some(code), _) => Some(Ended::Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX))),
            (None, signal) => Some(Ended::Signal(signal.unwrap_or_default())),
        }
    }

    /// What it means for another attempt: `retry_on` lists the codes, or any will do; 126 and 127 fail the same way again.
    pub(super) fn classify(&self, retry_on: Option<&ExitCodes>) -> Outcome {
        let listed = |code: u8| match retry_on {
            Some(codes) => codes.contains(code),
            None => !matches!(code, 126 | 127),
        };
        let retry = match self {
            Ended::OutOfTime => return Outcome::timed_out(),
            Ended::NotStarted(_) => false,
            Ended::Code(code) => listed(*code),
            Ended::Signal(signal) => listed(exit_of_signal(*signal).code()),
        };
        Outcome::new(if retry { Verdict::Transient } else { Verdict::Permanent })
    }

    /// The exit code to leave with when this was the last attempt.
    pub(super) fn exit(&self, command: &OsStr) -> Result<Exit, Failure> {
        match self {
            Ended::Code(code) => Ok(Exit::Command(*code)),
            Ended::Signal(signal) => Ok(exit_of_signal(*signal)),
            Ended::OutOfTime => Ok(Exit::TimedOut),
            Ended::NotStarted(error) => Err(not_started(command, error)),
        }
    }

    /// Whether the keyboard ended it.
    pub(super) fn is_interrupted(&self) -> bool {
        let signals = [Signal::SIGINT as i32, Signal::SIGQUIT as i32];
        match self {
            Ended::Signal(signal) => signals.contains(signal),
            // How a shell reports it.
            Ended::Code(code) => signals.iter().any(|signal| exit_of_signal(*signal).code() == *code),
            _ => false,
        }
    }
}

fn exit_of_signal(signal: i32) -> Exit {
    Exit::Signal(u8::try_from(signal).unwrap_or(u8::MAX))
}

/// As a shell tells the two apart.
fn not_started(command: &OsStr, error: &io::Error) -> Failure {
    let command = command.display();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            Exit::NotFound,
            format!("{command}: there is no such command; check its name, and PATH"),
        ),
        io::ErrorKind::PermissionDenied => Failure::new(
            Exit::NotExecutable,
            format!("{command}: it may not be executed; chmod +x makes a file executable"),
        ),
        _ => Failure::new(Exit::NotExecutable, format!("{command}: it can't be executed: {error}")),
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Code(code) => write!(f, "exit code {code}"),
            Ended::Signal(signal) => match Signal::try_from(*signal) {
                Ok(signal) => write!(f, "killed by {signal}"),
                Err(_) => write!(f, "killed by signal {signal}"),
            },
            Ended::OutOfTime => f.write_str("out of time"),
            Ended::NotStarted(_) => f.write_str("not started"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_codes_are_retried() {
        let verdict = |ended: Ended, codes: Option<&str>| {
            let codes = codes.map(|text| text.parse().unwrap());
            ended.classify(codes.as_ref()).verdict()
        };
        assert_eq!(verdict(Ended::Code(7), None), Verdict::Transient);
        assert_eq!(verdict(Ended::Signal(9), None), Verdict::Transient);
        assert_eq!(verdict(Ended::Code(126), None), Verdict::Permanent);
        assert_eq!(verdict(Ended::Code(127), None), Verdict::Permanent);
        assert_eq!(verdict(Ended::Code(7), Some("1,75")), Verdict::Permanent);
        assert_eq!(verdict(Ended::Signal(15), Some("143")), Verdict::Transient);
        assert_eq!(verdict(Ended::OutOfTime, Some("1")), Verdict::Transient);
    }
}
