//! The commands as meant: each turns its arguments into work and an exit code.

mod explain;

use crate::args::Command;
use crate::exit::{Exit, Failure};

/// Does what was asked.
pub(crate) fn run(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Explain(args) => explain::explain(args),
        Command::Run(_) => Err(Failure::failed("not built yet")),
    }
}
