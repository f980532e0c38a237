//! Address ranges, and which addresses are not part of the public internet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address range: all addresses with the same prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    network: IpAddr,
    /// Length of the prefix in bits.
    prefix: u32,
}

/// Special-purpose addresses and what they are, from the IANA registries (RFC 6890 and later), and
/// addresses that cloud providers reserve within public ranges.
const NOT_PUBLIC: &[(AddressRange, &str)] = &[
    (v4([0, 0, 0, 0], 8), "an address of this network"),
    (v4([10, 0, 0, 0], 8), "a private address"),
    (v4([100, 64, 0, 0], 10), "an address inside a provider's network"),
    (v4([127, 0, 0, 0], 8), "a loopback address"),
    (v4([168, 63, 129, 16], 32), "an address inside a cloud"),
    (v4([169, 254, 0, 0], 16), "a link-local address"),
    (v4([172, 16, 0, 0], 12), "a private address"),
    (v4([192, 0, 0, 0], 24), "an address for protocols"),
    (v4([192, 0, 2, 0], 24), "an address for documentation"),
    (v4([192, 88, 99, 0], 24), "an address of a relay to another network"),
    (v4([192, 168, 0, 0], 16), "a private address"),
    (v4([198, 18, 0, 0], 15), "an address for benchmarks"),
    (v4([198, 51, 100, 0], 24), "an address for documentation"),
    (v4([203, 0, 113, 0], 24), "an address for documentation"),
    (v4([224, 0, 0, 0], 4), "a multicast address"),
    (v4([240, 0, 0, 0], 4), "a reserved address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "no address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "an IPv4 address in disguise"),
    // Both prefixes of NAT64.
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 32), "an IPv4 address in disguise"),
    // Includes Teredo.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "an address for protocols"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "an address for documentation"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "an IPv4 address in disguise"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "an address for documentation"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

/// All IPv6 addresses that are allocated as global unicast.
const GLOBAL_V6: AddressRange = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// What an address is, if it is not public.
pub fn special_address(address: IpAddr) -> Option<&'static str> {
    let special = NOT_PUBLIC.iter().find(|(range, _)| range.contains(address));
    match special {
        Some(&(_, what)) => Some(what),
        None if address.is_ipv6() && !GLOBAL_V6.contains(address) => Some("not a public address"),
        None => None,
    }
}

impl AddressRange {
    /// The first address of the range.
    pub fn first(&self) -> IpAddr {
        self.network
    }

    /// The only address of the range, if it has one.
    pub fn only(&self) -> Option<IpAddr> {
        let width = if self.network.is_ipv4() { 32 } else { 128 };
        (self.prefix == width).then_some(self.network)
    }

    /// Whether this range is part of another one.
    pub fn is_within(&self, other: &Self) -> bool {
        other.contains(self.network) && self.prefix >= other.prefix
    }

    /// Whether all addresses of the range are public.
    pub fn is_public(&self) -> bool {
        let touches = |range: &Self| self.is_within(range) || range.is_within(self);
        let is_given_out = self.network.is_ipv4() || self.is_within(&GLOBAL_V6);
        is_given_out && !NOT_PUBLIC.iter().any(|(range, _)| touches(range))
    }

    /// Whether the range contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let is_same_kind = self.network.is_ipv4() == address.is_ipv4();
        is_same_kind && first_bits(self.network, self.prefix) == first_bits(address, self.prefix)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.only() {
            Some(address) => address.fmt(f),
            None => write!(f, "{}/{}", self.network, self.prefix),
        }
    }
}

/// An address and a prefix length; an address alone is a range of one.
impl FromStr for AddressRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("'{text}' is not a range of addresses, such as 10.0.0.0/8 or fd00::/8");
        let (network, prefix) = match text.split_once('/') {
            Some((network, prefix)) => (network, Some(prefix)),
            None => (text, None),
        };
        let network: IpAddr = network.parse().map_err(|_| wrong())?;
        let width = if network.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().ok().filter(|prefix| *prefix <= width),
            None => Some(width),
        };
        let prefix = prefix.ok_or_else(wrong)?;
        let whole = u128::from_be_bytes(bits(network));
        // The author of 10.1.2.3/8 may have meant less than all of 10.0.0.0/8.
        if first_bits(network, prefix) != whole {
            return Err(format!("'{text}' names one address of its range, not where it begins"));
        }
        Ok(Self { network, prefix })
    }
}

/// An address with all bits after the prefix set to zero.
fn first_bits(address: IpAddr, count: u32) -> u128 {
    let mask = u128::MAX.checked_shl(128 - count).unwrap_or(0);
    u128::from_be_bytes(bits(address)) & mask
}

/// The bytes of an address, left-aligned.
fn bits(address: IpAddr) -> [u8; 16] {
    let mut bits = [0; 16];
    match address {
        IpAddr::V4(address) => bits[..4].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bits = address.octets(),
    }
    bits
}

const fn v4(octets: [u8; 4], prefix: u32) -> AddressRange {
    AddressRange { network: IpAddr::V4(Ipv4Addr::from_octets(octets)), prefix }
}

const fn v6(segments: [u16; 8], prefix: u32) -> AddressRange {
    AddressRange { network: IpAddr::V6(Ipv6Addr::from_segments(segments)), prefix }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_special(address: &str) -> bool {
        special_address(address.parse().unwrap()).is_some()
    }

    #[test]
    fn addresses_that_are_not_public_are_known() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(is_special(address), "{address}");
        }
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "128.0.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00::1",
            "3ffe::1",
        ] {
            assert!(!is_special(address), "{address}");
        }
    }

    #[test]
    fn a_range_is_public_if_all_of_it_is() {
        for (range, is_public) in [
            ("1.1.1.1", true),
            ("1.0.0.0/8", true),
            ("10.1.0.0/16", false),
            ("0.0.0.0/0", false),
            ("8.0.0.0/5", false),
            ("2606:4700::/32", true),
            ("::/0", false),
            ("fd00::/8", false),
        ] {
            assert_eq!(range.parse::<AddressRange>().unwrap().is_public(), is_public, "{range}");
        }
        let inner: AddressRange = "10.1.0.0/16".parse().unwrap();
        assert!(inner.is_within(&"10.0.0.0/8".parse().unwrap()));
        assert!(!inner.is_within(&"10.1.2.0/24".parse().unwrap()));
    }
}
