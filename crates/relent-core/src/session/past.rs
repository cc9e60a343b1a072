//! What an attempt is told of the attempts before it, in a few bytes.

use core::fmt;
use core::time::Duration;

use crate::time::nanos;
use crate::{Cause, Failure, GrpcCode, Health, Hint, StopScope, Verdict};

/// The attempts before this one: the last failure among them, and whether any may have been executed.
///
/// Twelve bytes, so that telling it costs a first attempt nothing.
///
/// ```
/// use relent_core::Past;
///
/// assert_eq!(Past::NONE.last_failure(), None);
/// assert!(!Past::NONE.may_have_been_executed());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Past {
    /// The hint in nanoseconds, in halves: so that an attempt, which has a number beside it, has no gap.
    hint: [u32; 2],
    /// See `pack`; 0: no attempt has failed yet.
    bits: u32,
}

const VERDICT: u32 = 0;
const CAUSE: u32 = 3;
const HEALTH: u32 = 6;
const SCOPE: u32 = 8;
const AMBIGUOUS: u32 = 1 << 10;
const HINTED: u32 = 1 << 11;
const EXACT: u32 = 1 << 12;
const FREE: u32 = 1 << 13;
const NOT_REPLAYABLE: u32 = 1 << 14;
const ANY_AMBIGUOUS: u32 = 1 << 15;
const STATUS: u32 = 16;

impl Past {
    /// No attempt was made before.
    pub const NONE: Past = Past { hint: [0; 2], bits: 0 };

    /// The failure of the attempt before; `None` for the first one. What that had used of its attempt credit is not kept.
    /// A throttled one has its hint in the verdict too.
    #[must_use]
    pub fn last_failure(&self) -> Option<Failure> {
        let hint = self.hint();
        let verdict = match (self.bits >> VERDICT) & 7 {
            0 => return None,
            1 => Verdict::Transient,
            2 => Verdict::Throttled { hint },
            3 => Verdict::Unprocessed,
            4 => Verdict::Permanent,
            _ => Verdict::Rejected,
        };
        let mut failure = Failure::new(verdict).cause(self.cause()).health(self.health());
        failure.ambiguous = self.has(AMBIGUOUS);
        failure.free = self.has(FREE);
        failure.replayable = !self.has(NOT_REPLAYABLE);
        failure.hint = hint;
        failure.stop = match (self.bits >> SCOPE) & 3 {
            0 => None,
            1 => Some(StopScope::Host),
            2 => Some(StopScope::Service),
            _ => Some(StopScope::Chain),
        };
        Some(failure)
    }

    /// Whether any attempt before this one may have been executed although no answer came: then the operation had better
    /// look whether its work is done already.
    #[must_use]
    #[inline]
    pub const fn may_have_been_executed(&self) -> bool {
        self.has(ANY_AMBIGUOUS)
    }

    /// After this failure.
    pub(super) fn of(failure: &Failure) -> Past {
        let hint = failure.hint.map_or(0, |hint| nanos(hint.wait));
        Past { hint: [hint as u32, (hint >> 32) as u32], bits: pack(failure) }
    }

    /// ... and with this said of all attempts.
    pub(super) const fn ambiguous(mut self, any: bool) -> Past {
        if any {
            self.bits |= ANY_AMBIGUOUS;
        }
        self
    }

    const fn has(self, bit: u32) -> bool {
        self.bits & bit != 0
    }

    pub(super) fn hint(self) -> Option<Hint> {
        let wait = u64::from(self.hint[0]) | u64::from(self.hint[1]) << 32;
        self.has(HINTED).then(|| Hint { wait: Duration::from_nanos(wait), exact: self.has(EXACT) })
    }

    fn cause(self) -> Cause {
        match (self.bits >> CAUSE) & 7 {
            0 => Cause::Other,
            1 => Cause::Connect,
            2 => Cause::Reset,
            3 => Cause::Timeout,
            4 => Cause::Status((self.bits >> STATUS) as u16),
            _ => GrpcCode::numbered(u64::from(self.bits >> STATUS)).map_or(Cause::Other, Cause::Grpc),
        }
    }

    fn health(self) -> Health {
        match (self.bits >> HEALTH) & 3 {
            0 => Health::Unknown,
            1 => Health::Good,
            _ => Health::Bad,
        }
    }
}

fn pack(failure: &Failure) -> u32 {
    let verdict = match failure.verdict {
        Verdict::Transient => 1,
        Verdict::Throttled { .. } => 2,
        Verdict::Unprocessed => 3,
        Verdict::Permanent => 4,
        Verdict::Rejected => 5,
    };
    let cause = match failure.cause {
        Cause::Other => 0,
        Cause::Connect => 1,
        Cause::Reset => 2,
        Cause::Timeout => 3,
        Cause::Status(code) => 4 | u32::from(code) << (STATUS - CAUSE),
        Cause::Grpc(code) => 5 | u32::from(code.number()) << (STATUS - CAUSE),
    };
    let health = match failure.health {
        Health::Unknown => 0,
        Health::Good => 1,
        Health::Bad => 2,
    };
    let scope = match failure.stop {
        None => 0,
        Some(StopScope::Host) => 1,
        Some(StopScope::Service) => 2,
        Some(StopScope::Chain) => 3,
    };
    let flags = [
        (failure.ambiguous, AMBIGUOUS),
        (failure.hint.is_some(), HINTED),
        (failure.hint.is_some_and(|hint| hint.exact), EXACT),
        (failure.free, FREE),
        (!failure.replayable, NOT_REPLAYABLE),
    ];
    let flags: u32 = flags.into_iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum();
    verdict << VERDICT | cause << CAUSE | health << HEALTH | scope << SCOPE | flags
}

impl fmt::Debug for Past {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Past")
            .field("last_failure", &self.last_failure())
            .field("may_have_been_executed", &self.may_have_been_executed())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(failure: Failure) {
        assert_eq!(Past::of(&failure).last_failure(), Some(failure));
        assert!(!Past::of(&failure).may_have_been_executed());
        assert!(Past::of(&failure).ambiguous(true).may_have_been_executed());
    }

    #[test]
    fn every_failure_comes_back_as_it_was() {
        let hint = Hint::at_least(Duration::from_nanos(u64::MAX - 1));
        for verdict in [
            Verdict::Transient,
            Verdict::Throttled { hint: None },
            Verdict::Throttled { hint: Some(Hint::exactly(Duration::ZERO)) },
            Verdict::Unprocessed,
            Verdict::Permanent,
            Verdict::Rejected,
        ] {
            let failure = Failure::new(verdict);
            check(failure);
            for cause in [
                Cause::Other,
                Cause::Connect,
                Cause::Reset,
                Cause::Timeout,
                Cause::Status(0),
                Cause::Status(u16::MAX),
                Cause::Grpc(GrpcCode::Unavailable),
            ] {
                check(failure.cause(cause));
            }
            for health in [Health::Good, Health::Bad, Health::Unknown] {
                check(failure.health(health).free());
            }
            for scope in [StopScope::Host, StopScope::Service, StopScope::Chain] {
                check(failure.stop(scope).not_replayable());
            }
            check(failure.ambiguous());
        }
        check(Failure::new(Verdict::Throttled { hint: Some(hint) }));
        check(Failure::new(Verdict::Transient).hint(hint));
    }

    #[test]
    fn it_is_small() {
        assert_eq!((size_of::<Past>(), align_of::<Past>()), (12, 4));
    }
}
