//! Ranges of IP addresses, as `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of IP addresses in CIDR form (RFC 4632, RFC 4291 §2.3); a lone address is a range of one.
///
/// ```
/// use relent_config::AddressRange;
///
/// let range: AddressRange = "10.0.0.0/8".parse()?;
/// assert!(range.contains("10.1.2.3".parse()?));
/// assert!(range.contains("::ffff:10.1.2.3".parse()?), "the same host, seen through a dual-stack socket");
/// assert!(!range.contains("11.0.0.1".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is no [`AddressRange`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressRangeError {
    /// No IP address.
    #[error("it is no IP address and no range of them")]
    NoAddress,
    /// No number of bits that the address has.
    #[error("its prefix is not from 0 to {0}")]
    BadPrefix(u8),
    /// The address has bits below its prefix: a slip in one or the other.
    #[error("its address has bits below the prefix")]
    BitsBelowPrefix(AddressRange),
}

impl AddressRange {
    /// Whether `address` lies in the range. An IPv4 address mapped into IPv6 counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.prefix) == self.address
    }
}

impl FromStr for AddressRange {
    type Err = AddressRangeError;

    fn from_str(text: &str) -> Result<AddressRange, AddressRangeError> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.parse().map_err(|_| AddressRangeError::NoAddress)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok().filter(|p| *p <= bits).ok_or(AddressRangeError::BadPrefix(bits))?
            }
            Some(_) => return Err(AddressRangeError::BadPrefix(bits)),
        };
        let range = AddressRange { address: masked(address, prefix), prefix };
        if range.address == address { Ok(range) } else { Err(AddressRangeError::BitsBelowPrefix(range)) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// `address` with its first `prefix` bits alone.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<AddressRange, AddressRangeError> {
        text.parse()
    }

    #[test]
    fn bounds_of_the_prefix() {
        assert!(parse("0.0.0.0/0").unwrap().contains(IpAddr::from([255, 1, 2, 3])));
        assert!(parse("::/0").unwrap().contains("ff::1".parse().unwrap()));
        assert!(!parse("::/0").unwrap().contains(IpAddr::from([1, 2, 3, 4])));
        let one = parse("10.0.0.1").unwrap();
        assert!(one.contains(IpAddr::from([10, 0, 0, 1])) && !one.contains(IpAddr::from([10, 0, 0, 0])));
        assert_eq!(parse("10.0.0.0/33"), Err(AddressRangeError::BadPrefix(32)));
        assert_eq!(parse("10.0.0.0/+8"), Err(AddressRangeError::BadPrefix(32)));
        assert_eq!(parse("10.0.0.0/"), Err(AddressRangeError::BadPrefix(32)));
        assert_eq!(parse("fd00::/129"), Err(AddressRangeError::BadPrefix(128)));
        assert_eq!(parse("10.0.0/8"), Err(AddressRangeError::NoAddress));
    }

    #[test]
    fn bits_below_the_prefix_are_a_slip() {
        let Err(AddressRangeError::BitsBelowPrefix(meant)) = parse("10.1.2.3/8") else { panic!("refused") };
        assert_eq!(meant.to_string(), "10.0.0.0/8");
    }
}
