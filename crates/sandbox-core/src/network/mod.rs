//! What of the network a program may reach, and what became of its attempts.

mod address;
mod allow;
mod journal;

use std::fmt;
use std::str::FromStr;

pub use address::{AddressRange, special_address};
pub use allow::{AllowRule, AllowTarget, Allowlist, InvalidAllowRule, NetworkLimits};
pub use journal::{
    ConnectionRecord, Decision, NetworkEvent, NetworkReport, QuestionRecord, Transport,
};

/// What of the network a program may reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NetworkPolicy {
    /// An empty network: no address at all, not even loopback.
    #[default]
    None,
    /// A loopback of its own: its processes reach each other and nothing else.
    Localhost,
    /// The same, and what its [`Allowlist`] names.
    Allowlist,
}

/// A text that is no network policy.
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
