//! What an operation is told about the attempt it makes.

use std::time::Duration;

use relent_core::{Failure, Launch, Past};

/// One attempt, as the operation sees it.
///
/// ```
/// use relent::{Attempt, Retry};
///
/// # struct Orders;
/// # impl Orders {
/// #     fn find(&self, key: u64) -> Option<u32> { Some(key as u32) }
/// #     fn insert(&self, _: u64) -> Result<u32, std::io::Error> { Err(std::io::ErrorKind::TimedOut.into()) }
/// # }
/// # let orders = Orders;
/// // An order whose number is ours: look before it is placed again.
/// let place = |attempt: Attempt| {
///     if attempt.may_have_been_executed() && let Some(placed) = orders.find(7) {
///         return Ok(placed);
///     }
///     orders.insert(7)
/// };
/// # let retry = Retry::new(relent::Policy::constant(std::time::Duration::ZERO).build().unwrap());
/// assert_eq!(retry.run_blocking(place).unwrap(), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    number: u32,
    /// In nanoseconds, `u64::MAX` without a bound: an attempt is copied on every call.
    time: u64,
    past: Past,
}

impl Attempt {
    pub(crate) fn new(launch: &Launch) -> Attempt {
        let bound = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Attempt { number: launch.number, time: launch.time.map_or(u64::MAX, bound), past: launch.past }
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
        (self.time != u64::MAX).then(|| Duration::from_nanos(self.time))
    }

    /// What the attempt before this one came to; `None` for the first. A hedge sees what was known when it started.
    #[must_use]
    pub fn last_failure(&self) -> Option<Failure> {
        self.past.last_failure()
    }

    /// Whether any attempt before this one may have been executed although no answer came. The work may be done already:
    /// look first, where that is possible.
    #[must_use]
    pub fn may_have_been_executed(&self) -> bool {
        self.past.may_have_been_executed()
    }
}
