//! What init and the stub are asked to run.

use alloc::vec::Vec;

use crate::message::message;
use crate::{DecodeError, Message, Reader, Writer};

/// A file to create in the work directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecFile<'a> {
    /// Path below the work directory; checked to be plain and relative.
    pub path: &'a str,
    /// Contents.
    pub contents: &'a [u8],
    /// Whether the file gets the execute permission.
    pub executable: bool,
}

/// A host directory or file to mount; the detached mount travels as a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeMount<'a> {
    /// Path inside the sandbox.
    pub destination: &'a str,
    /// Whether it is a directory or a single file.
    pub is_directory: bool,
    /// Whether the program can write to it.
    pub writable: bool,
    /// What is between the host's files and the program.
    pub overlay: OverlayMode,
}

/// Whether a host directory is mounted through an overlay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayMode {
    /// Mounted directly: a volume is shared on purpose.
    None,
    /// A toolchain, which gets inodes of the sandbox's own.
    ReadOnly,
    /// Writes go to the sandbox's own file system, above the host's files.
    CopyOnWrite,
}

/// A workspace to mount on the work directory; its content travels as a descriptor, if it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkspaceMount {
    /// Size of its file system.
    pub bytes: u64,
    /// Maximum number of files on it.
    pub inodes: u64,
    /// Whether there is content to unpack.
    pub has_content: bool,
}

/// What a request starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Starts {
    /// The program.
    #[default]
    Program,
    /// A runtime that waits for its program, which is sent as a second request.
    Runtime,
    /// Nothing yet: the sandbox becomes an instance. Its programs are sent as further requests, any number of them.
    /// Descriptors of each: a socket for its notices, then standard input, output and error.
    Instance,
}

/// One program to run. Without arguments there is none yet, and the files are written for one to come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecRequest<'a> {
    /// Program and arguments.
    pub argv: Vec<&'a str>,
    /// `NAME=value` each.
    pub env: Vec<&'a str>,
    /// Initial directory below the work directory; empty for the work directory itself.
    pub directory: &'a str,
    /// Files to create.
    pub files: Vec<ExecFile<'a>>,
    /// Size of the writable file system.
    pub disk_bytes: u64,
    /// Maximum number of files on it.
    pub disk_inodes: u64,
    /// Resource limits: the kernel's number of the resource, and the value.
    pub rlimits: Vec<(u64, u64)>,
    /// Affinity mask, where that is how the CPU limit is enforced; 0 for all CPUs.
    pub cpu_mask: u64,
    /// Whether the loopback interface is up.
    pub loopback: bool,
    /// Port on the loopback interface where the supervisor listens for proxy requests; 0 for none.
    pub proxy_port: u16,
    /// Whether every address is local, so that the supervisor can accept connections to it.
    pub egress: bool,
    /// Host directories and files to mount.
    pub volumes: Vec<VolumeMount<'a>>,
    /// The workspace to work in.
    pub workspace: Option<WorkspaceMount>,
    /// What it starts.
    pub starts: Starts,
    /// Process ID, inside the sandbox, of the zygote fork that runs the program; 0 if init starts it.
    pub zygote_fork: u32,
}

impl ExecRequest<'_> {
    /// Whether only init can fulfil the request, because a process that is already confined cannot. `disk` is the size,
    /// in bytes and files, that file systems are made with.
    pub fn needs_init(&self, disk: (u64, u64)) -> bool {
        self.starts != Starts::Program
            || self.workspace.is_some()
            || !self.volumes.is_empty()
            || self.loopback
            || self.proxy_port != 0
            || self.egress
            || self.cpu_mask != 0
            || (self.disk_bytes, self.disk_inodes) != disk
    }
}

message! { struct<'a> ExecFile<'a> { path, contents, executable } }
message! { struct<'a> VolumeMount<'a> { destination, is_directory, writable, overlay } }
message! { enum<'a> OverlayMode { 0 => None {}, 1 => ReadOnly {}, 2 => CopyOnWrite {} } }
message! { enum<'a> Starts { 0 => Program {}, 1 => Runtime {}, 2 => Instance {} } }
message! { struct<'a> WorkspaceMount { bytes, inodes, has_content } }
message! {
    struct<'a> ExecRequest<'a> {
        argv, env, directory, files, disk_bytes, disk_inodes, rlimits, cpu_mask, loopback, proxy_port, egress, volumes,
        workspace, starts, zygote_fork,
    }
}

/// A datagram for init or the stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitMessage<'a> {
    /// An [`ExecRequest`], still encoded.
    Exec(&'a [u8]),
    /// The same in a sealed memory file. Descriptor: the file, before all others.
    ExecInFile,
    /// To init: the stub got the request and becomes the program.
    ExecSentToStub,
    /// To init: the supervisor listens at the allowed addresses, so the program can start.
    NetworkOpen,
}

message! {
    enum<'a> InitMessage<'a> { 1 => Exec(..request), 2 => ExecInFile {}, 3 => ExecSentToStub {}, 4 => NetworkOpen {} }
}

impl InitMessage<'_> {
    /// Encodes [`InitMessage::Exec`] without a copy of the request.
    pub fn encode_exec(request: &ExecRequest<'_>) -> Vec<u8> {
        let mut writer = Writer::default();
        InitMessage::Exec(&[]).encode_to(&mut writer);
        request.encode_to(&mut writer);
        writer.into_bytes()
    }

    /// The encoded request in the result of [`InitMessage::encode_exec`], for a file.
    pub fn request_in(encoded: &[u8]) -> Result<&[u8], DecodeError> {
        let mut reader = Reader::new(encoded);
        reader.take(1)?;
        Ok(reader.rest())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn a_request_is_the_same_in_a_datagram_and_in_a_file() {
        let request = ExecRequest { argv: vec!["/bin/true"], ..ExecRequest::default() };
        let encoded = InitMessage::encode_exec(&request);
        let in_file = InitMessage::request_in(&encoded).unwrap();
        assert_eq!(InitMessage::decode(&encoded), Ok(InitMessage::Exec(in_file)));
        assert_eq!(ExecRequest::decode(in_file), Ok(request));
    }

    #[test]
    fn what_a_confined_process_cannot_do_is_for_init() {
        const DISK: (u64, u64) = (4096, 16);
        let plain = || ExecRequest { disk_bytes: 4096, disk_inodes: 16, ..ExecRequest::default() };
        assert!(!plain().needs_init(DISK));
        let workspace = Some(WorkspaceMount { bytes: 1, inodes: 1, has_content: false });
        let volume = VolumeMount {
            destination: "/data",
            is_directory: true,
            writable: false,
            overlay: OverlayMode::None,
        };
        for request in [
            ExecRequest { starts: Starts::Runtime, ..plain() },
            ExecRequest { starts: Starts::Instance, ..plain() },
            ExecRequest { workspace, ..plain() },
            ExecRequest { volumes: vec![volume], ..plain() },
            ExecRequest { loopback: true, ..plain() },
            ExecRequest { proxy_port: 1, ..plain() },
            ExecRequest { egress: true, ..plain() },
            ExecRequest { cpu_mask: 1, ..plain() },
            ExecRequest { disk_bytes: 8192, ..plain() },
            ExecRequest { disk_inodes: 17, ..plain() },
        ] {
            assert!(request.needs_init(DISK), "{request:?}");
        }
    }
}
