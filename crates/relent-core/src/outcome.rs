//! What an attempt came to, and what that means for repeating it.

use core::fmt;
use core::time::Duration;

use crate::GrpcCode;

/// What a failed attempt says about another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It may work next time.
    Transient,
    /// The server is there and asks for a pause. Without a hint the policy's `throttled_base` is taken.
    Throttled {
        /// How long the server asked to wait, if it said.
        hint: Option<Hint>,
    },
    /// It provably was not executed: safe to repeat whatever the operation does.
    Unprocessed,
    /// It will fail the same way again.
    Permanent,
    /// Refused locally, before anything was sent (breaker open, limiter full): never retried at the same level.
    Rejected,
}

impl fmt::Display for Verdict {
    /// The name, in small letters.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Transient => "transient",
            Verdict::Throttled { .. } => "throttled",
            Verdict::Unprocessed => "unprocessed",
            Verdict::Permanent => "permanent",
            Verdict::Rejected => "rejected",
        })
    }
}

/// A wait that the server asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The wait.
    pub wait: Duration,
    /// `false`: a lower bound, spread upwards so that a date makes no herd (`Retry-After`). `true`: taken as it is, and
    /// the curve starts anew (`grpc-retry-pushback-ms`, gRFC A6).
    pub exact: bool,
}

impl Hint {
    /// A lower bound, as `Retry-After` gives it.
    #[must_use]
    pub const fn at_least(wait: Duration) -> Hint {
        Hint { wait, exact: false }
    }

    /// A wait to be kept to the letter, as gRPC's pushback gives it.
    #[must_use]
    pub const fn exactly(wait: Duration) -> Hint {
        Hint { wait, exact: true }
    }
}

/// What an outcome says about the health of the target: for budget and breaker, apart from whether it may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// The target did its work (a 404 is good work).
    Good,
    /// The target failed: 5xx, reset, attempt timeout.
    Bad,
    /// Says nothing: 429, a local refusal, a cancelled attempt.
    Unknown,
}

/// What kind of failure it was: what a policy's `retry_on` is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// No connection came about: refused, connect timeout, TLS failure.
    Connect,
    /// The connection broke before an answer.
    Reset,
    /// The attempt's own time was up.
    Timeout,
    /// An HTTP status.
    Status(u16),
    /// A gRPC status code.
    Grpc(GrpcCode),
    /// None of these: the verdict alone decides (an error of the caller's own, GOAWAY, REFUSED_STREAM).
    Other,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Connect => f.write_str("connect"),
            Cause::Reset => f.write_str("reset"),
            Cause::Timeout => f.write_str("timeout"),
            Cause::Status(code) => write!(f, "{code}"),
            Cause::Grpc(code) => f.write_str(code.name()),
            Cause::Other => f.write_str("other"),
        }
    }
}

/// How far a peer's "do not retry this" reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopScope {
    /// This host only; one that can't choose among hosts takes it as [`StopScope::Service`].
    Host,
    /// The whole service behind the peer.
    Service,
    /// Every layer above, too.
    Chain,
}

/// What a layer below reported of the attempt credit it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Used {
    /// Nothing came, and nothing is known to come from there.
    #[default]
    Unsaid,
    /// So many extra attempts were made at and below it.
    Reported(u32),
    /// Nothing came, though this target has reported before: everything it was told counts as used.
    Missing,
}

/// All that the engine wants to know of a failed attempt.
///
/// A [`Verdict`] alone converts into one; the rest has setters.
///
/// ```
/// use relent_core::{Cause, Failure, Health, Verdict};
///
/// let reset = Failure::new(Verdict::Transient).cause(Cause::Reset).health(Health::Bad).ambiguous();
/// assert!(reset.is_ambiguous());
/// assert_eq!(Failure::from(Verdict::Permanent).verdict(), Verdict::Permanent);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub(crate) verdict: Verdict,
    pub(crate) cause: Cause,
    pub(crate) health: Health,
    pub(crate) ambiguous: bool,
    pub(crate) stop: Option<StopScope>,
    pub(crate) replayable: bool,
    pub(crate) free: bool,
    pub(crate) hint: Option<Hint>,
    pub(crate) used: Used,
}

impl Failure {
    /// A failure with this verdict. `Transient` and `Unprocessed` count against the target's health, the others say
    /// nothing about it; change that with [`health`](Failure::health).
    #[must_use]
    pub const fn new(verdict: Verdict) -> Failure {
        let health = match verdict {
            Verdict::Transient | Verdict::Unprocessed => Health::Bad,
            _ => Health::Unknown,
        };
        let hint = match verdict {
            Verdict::Throttled { hint } => hint,
            _ => None,
        };
        Failure {
            verdict,
            cause: Cause::Other,
            health,
            ambiguous: false,
            stop: None,
            replayable: true,
            free: false,
            hint,
            used: Used::Unsaid,
        }
    }

