//! The status codes of gRPC, as far as a policy names them.

use core::fmt;

/// How a gRPC call ended (the canonical status codes, with their numbers).
///
/// Its name in the policy file is the lower-case one with hyphens: `unavailable`, `resource-exhausted`.
///
/// ```
/// use relent_core::GrpcCode;
///
/// assert_eq!(GrpcCode::numbered(14), Some(GrpcCode::Unavailable));
/// assert_eq!(GrpcCode::named("resource-exhausted"), Some(GrpcCode::ResourceExhausted));
/// assert_eq!(GrpcCode::named("RESOURCE_EXHAUSTED"), Some(GrpcCode::ResourceExhausted));
/// assert_eq!(GrpcCode::DeadlineExceeded.to_string(), "deadline-exceeded");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum GrpcCode {
    /// Success.
    Ok = 0,
    /// The caller gave up.
    Cancelled = 1,
    /// Anything, also what has no gRPC status at all.
    Unknown = 2,
    /// The request is wrong, whatever the state of the system.
    InvalidArgument = 3,
    /// The time was up; the work may have been done.
    DeadlineExceeded = 4,
    /// There is no such thing.
    NotFound = 5,
    /// It is there already.
    AlreadyExists = 6,
    /// Not for this caller.
    PermissionDenied = 7,
    /// A quota or a server is full.
    ResourceExhausted = 8,
    /// The system is not in the state that this needs.
    FailedPrecondition = 9,
    /// A conflict with others: the whole transaction may be tried again, by the caller.
    Aborted = 10,
    /// Past the end.
    OutOfRange = 11,
    /// The server has no such method.
    Unimplemented = 12,
    /// Something is broken.
    Internal = 13,
    /// Not now.
    Unavailable = 14,
    /// Data is lost.
    DataLoss = 15,
    /// No valid credentials.
    Unauthenticated = 16,
}

/// All codes, each at its number, with its name.
const ALL: [(GrpcCode, &str); 17] = [
    (GrpcCode::Ok, "ok"),
    (GrpcCode::Cancelled, "cancelled"),
    (GrpcCode::Unknown, "unknown"),
    (GrpcCode::InvalidArgument, "invalid-argument"),
    (GrpcCode::DeadlineExceeded, "deadline-exceeded"),
    (GrpcCode::NotFound, "not-found"),
    (GrpcCode::AlreadyExists, "already-exists"),
    (GrpcCode::PermissionDenied, "permission-denied"),
    (GrpcCode::ResourceExhausted, "resource-exhausted"),
    (GrpcCode::FailedPrecondition, "failed-precondition"),
    (GrpcCode::Aborted, "aborted"),
    (GrpcCode::OutOfRange, "out-of-range"),
    (GrpcCode::Unimplemented, "unimplemented"),
    (GrpcCode::Internal, "internal"),
    (GrpcCode::Unavailable, "unavailable"),
    (GrpcCode::DataLoss, "data-loss"),
    (GrpcCode::Unauthenticated, "unauthenticated"),
];

impl GrpcCode {
    /// The code with this number on the wire.
    #[must_use]
    pub fn numbered(number: u64) -> Option<GrpcCode> {
        let at = usize::try_from(number).ok()?;
        ALL.get(at).map(|(code, _)| *code)
    }

    /// The code with this name: as policy files write it, or in the capitals of gRPC's own files.
    #[must_use]
    pub fn named(name: &str) -> Option<GrpcCode> {
        let plain = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
        let same = |known: &str| name.len() == known.len() && name.bytes().map(plain).eq(known.bytes());
        ALL.iter().find(|(_, known)| same(known)).map(|(code, _)| *code)
    }

    /// Its number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its name in policy files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    /// All of them, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = GrpcCode> {
        ALL.iter().map(|(code, _)| *code)
    }
}

impl fmt::Display for GrpcCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_at_its_number() {
        for (n, (code, name)) in ALL.iter().enumerate() {
            assert_eq!((usize::from(code.number()), code.name()), (n, *name));
            assert_eq!((GrpcCode::numbered(n as u64), GrpcCode::named(name)), (Some(*code), Some(*code)));
        }
        assert_eq!(GrpcCode::all().count(), 17);
        assert_eq!((GrpcCode::numbered(17), GrpcCode::numbered(u64::MAX)), (None, None));
        assert_eq!((GrpcCode::named(""), GrpcCode::named("unavailablE_")), (None, None));
        assert_eq!(GrpcCode::named("Data_Loss"), Some(GrpcCode::DataLoss));
    }
}
