//! What is shown while the demo runs: a picture that redraws itself on a terminal, plain lines elsewhere.

mod live;
mod plain;

use std::io::{self, Write};

use super::lane::Lane;
use super::ledger::Second;
use super::scenario::Scenario;
use live::Live;
use plain::Plain;

/// The run so far.
#[derive(Clone, Debug)]
pub(crate) struct Progress<'a> {
    pub(crate) scenario: &'a Scenario,
    /// Whole seconds that are over.
    pub(crate) elapsed: usize,
    /// Every lane's sums by second.
    pub(crate) lanes: Vec<(Lane, Vec<Second>)>,
}

/// How a run is shown.
#[derive(Debug)]
pub(crate) enum View<W: Write> {
    Live(Live<W>),
    Plain(Plain<W>),
    Quiet,
}

impl<W: Write> View<W> {
    /// Redraws in place; needs a terminal.
    pub(crate) fn live(out: W, colour: Colour) -> View<W> {
        View::Live(Live::new(out, colour))
    }

    /// A line now and then.
    pub(crate) fn plain(out: W) -> View<W> {
        View::Plain(Plain::new(out))
    }

    /// Another second is over.
    pub(crate) fn second(&mut self, progress: &Progress<'_>) -> io::Result<()> {
        match self {
            View::Live(live) => live.second(progress),
            View::Plain(plain) => plain.second(progress),
            View::Quiet => Ok(()),
        }
    }
}

/// Whether the live picture may be coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Yes,
    No,
}

#[cfg(test)]
mod testing {
    use super::*;

    /// Four lanes whose columns are told apart by their numbers.
    pub(super) fn progress(scenario: &Scenario, elapsed: usize) -> Progress<'_> {
        let lane = |n: u32| {
            let second = |s: usize| {
                let bad = (10..20).contains(&s) || (s >= 20 && n == 1);
                Second { offered: 100 + n, retries: n, good: if bad { 0 } else { 100 - n } }
            };
            (0..scenario.seconds()).map(|s| if s < elapsed { second(s) } else { Second::default() }).collect()
        };
        Progress { scenario, elapsed, lanes: Lane::ALL.into_iter().zip((0..4).map(lane)).collect() }
    }
}
