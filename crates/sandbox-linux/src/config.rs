//! The launcher's configuration.

use sandbox_protocol::launcher::LauncherConfig;
use sandbox_protocol::{DecodeError, Message as _};

use crate::protection_set::ProtectionSet;

/// Settings that all sandboxes of a launcher share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The protections to put in force.
    pub protections: ProtectionSet,
    /// Directory of the unpacked image that is the root; empty for the host's own programs.
    pub image: String,
    /// The compiled system-call filter.
    pub filter: Vec<u8>,
    /// Whether denied calls are sent to the supervisor.
    pub filter_notifies: bool,
    /// Prefix of the names of the supervisor's cgroups. Their parent directories are sent as
    /// descriptors.
    pub cgroup_prefix: String,
    /// Default size of the writable file system of a slot.
    pub disk_bytes: u64,
    /// Default number of files on it.
    pub disk_inodes: u64,
}

impl Config {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let message = LauncherConfig {
            protections: self.protections.to_bits(),
            image: &self.image,
            seccomp_filter: &self.filter,
            seccomp_notify: self.filter_notifies,
            cgroup_prefix: &self.cgroup_prefix,
            disk_bytes: self.disk_bytes,
            disk_inodes: self.disk_inodes,
        };
        message.encode()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let message = LauncherConfig::decode(bytes)?;
        Ok(Self {
            protections: ProtectionSet::from_bits(message.protections),
            image: message.image.to_owned(),
            filter: message.seccomp_filter.to_vec(),
            filter_notifies: message.seccomp_notify,
            cgroup_prefix: message.cgroup_prefix.to_owned(),
            disk_bytes: message.disk_bytes,
            disk_inodes: message.disk_inodes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_survives_the_way_to_the_launcher() {
        let config = Config {
            protections: ProtectionSet::all(),
            image: "/srv/image".into(),
            filter: vec![1, 2, 3],
            filter_notifies: true,
            cgroup_prefix: "sandbox-run.1.".into(),
            disk_bytes: 5,
            disk_inodes: 6,
        };
        assert_eq!(Config::decode(&config.encode()), Ok(config));
    }
}
