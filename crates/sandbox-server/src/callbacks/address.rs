//! The addresses that callbacks may be sent to: public ones, and those that the operator permits.

use std::net::IpAddr;
use std::str::FromStr;

use sandbox::{AddressRange, special_address};

/// An address that callbacks are not sent to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{address} is {what}; whoever runs the server can permit it with the setting 'callback_allow'"
)]
pub(crate) struct RefusedAddress {
    address: IpAddr,
    what: &'static str,
}

/// Public addresses, and what the operator permits beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AddressPolicy {
    permitted: Vec<AddressRange>,
}

impl AddressPolicy {
    /// Checks an address.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), RefusedAddress> {
        if self.permitted.iter().any(|range| range.contains(address)) {
            return Ok(());
        }
        special_address(address).map_or(Ok(()), |what| Err(RefusedAddress { address, what }))
    }
}

/// Ranges separated by commas, such as `10.0.0.0/8, fd00::/8`.
impl FromStr for AddressPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ranges = text.split(',').map(str::trim).filter(|range| !range.is_empty());
        Ok(Self { permitted: ranges.map(str::parse).collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(policy: &str, address: &str) -> bool {
        policy.parse::<AddressPolicy>().unwrap().check(address.parse().unwrap()).is_err()
    }

    #[test]
    fn what_the_operator_names_is_permitted_and_no_more() {
        let policy = "127.0.0.0/8, ::1,10.1.0.0/16";
        for address in ["127.0.0.1", "127.255.255.255", "::1", "10.1.255.255", "8.8.8.8"] {
            assert!(!refused(policy, address), "{address} is refused");
        }
        for address in ["::ffff:127.0.0.1", "::2", "10.2.0.0", "10.0.255.255", "192.168.0.1"] {
            assert!(refused(policy, address), "{address} is permitted");
        }
        assert!(!refused("0.0.0.0/0", "10.0.0.1"));
        assert!(refused("0.0.0.0/0", "::1"), "it is a range of the other kind");
        assert!(!refused("::/0", "::1"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["10", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/x", "localhost", "/8"] {
            let error = text.parse::<AddressPolicy>().unwrap_err();
            assert!(error.contains("such as 10.0.0.0/8"), "{text}: {error}");
        }
        let error = "10.1.0.0/8".parse::<AddressPolicy>().unwrap_err();
        assert!(error.contains("not where it begins"), "{error}");
    }
}
