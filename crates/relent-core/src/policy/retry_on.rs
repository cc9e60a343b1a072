//! Which kinds of failure are retried.

use core::fmt;

use crate::{Cause, GrpcCode};

/// A set of conditions (connect, reset, timeout), HTTP statuses and gRPC status codes.
///
/// *Default*: connect, reset, timeout, 429, 500, 502, 503, 504, unavailable, resource-exhausted. What has no entry here ([`Cause::Other`]: an error of
/// the caller's own, GOAWAY, REFUSED_STREAM) goes by its verdict alone.
///
/// ```
/// use relent_core::{Cause, GrpcCode, RetryOn};
///
/// let only_busy = RetryOn::nothing().status(503)?;
/// assert!(only_busy.contains(Cause::Status(503)));
/// assert!(!only_busy.contains(Cause::Timeout));
/// assert!(RetryOn::nothing().status(404).is_err());
///
/// let aborted_too = RetryOn::default().grpc(GrpcCode::Aborted).expect("it is no success");
/// assert!(aborted_too.contains(Cause::Grpc(GrpcCode::Unavailable)));
/// # Ok::<(), relent_core::BadStatus>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RetryOn {
    connect: bool,
    reset: bool,
    timeout: bool,
    /// Bit n: status 500 + n.
    server: u128,
    /// Bit n: the n-th of `CLIENT`.
    client: u8,
    /// Bit n: gRPC status code n.
    grpc: u32,
}

/// The only 4xx that may work when sent again unchanged.
const CLIENT: [u16; 5] = [408, 409, 421, 425, 429];

/// A status that fails the same way again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadStatus(pub u16);

impl fmt::Display for BadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.0;
        match code {
            200..=299 => write!(f, "{code} is a success, there is nothing to retry"),
            400..=499 => write!(
                f,
                "{code} fails the same way again; of 4xx only 408, 409, 421, 425 and 429 may be retried"
            ),
            501 => f.write_str("501 (not implemented) fails the same way again"),
            505 => f.write_str("505 (HTTP version not supported) fails the same way again"),
            _ => write!(
                f,
                "{code} is no status that can be retried: 408, 409, 421, 425, 429 or 5xx but 501 and 505"
            ),
        }
    }
}

impl core::error::Error for BadStatus {}

/// A gRPC status code that is no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadGrpcCode(pub GrpcCode);

impl fmt::Display for BadGrpcCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is a success, there is nothing to retry", self.0)
    }
}

impl core::error::Error for BadGrpcCode {}

impl RetryOn {
    /// No failure with an entry is retried.
    #[must_use]
    pub const fn nothing() -> RetryOn {
        RetryOn { connect: false, reset: false, timeout: false, server: 0, client: 0, grpc: 0 }
    }

    /// Adds connection failures: refused, connect timeout, TLS failure.
    #[must_use]
    pub const fn connect(mut self) -> RetryOn {
        self.connect = true;
        self
    }

    /// Adds connections that broke before an answer.
    #[must_use]
    pub const fn reset(mut self) -> RetryOn {
        self.reset = true;
        self
    }

    /// Adds attempt timeouts.
    #[must_use]
    pub const fn timeout(mut self) -> RetryOn {
        self.timeout = true;
        self
    }

    /// Adds an HTTP status.
    ///
    /// # Errors
    /// [`BadStatus`] for one that fails the same way again: everything but 408, 409, 421, 425, 429 and 5xx without
    /// 501 and 505.
    pub const fn status(mut self, code: u16) -> Result<RetryOn, BadStatus> {
        match code {
            501 | 505 => return Err(BadStatus(code)),
            500..=599 => self.server |= 1 << (code - 500),
            _ => match client_bit(code) {
                Some(bit) => self.client |= bit,
                None => return Err(BadStatus(code)),
            },
        }
        Ok(self)
    }

    /// Adds a gRPC status code. Which of them may work when sent again is for the service to say: all are taken but `ok`.
    ///
    /// # Errors
    /// [`BadGrpcCode`] for [`GrpcCode::Ok`].
    pub const fn grpc(mut self, code: GrpcCode) -> Result<RetryOn, BadGrpcCode> {
        if let GrpcCode::Ok = code {
            return Err(BadGrpcCode(code));
        }
        self.grpc |= 1 << code.number();
        Ok(self)
    }

    /// Whether this kind of failure is retried. [`Cause::Other`] always is: its verdict decides.
    #[must_use]
    pub const fn contains(&self, cause: Cause) -> bool {
        match cause {
            Cause::Connect => self.connect,
            Cause::Reset => self.reset,
            Cause::Timeout => self.timeout,
            Cause::Status(code) => match code {
                500..=599 => self.server & (1 << (code - 500)) != 0,
                _ => match client_bit(code) {
                    Some(bit) => self.client & bit != 0,
                    None => false,
                },
            },
            Cause::Grpc(code) => self.grpc & (1 << code.number()) != 0,
            Cause::Other => true,
        }
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == RetryOn::nothing()
    }

    /// The statuses in the set, in order.
    pub fn statuses(&self) -> impl Iterator<Item = u16> + '_ {
        let all = CLIENT.into_iter().chain(500..600);
        all.filter(|code| self.contains(Cause::Status(*code)))
    }

    /// The gRPC status codes in the set, in the order of their numbers.
    pub fn grpc_codes(&self) -> impl Iterator<Item = GrpcCode> + '_ {
        GrpcCode::all().filter(|code| self.contains(Cause::Grpc(*code)))
    }
}

const fn client_bit(code: u16) -> Option<u8> {
    let mut n = 0;
    while n < CLIENT.len() {
        if CLIENT[n] == code {
            return Some(1 << n);
        }
        n += 1;
    }
    None
}

impl Default for RetryOn {
    fn default() -> RetryOn {
        let server = 1 | 1 << 2 | 1 << 3 | 1 << 4;
        let grpc = 1 << GrpcCode::Unavailable.number() | 1 << GrpcCode::ResourceExhausted.number();
        RetryOn { connect: true, reset: true, timeout: true, server, client: 1 << 4, grpc }
    }
}

impl fmt::Debug for RetryOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [(self.connect, "connect"), (self.reset, "reset"), (self.timeout, "timeout")];
        let names = named.iter().filter(|(set, _)| *set).map(|(_, name)| bare(name));
        let codes = self.grpc_codes().map(|code| bare(code.name()));
        f.debug_set().entries(names).entries(self.statuses()).entries(codes).finish()
    }
}

/// A name that prints without quotes.
fn bare(name: &'static str) -> impl fmt::Debug {
    struct Bare(&'static str);
    impl fmt::Debug for Bare {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }
    Bare(name)
}