    /// The attempt's own time was up: transient, bad for the target's health, and perhaps executed.
    #[must_use]
    pub const fn timed_out() -> Failure {
        Failure::new(Verdict::Transient).cause(Cause::Timeout).ambiguous()
    }

    /// What kind of failure it was (default [`Cause::Other`]).
    #[must_use]
    pub const fn cause(mut self, cause: Cause) -> Failure {
        self.cause = cause;
        self
    }

    /// What it says about the target's health.
    #[must_use]
    pub const fn health(mut self, health: Health) -> Failure {
        self.health = health;
        self
    }

    /// It may have been executed although no answer came. Then it is not [`Verdict::Unprocessed`] any more, but transient.
    #[must_use]
    pub const fn ambiguous(mut self) -> Failure {
        self.ambiguous = true;
        self.free = false;
        if let Verdict::Unprocessed = self.verdict {
            self.verdict = Verdict::Transient;
        }
        self
    }

    /// The server asked for this wait (with any verdict: a 503 is transient and may carry one).
    #[must_use]
    pub const fn hint(mut self, hint: Hint) -> Failure {
        self.hint = Some(hint);
        self
    }

    /// The peer said "do not retry this".
    #[must_use]
    pub const fn stop(mut self, scope: StopScope) -> Failure {
        self.stop = Some(scope);
        self
    }

    /// The operation's input is gone (a body half sent and not kept).
    #[must_use]
    pub const fn not_replayable(mut self) -> Failure {
        self.replayable = false;
        self
    }

    /// A stale pooled connection with nothing written, or a stream that GOAWAY left unprocessed: repeated at once and
    /// for nothing, once per call.
    #[must_use]
    pub const fn free(mut self) -> Failure {
        self.free = true;
        self
    }

    /// What the layer below reported of its attempt credit.
    #[must_use]
    pub const fn used(mut self, used: Used) -> Failure {
        self.used = used;
        self
    }

    /// The verdict.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// What kind of failure it was.
    #[must_use]
    pub const fn kind(&self) -> Cause {
        self.cause
    }

    /// Whether it may have been executed although no answer came.
    #[must_use]
    pub const fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    /// What the server asked to wait, if it did.
    #[must_use]
    pub const fn asked(&self) -> Option<Hint> {
        self.hint
    }

    /// How far the peer's "do not retry this" reaches, if it said so.
    #[must_use]
    pub const fn stopped(&self) -> Option<StopScope> {
        self.stop
    }

    /// What it says about the target's health.
    #[must_use]
    pub const fn target(&self) -> Health {
        self.health
    }

    /// The same failure with another verdict; all else stays, health and hint included. One that may have been executed
    /// is at most transient, whatever is asked for.
    #[must_use]
    pub const fn with_verdict(mut self, verdict: Verdict) -> Failure {
        self.verdict = match verdict {
            Verdict::Unprocessed if self.ambiguous => Verdict::Transient,
            _ => verdict,
        };
        self.free &= matches!(verdict, Verdict::Unprocessed);
        if let Verdict::Throttled { hint: Some(hint) } = verdict {
            self.hint = Some(hint);
        }
        self
    }
}

impl fmt::Display for Failure {
    /// Verdict, cause, and what else is known, in a line.
    ///
    /// ```
    /// use relent_core::{Cause, Failure, Hint, Verdict};
    ///
    /// let busy = Failure::new(Verdict::Transient).cause(Cause::Status(503));
    /// assert_eq!(busy.hint(Hint::at_least(core::time::Duration::from_secs(5))).to_string(), "transient (503), asks for 5s");
    /// assert_eq!(Failure::timed_out().to_string(), "transient (timeout), may have been executed");
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        if self.cause != Cause::Other {
            write!(f, " ({})", self.cause)?;
        }
        if self.ambiguous {
            f.write_str(", may have been executed")?;
        }
        if let Some(hint) = self.hint {
            write!(f, ", asks for {:?}", hint.wait)?;
        }
        if self.stop.is_some() {
            f.write_str(", asks for no retry")?;
        }
        Ok(())
    }
}

impl From<Verdict> for Failure {
    fn from(verdict: Verdict) -> Failure {
        Failure::new(verdict)
    }
}
