//! Network policies, and reports about what a program connected to.

mod address;
mod allow;
mod report;

use std::fmt;
use std::str::FromStr;

pub use address::{AddressRange, special_address};
pub use allow::{AllowRule, AllowTarget, Allowlist, InvalidAllowRule, NetworkLimits};
pub use report::{
    ConnectionRecord, Decision, DnsQueryRecord, NetworkEvent, NetworkReport, Transport,
};

/// What a program may connect to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkPolicy {
    /// A network without addresses, not even loopback.
    #[default]
    None,
    /// A loopback interface of the sandbox's own: its processes can connect to each other only.
    Localhost,
    /// As `Localhost`, and the destinations of its [`Allowlist`].
    Allowlist,
}

/// A text that is not a network policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a network policy: it is none, localhost or allowlist")]
pub struct InvalidNetworkPolicy {
    text: String,
}

impl fmt::Display for NetworkPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Localhost => "localhost",
            Self::Allowlist => "allowlist",
        })
    }
}

impl FromStr for NetworkPolicy {
    type Err = InvalidNetworkPolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "localhost" => Ok(Self::Localhost),
            "allowlist" => Ok(Self::Allowlist),
            _ => Err(InvalidNetworkPolicy { text: text.to_owned() }),
        }
    }
}
