//! The arguments as typed. What they mean is worked out in `command`.

mod policy;
mod proxy;
mod value;

pub(crate) use policy::{Bound, PolicyArgs, Standard};
pub(crate) use proxy::ProxyArgs;
pub(crate) use value::ExitCodes;

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::command::DemoArgs;
use value::{PerSecond, duration, per_second};

/// Retries that know when to stop
#[derive(Debug, Parser)]
#[command(name = "relent", version, after_help = EXAMPLES_AND_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES_AND_CODES: &str = "\
Examples:
  relent demo                                  what retries do to a struggling service, live
  relent run -- curl --fail https://example.org/health
  relent explain --attempts 9 --base 100ms --cap 10s
  relent proxy --listen 127.0.0.1:8080 --upstream http://127.0.0.1:9000

Exit codes:
    0  done
    1  it could not be done
    2  wrong usage or configuration; nothing was run
  124  run: the last attempt was ended by --attempt-timeout or --deadline
  126  run: the command can't be executed
  127  run: there is no such command
  128+n  ended by signal n
  any  run: the code of the command's last attempt";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Run(RunArgs),
    Explain(ExplainArgs),
    Proxy(ProxyArgs),
}

/// Run a command, and again while it fails
///
/// The command's output and its last exit code are passed through. One line per attempt goes to stderr.
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// Exit codes to retry on, such as 1,75 or 1-9 [default: any but 0; never 126 and 127]
    #[arg(long, value_name = "CODES")]
    pub(crate) retry_on_exit: Option<ExitCodes>,

    /// How long after SIGTERM an attempt that ran out of time gets SIGKILL [default: 5s]
    #[arg(long, allow_hyphen_values = true, value_name = "DURATION", value_parser = duration, default_value = "5s", hide_default_value = true)]
    pub(crate) kill_after: Duration,

    /// What the command reads [default: keep for a pipe or a socket, inherit otherwise]
    #[arg(long, value_enum, value_name = "SOURCE")]
    pub(crate) stdin: Option<StdinSource>,

    /// No progress lines
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// The command and its arguments, best after --
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

/// What a retried command reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StdinSource {
    /// relent's own; a file is rewound before each attempt, what was read from a pipe is gone
    Inherit,
    /// Handed on, and kept up to 64 KiB for the next attempt; after more, no retry follows
    Keep,
    /// Nothing: for `while read` loops, whose input the command must not eat
    Null,
}

const RUN_EXAMPLES: &str = "\
Unless a flag says otherwise: 3 attempts; 100 ms, doubling up to 10 s, full jitter; no attempt timeout, no
deadline, no budget. An attempt that runs out of time is ended with its whole process group. SIGINT, SIGTERM and
other signals are handed on to the command, and no attempt follows. RELENT_ATTEMPT tells the command its number.

Examples:
  relent run -- curl --fail https://example.org/health
  relent run --attempts 5 --base 1s --cap 30s -- ./deploy.sh staging
  relent run --attempt-timeout 10s --deadline 1m -- pg_isready -h db
  relent run --retry-on-exit 75 -- sendmail -q
  echo \"$report\" | relent run -- ./upload.sh        # up to 64 KiB of a pipe are kept for the repeats";

/// Show what a policy does, in numbers, before it does it
///
/// Takes a policy from a file, or from flags, or the defaults.
#[derive(Debug, clap::Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// A policy file
    pub(crate) file: Option<PathBuf>,

    /// The policy's name in FILE; not needed where there is only one
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,

    /// How to print it
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,

    /// Processes with this policy, each with a budget of its own
    #[arg(long, value_name = "N", requires = "rps", help_heading = "Fleet")]
    pub(crate) processes: Option<NonZeroU32>,

    /// Calls per second that each process makes
    #[arg(long, value_name = "R", allow_hyphen_values = true, value_parser = per_second, requires = "processes", help_heading = "Fleet")]
    pub(crate) rps: Option<PerSecond>,

    #[command(flatten)]
    pub(crate) flags: PolicyArgs,
}

/// How to print a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  relent explain                                            the defaults
  relent explain --attempts 9 --base 100ms --cap 10s        a policy by flags
  relent explain relent.toml --policy api                   a policy from a file
  relent explain relent.toml --policy api --format json
  relent explain --processes 1000 --rps 1                   what share and reserve amount to over a fleet";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use relent_core::defaults;

    use crate::render::length;

    #[test]
    fn the_arguments_are_consistent() {
        super::Args::command().debug_assert();
    }

    #[test]
    fn the_help_quotes_the_defaults() {
        let help = super::Args::command().find_subcommand_mut("explain").unwrap().render_help().to_string();
        for (flag, default) in [
            ("--attempts", defaults::ATTEMPTS.to_string()),
            ("--base", length(defaults::BASE)),
            ("--cap", length(defaults::CAP)),
            ("--multiplier", defaults::MULTIPLIER.to_string()),
            ("--attempt-timeout", length(defaults::ATTEMPT_TIMEOUT)),
            ("--deadline", length(defaults::DEADLINE)),
            ("--min-attempt-time", length(defaults::MIN_ATTEMPT_TIME)),
            ("--budget-ratio", defaults::BUDGET_RATIO.to_string()),
            ("--budget-window", length(defaults::BUDGET_WINDOW)),
            ("--reserve", format!("attempts - 1, at least {}", defaults::BUDGET_RESERVE)),
            ("--reserve-per-second", defaults::RESERVE_PER_SECOND.to_string()),
        ] {
            let line = help.lines().find(|line| line.trim_start().starts_with(&format!("{flag} "))).unwrap();
            let quote = line.split_once("[default: ").unwrap().1;
            let quoted = quote.split_once([';', ']']).unwrap().0;
            assert_eq!(quoted, default, "{flag}");
        }
    }
}
