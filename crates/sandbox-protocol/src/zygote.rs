//! What the supervisor and a zygote say to each other. Usable without an allocator: a zygote's side runs inside a runtime
//! that is not ours.
//!
//! The supervisor sends the [`ZygoteConfig`] once; the zygote answers [`READY`]. For each sandbox the supervisor sends
//! [`FORK`] with descriptors: a socket for the [`ForkReport`], init's pidfd, three streams, the Landlock rules, then the
//! cgroup entries.

use crate::codec::{DecodeError, Reader};

/// The zygote's answer to its configuration.
pub const READY: &[u8] = b"ready";
/// Asks for a fork.
pub const FORK: &[u8] = b"fork";
/// Size of one instruction of a filter.
pub const INSTRUCTION_BYTES: usize = 8;

/// What is the same for every fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZygoteConfig<'a> {
    /// The namespaces of init to join, as flags of `setns`.
    pub namespaces: u32,
    /// Whether each sandbox has user and group IDs of its own.
    pub has_own_ids: bool,
    /// The compiled system-call filter: instructions of eight bytes.
    pub seccomp_filter: &'a [u8],
}

impl<'a> ZygoteConfig<'a> {
    /// Decodes the whole message.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let namespaces = reader.u32()?;
        let has_own_ids = reader.bool()?;
        let seccomp_filter = reader.rest();
        if seccomp_filter.len().is_multiple_of(INSTRUCTION_BYTES) {
            Ok(Self { namespaces, has_own_ids, seccomp_filter })
        } else {
            Err(DecodeError::InvalidValue)
        }
    }

    /// Encodes the message. The filter comes last and takes what is left.
    #[cfg(feature = "alloc")]
    pub fn encode(&self) -> alloc::vec::Vec<u8> {
        let mut bytes = self.namespaces.to_le_bytes().to_vec();
        bytes.push(self.has_own_ids.into());
        bytes.extend_from_slice(self.seccomp_filter);
        bytes
    }
}

/// The steps of a fork, in no particular order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ForkStep {
    /// Create a process in the PID namespace of init.
    Clone,
    /// Join the cgroups.
    JoinCgroups,
    /// Enter the other namespaces of init.
    EnterNamespaces,
    /// Start with an empty session keyring.
    ResetKeyring,
    /// Start a session.
    StartSession,
    /// Set up the standard streams.
    SetUpStreams,
    /// Enter the work directory.
    EnterWorkDirectory,
    /// Make sure that no capability can come back.
    LockCapabilities,
    /// Switch to the program's user.
    SwitchUser,
    /// Drop the capabilities.
    DropCapabilities,
    /// Make the process dumpable, as one that was executed is.
    SetDumpable,
    /// Give up new privileges.
    SetNoNewPrivileges,
    /// Apply the Landlock rules.
    ApplyLandlock,
    /// Install the system-call filter.
    InstallFilter,
    /// Send the report.
    Report,
    /// Close the descriptors of the zygote.
    CloseDescriptors,
}

impl ForkStep {
    /// Every step, with its name as the rest of "could not …".
    pub const NAMES: [(Self, &str); 16] = [
        (Self::Clone, "clone the process"),
        (Self::JoinCgroups, "join the cgroups"),
        (Self::EnterNamespaces, "enter the namespaces"),
        (Self::ResetKeyring, "reset the session keyring"),
        (Self::StartSession, "start a session"),
        (Self::SetUpStreams, "set up the standard streams"),
        (Self::EnterWorkDirectory, "enter the work directory"),
        (Self::LockCapabilities, "lock the capabilities"),
        (Self::SwitchUser, "switch to the program's user"),
        (Self::DropCapabilities, "drop the capabilities"),
        (Self::SetDumpable, "make the process dumpable"),
        (Self::SetNoNewPrivileges, "give up new privileges"),
        (Self::ApplyLandlock, "apply the Landlock rules"),
        (Self::InstallFilter, "install the system-call filter"),
        (Self::Report, "send the report"),
        (Self::CloseDescriptors, "close the descriptors"),
    ];

