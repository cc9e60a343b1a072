//! `relent demo`: picks how to show the run, and leaves the terminal as it was, however it ends.

use std::future::{Future, poll_fn};
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::task::Poll;

use crate::args::Format;
use crate::demo::{self, Colour, Report, Scenario, View};
use crate::exit::{Exit, Failure};

/// See what retries do to a struggling service, live and measured
///
/// Four clients and four small servers in one process, on 127.0.0.1 only; 41 seconds, of which ten are an outage. One
/// client never retries, two have the usual loops, one has relent's defaults.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {
    /// Where arrivals, service times and faults come from; timings are measured and differ from run to run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// How to print it; json prints the figures alone
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

const EXAMPLES: &str = "\
Examples:
  relent demo
  relent demo --seed 7
  relent demo --format json > figures.json";

/// SIGINT, by its number: the same on every system that has it.
const SIGINT: u8 = 2;

/// Runs the demo.
pub(crate) fn demo(args: &DemoArgs) -> Result<Exit, Failure> {
    #[cfg(unix)]
    allow_open_files()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format_args!("can't start the demo: {error}")))?;
    let ended = runtime.block_on(async {
        let report = match args.format {
            Format::Text => unless_interrupted(shown(args.seed)).await?,
            Format::Json => unless_interrupted(quiet(args.seed)).await?,
        };
        let Some(report) = report else { return Ok(Exit::Signal(SIGINT)) };
        let text = match args.format {
            Format::Text => report.text(),
            Format::Json => report.json(),
        };
        io::stdout().write_all(text.as_bytes())?;
        Ok(Exit::Success)
    });
    // The servers have no end of their own.
    runtime.shutdown_background();
    ended
}

async fn shown(seed: u64) -> io::Result<Report> {
    let scenario = Scenario::shown(seed);
    let mut out = io::stdout();
    writeln!(out, "{}", demo::opening(&scenario))?;
    let mut view = if is_live() { View::live(out, colour()) } else { View::plain(out) };
    demo::run(scenario, &mut view).await
}

async fn quiet(seed: u64) -> io::Result<Report> {
    let scenario = Scenario::shown(seed);
    if io::stderr().is_terminal() {
        writeln!(io::stderr(), "measuring for {} seconds", scenario.seconds())?;
    }
    demo::run(scenario, &mut View::<io::Stdout>::Quiet).await
}

/// What `work` came to; `None` (and the work dropped, which restores the terminal) at Ctrl-C.
async fn unless_interrupted<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<Option<T>> {
    let mut work = pin!(work);
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(output.map(Some)),
        Poll::Pending => interrupt.as_mut().poll(cx).map(|caught| caught.map(|()| None)),
    })
    .await
}

/// Both ends of every connection are in this process: some 500 files at the worst, where macOS grants 256 unasked.
#[cfg(unix)]
fn allow_open_files() -> Result<(), Failure> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    const FILES: u64 = 1024;
    let refused = |error| Failure::failed(format_args!("can't open {FILES} files: {error}"));
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(refused)?;
    if soft >= FILES {
        return Ok(());
    }
    if hard < FILES {
        let text = format_args!(
            "the demo opens up to {FILES} files and may open {hard}; raise that with `ulimit -n {FILES}`"
        );
        return Err(Failure::failed(text));
    }
    setrlimit(Resource::RLIMIT_NOFILE, FILES, hard).map_err(refused)
}

/// Whether stdout can be redrawn in place.
fn is_live() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn colour() -> Colour {
    match std::env::var_os("NO_COLOR") {
        Some(set) if !set.is_empty() => Colour::No,
        _ => Colour::Yes,
    }
}
