//! Names and addresses of hosts, as URLs and `Host` fields have them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A host: a DNS name in lower case, or an IP address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// A DNS name.
    Name(String),
    /// An IP address.
    Address(IpAddr),
}

impl Host {
    /// Whether `text`, a host without its port as a request has it, means this host. Allocates nothing.
    pub fn is(&self, text: &str) -> bool {
        match self {
            Host::Name(name) => name.eq_ignore_ascii_case(text),
            Host::Address(address) => {
                let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
                bare.parse() == Ok(*address)
            }
        }
    }
}

/// Why a text is no [`Host`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing is written.
    #[error("it names no host")]
    Empty,
    /// Not ASCII; names travel in their `xn--` form (RFC 5890).
    #[error("it has letters that are not ASCII")]
    NotAscii,
    /// An IPv6 address stands without brackets.
    #[error("its IPv6 address has no brackets")]
    NoBrackets,
    /// Digits and points that are no IPv4 address.
    #[error("it is no IPv4 address")]
    BadAddress,
    /// A `*`: patterns are not known.
    #[error("it is a pattern, and only whole hosts are known")]
    Pattern,
    /// A character, or a length, that no host name has.
    #[error("it is no host name")]
    BadName,
}

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Host, HostError> {
        if let Some(inner) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return inner
                .parse::<Ipv6Addr>()
                .map(|v6| Host::Address(v6.into()))
                .map_err(|_| HostError::BadAddress);
        }
        if let Ok(v4) = text.parse::<Ipv4Addr>() {
            return Ok(Host::Address(v4.into()));
        }
        match text {
            "" => return Err(HostError::Empty),
            _ if !text.is_ascii() => return Err(HostError::NotAscii),
            _ if text.parse::<Ipv6Addr>().is_ok() => return Err(HostError::NoBrackets),
            _ if text.contains('*') => return Err(HostError::Pattern),
            _ => {}
        }
        // A name's last label can't be a number (RFC 3696 §2): it was to be an address.
        if text
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()) && !last.is_empty())
        {
            return Err(HostError::BadAddress);
        }
        let good = text.len() <= 253 && text.split('.').all(is_label);
        if good { Ok(Host::Name(text.to_ascii_lowercase())) } else { Err(HostError::BadName) }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(IpAddr::V4(v4)) => v4.fmt(f),
            Host::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
        }
    }
}

/// A part of a name between points. `_` is in no host name by the book, but container networks use it.
fn is_label(label: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    (1..=63).contains(&label.len())
        && label.bytes().all(inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_as_a_request_has_it() {
        let name: Host = "api.example".parse().unwrap();
        assert!(name.is("API.example") && !name.is("example"));
        let address: Host = "[::1]".parse().unwrap();
        assert!(address.is("[0:0::1]") && !address.is("[::2]") && !address.is("localhost"));
    }

    #[test]
    fn what_a_host_is() {
        for (text, shown) in
            [("API.Example", "api.example"), ("10.0.0.1", "10.0.0.1"), ("[::1]", "[::1]"), ("a_b-c", "a_b-c")]
        {
            assert_eq!(text.parse::<Host>().map(|host| host.to_string()), Ok(shown.to_owned()));
        }
        let bad = [
            ("", HostError::Empty),
            ("zürich.example", HostError::NotAscii),
            ("::1", HostError::NoBrackets),
            ("10.0.0", HostError::BadAddress),
            ("10.0.0.256", HostError::BadAddress),
            ("*.example", HostError::Pattern),
            ("a..b", HostError::BadName),
            ("-a", HostError::BadName),
            ("a b", HostError::BadName),
            ("a.", HostError::BadName),
        ];
        for (text, error) in bad {
            assert_eq!(text.parse::<Host>(), Err(error), "{text}");
        }
    }
}
