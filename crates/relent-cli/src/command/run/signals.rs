//! The signals that relent hears, to hand them on.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use nix::sys::signal::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What is heard. SIGCHLD tells of a stopped command; the rest is for the command.
const HEARD: [Signal; 10] = [
    Signal::SIGCHLD,
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// Whether no attempt follows one of these.
pub(super) fn ends_the_call(signal: Signal) -> bool {
    matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT)
}

/// The signals, as they come.
#[derive(Debug)]
pub(super) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Listens from now on; needs a runtime. What was ignored when relent started stays so, for the command too: `nohup`
    /// and shells without job control mean it.
    pub(super) fn listen() -> io::Result<Signals> {
        let ignored = ignored();
        let heard = HEARD.into_iter().filter(|signal| ignored & (1 << (*signal as i32 - 1)) == 0);
        let listen = |signal| Ok((signal, unix::signal(SignalKind::from_raw(signal as i32))?));
        heard.map(listen).collect::<io::Result<_>>().map(Signals)
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The signals that are ignored now, bit n − 1 for signal n; none where the system does not say it in a file.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
