//! Where an upstream is reached: `http://host:port`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::host::{Host, HostError};

/// One address of an upstream: an `http` URL with host and port, and nothing else.
///
/// ```
/// use relent_config::Endpoint;
///
/// let endpoint: Endpoint = "http://127.0.0.1:9000".parse()?;
/// assert_eq!((endpoint.port(), endpoint.authority()), (9000, "127.0.0.1:9000".to_owned()));
/// assert!("https://127.0.0.1:9000".parse::<Endpoint>().is_err());
/// # Ok::<(), relent_config::EndpointError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    host: Host,
    port: u16,
}

/// Why a text is no [`Endpoint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// No `http://` at the start.
    #[error("it is no URL")]
    NoScheme,
    /// `https`, which relent does not speak to upstreams yet.
    #[error("https to an upstream is not supported yet")]
    Https,
    /// Another scheme.
    #[error("its scheme is not http")]
    OtherScheme,
    /// A user name or password.
    #[error("it has a user name")]
    UserInfo,
    /// A path, query or fragment: an upstream takes the paths of its requests.
    #[error("it has a path, and an endpoint is a host and a port")]
    Path,
    /// No port from 1 to 65535.
    #[error("its port is not from 1 to 65535")]
    BadPort,
    /// The host is none.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Endpoint {
    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The host, if it is an IP address.
    pub fn address(&self) -> Option<IpAddr> {
        match self.host {
            Host::Address(address) => Some(address),
            Host::Name(_) => None,
        }
    }

    /// The port; 80 if the URL names none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`, an IPv6 address in brackets.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Endpoint, EndpointError> {
        let (scheme, rest) = text.split_once("://").ok_or(EndpointError::NoScheme)?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" => {}
            "https" => return Err(EndpointError::Https),
            _ => return Err(EndpointError::OtherScheme),
        }
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(EndpointError::UserInfo);
        }
        if !matches!(path, "" | "/") {
            return Err(EndpointError::Path);
        }
        // The colons of an IPv6 address stand before the bracket, or there is none and the address is refused.
        let in_address = authority.matches(':').count() > 1 && !authority.contains(']');
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') && !in_address => (host, port),
            _ => (authority, "80"),
        };
        let host = host.parse()?;
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        let port = port.parse().ok().filter(|port| digits && *port > 0).ok_or(EndpointError::BadPort)?;
        Ok(Endpoint { host, port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_endpoint_is() {
        let good = [
            ("http://localhost", "localhost:80"),
            ("HTTP://Api.Example:9000/", "api.example:9000"),
            ("http://[::1]:9000", "[::1]:9000"),
            ("http://[::1]", "[::1]:80"),
        ];
        for (text, authority) in good {
            assert_eq!(text.parse::<Endpoint>().map(|e| e.authority()), Ok(authority.to_owned()), "{text}");
        }
        let bad = [
            ("127.0.0.1:9000", EndpointError::NoScheme),
            ("https://a", EndpointError::Https),
            ("unix://a", EndpointError::OtherScheme),
            ("http://me:pw@a", EndpointError::UserInfo),
            ("http://a/api", EndpointError::Path),
            ("http://a?x", EndpointError::Path),
            ("http://a:0", EndpointError::BadPort),
            ("http://a:65536", EndpointError::BadPort),
            ("http://a:", EndpointError::BadPort),
            ("http://a:+80", EndpointError::BadPort),
            ("http://", HostError::Empty.into()),
            ("http://::1", HostError::NoBrackets.into()),
        ];
        for (text, error) in bad {
            assert_eq!(text.parse::<Endpoint>(), Err(error), "{text}");
        }
    }
}
