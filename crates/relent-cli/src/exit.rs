//! How the program ends: every exit code stands in this table, and nowhere else.
//!
//! `relent run` passes the command's own code through. What `relent` says for itself follows the shell and timeout(1), so
//! that scripts need no new table.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::render;

/// An exit code that `relent` itself chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Success,
    /// It could not be done, for a reason outside the arguments.
    Failed,
    /// Wrong usage or configuration: nothing was run.
    Usage,
    /// `run`: the last attempt was ended by the attempt timeout or the deadline, as timeout(1) says it.
    TimedOut,
    /// `run`: the command exists and can't be executed.
    NotExecutable,
    /// `run`: there is no such command.
    NotFound,
    /// `run`: the code of the command, passed through.
    Command(u8),
    /// A signal ended the command, or `relent` while no command ran.
    Signal(u8),
}

impl Exit {
    /// The code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::TimedOut => 124,
            Exit::NotExecutable => 126,
            Exit::NotFound => 127,
            Exit::Command(code) => code,
            Exit::Signal(signal) => 128_u8.saturating_add(signal),
        }
    }
}

/// Why a command could not do its work: a text for the user, and the code to leave with.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    text: String,
}

impl Failure {
    /// To leave with `exit`; `text` says what, where, and how to mend it.
    pub(crate) fn new(exit: Exit, text: String) -> Failure {
        Failure { exit, text }
    }

    /// Wrong usage or configuration; `text` says what, where, and how to mend it.
    pub(crate) fn usage(text: impl fmt::Display) -> Failure {
        Failure { exit: Exit::Usage, text: text.to_string() }
    }

    /// Something outside the arguments went wrong.
    pub(crate) fn failed(text: impl fmt::Display) -> Failure {
        Failure { exit: Exit::Failed, text: text.to_string() }
    }
}

/// A reader that went away (`relent explain | head -1`) wanted no more: not an error.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        let exit = if error.kind() == io::ErrorKind::BrokenPipe { Exit::Success } else { Exit::Failed };
        Failure { exit, text: format!("can't write the output: {error}") }
    }
}

/// Prints what the argument parser has to say, help on stdout and errors on stderr.
pub(crate) fn answered(answer: &clap::Error) -> Result<Exit, Failure> {
    let exit = if answer.use_stderr() { Exit::Usage } else { Exit::Success };
    answer.print()?;
    Ok(exit)
}

/// Says on stderr why it failed, if it did, and turns the end into the process's code.
pub(crate) fn finish(ended: Result<Exit, Failure>) -> ExitCode {
    let exit = ended.unwrap_or_else(|failure| {
        if failure.exit != Exit::Success {
            // Nobody is left to tell if stderr is gone, too.
            let _ = writeln!(io::stderr(), "{} {}", render::error_label(), failure.text);
        }
        failure.exit
    });
    ExitCode::from(exit.code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_count_from_128() {
        assert_eq!(Exit::Signal(15).code(), 143);
        assert_eq!(Exit::Signal(255).code(), 255);
    }
}
