//! What can be wrong with a client's bytes.

/// A fault, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Of the bytes that were looked at, so many come before the request that the fault is in; 0 if it began earlier.
    pub(crate) keep: usize,
    pub(crate) kind: FaultKind,
    /// Whether the end of the head is not before these bytes: then the request never was. Otherwise the fault is in the
    /// body of one that is under way.
    pub(crate) in_head: bool,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FaultKind {
    /// RFC 9112 §2.2 lets a server bear it; those behind may not see it as a line's end.
    #[error("a line of the head ends in a bare line feed")]
    BareLf,
    /// RFC 9112 §2.2: at least one is to be borne.
    #[error("there is more than one empty line before the request")]
    EmptyLines,
    /// RFC 9112 §3.
    #[error("the request line is not a method, a target and a version of HTTP/1, with one space between")]
    RequestLine,
    /// RFC 9112 §6.1: "ought to be handled as an error".
    #[error("there are both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
    /// RFC 9112 §6.3.
    #[error("there is more than one Content-Length")]
    TwoLengths,
    #[error("the Content-Length is no number")]
    BadLength,
    /// RFC 9112 §6.1: chunked is the only one that every recipient knows.
    #[error("the Transfer-Encoding is not chunked, or there are several, or the version does not have it")]
    BadCoding,
    /// RFC 9112 §3.2.
    #[error("there is no Host")]
    NoHost,
    #[error("there is more than one Host")]
    TwoHosts,
    /// RFC 9112 §7.1.
    #[error("a chunk of the body is not as RFC 9112 has it")]
    BadChunk,
    /// RFC 9110 §6.5.1.
    #[error("a trailer is no field, or one that says how the message is framed or routed")]
    BadTrailer,
    #[error("the head is over 64 KiB")]
    HeadTooLarge,
}

impl FaultKind {
    pub(crate) fn status(self) -> u16 {
        if self == FaultKind::HeadTooLarge { 431 } else { 400 }
    }
}
