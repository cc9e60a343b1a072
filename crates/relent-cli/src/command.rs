//! The commands as meant: each turns its arguments into work and an exit code.

mod demo;
mod explain;
#[cfg(unix)]
mod proxy;
#[cfg(unix)]
mod run;

pub(crate) use demo::DemoArgs;

use crate::args::Command;
use crate::exit::{Exit, Failure};

/// Does what was asked.
pub(crate) fn run(command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Demo(args) => demo::demo(args),
        Command::Explain(args) => explain::explain(args),
        #[cfg(unix)]
        Command::Proxy(args) => proxy::proxy(args),
        #[cfg(not(unix))]
        Command::Proxy(_) => Err(Failure::failed("relent proxy needs signals, which this system has not")),
        #[cfg(unix)]
        Command::Run(args) => run::run(args),
        #[cfg(not(unix))]
        Command::Run(_) => {
            Err(Failure::failed("relent run needs process groups and signals, which this system has not"))
        }
    }
}
