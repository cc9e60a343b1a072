//! What an operation is told about the attempt it makes.

use std::time::Duration;

use relent_core::Launch;

/// One attempt, as the operation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    number: u32,
    time: Option<Duration>,
}

impl Attempt {
    pub(crate) fn new(launch: &Launch) -> Attempt {
        Attempt { number: launch.number, time: launch.time }
    }

    /// 1 for the first.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Whether this is not the first.
    #[must_use]
    pub fn is_retry(&self) -> bool {
        self.number > 1
    }

    /// How long this attempt may take, from its start: the attempt timeout, or what is left before the deadline.
    /// `None` if neither bounds it. A blocking operation has to keep to it by itself.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.time
    }
}