    /// The name of this step.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(step, _)| *step == self).map_or("", |(_, name)| name)
    }
}

/// What a fork, or the zygote in its place, reports about one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkReport {
    /// The fork is confined. Descriptor: the notifications of its filter.
    Confined {
        /// Its process ID inside the sandbox.
        pid: u32,
    },
    /// A step failed.
    Failed {
        /// The step.
        step: ForkStep,
        /// The error number.
        errno: i32,
    },
}

impl ForkReport {
    /// Size of a report: a tag, the step, and a number.
    pub const BYTES: usize = 6;
    const CONFINED: u8 = 0;
    const FAILED: u8 = 1;

    /// Encodes the report. Allocates nothing.
    pub fn encode(self) -> [u8; Self::BYTES] {
        let (tag, step, number) = match self {
            Self::Confined { pid } => (Self::CONFINED, 0, pid.to_le_bytes()),
            Self::Failed { step, errno } => (Self::FAILED, step as u8, errno.to_le_bytes()),
        };
        let [a, b, c, d] = number;
        [tag, step, a, b, c, d]
    }

    /// Decodes the whole message.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let [tag, step] = reader.array()?;
        let number = reader.array()?;
        reader.finish()?;
        let mut steps = ForkStep::NAMES.iter().map(|(step, _)| *step);
        match tag {
            Self::CONFINED if step == 0 => Ok(Self::Confined { pid: u32::from_le_bytes(number) }),
            Self::FAILED => {
                let step = steps.find(|known| *known as u8 == step);
                let step = step.ok_or(DecodeError::InvalidValue)?;
                Ok(Self::Failed { step, errno: i32::from_le_bytes(number) })
            }
            _ => Err(DecodeError::InvalidValue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "alloc")]
    #[test]
    fn a_configuration_takes_whole_instructions() {
        let config = ZygoteConfig { namespaces: 1, has_own_ids: true, seccomp_filter: &[7; 16] };
        let bytes = config.encode();
        assert_eq!(ZygoteConfig::decode(&bytes), Ok(config));
        assert_eq!(ZygoteConfig::decode(&bytes[..20]), Err(DecodeError::InvalidValue));
        assert_eq!(ZygoteConfig::decode(&bytes[..4]), Err(DecodeError::Truncated));
    }

    #[test]
    fn every_step_travels_and_has_a_name() {
        for (number, (step, name)) in (0_u8..).zip(ForkStep::NAMES) {
            assert_eq!((step as u8, step.name()), (number, name));
            let report = ForkReport::Failed { step, errno: 13 };
            assert_eq!(ForkReport::decode(&report.encode()), Ok(report));
        }
    }

    #[test]
    fn a_report_has_one_encoding() {
        for (report, bytes) in [
            (ForkReport::Confined { pid: 0x0102_0304 }, [0, 0, 4, 3, 2, 1]),
            (ForkReport::Failed { step: ForkStep::DropCapabilities, errno: 1 }, [1, 9, 1, 0, 0, 0]),
            (ForkReport::Failed { step: ForkStep::Clone, errno: -1 }, [1, 0, 255, 255, 255, 255]),
        ] {
            assert_eq!(report.encode(), bytes);
            assert_eq!(ForkReport::decode(&bytes), Ok(report));
        }
        for (bytes, error) in [
            (&[][..], DecodeError::Truncated),
            (&[0, 0, 4, 3, 2], DecodeError::Truncated),
            (&[0, 0, 4, 3, 2, 1, 0], DecodeError::TrailingBytes),
            (&[0, 1, 4, 3, 2, 1], DecodeError::InvalidValue),
            (&[2, 0, 4, 3, 2, 1], DecodeError::InvalidValue),
            (&[1, 16, 4, 3, 2, 1], DecodeError::InvalidValue),
        ] {
            assert_eq!(ForkReport::decode(bytes), Err(error), "{bytes:?}");
        }
    }
}
