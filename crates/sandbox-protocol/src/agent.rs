//! What the supervisor and the agent in a container say to each other, in [frames](crate::frame) on two byte streams.
//!
//! For one program, the supervisor sends one [`Exec`](AgentRequest::Exec), input and signals while the program runs, then
//! [`ReadFile`](AgentRequest::ReadFile) for each file it wants. For any number of programs, it sends
//! [`Serve`](AgentRequest::Serve), and then asks for connections: each carries the same messages for one program, without
//! [`ReadFile`](AgentRequest::ReadFile), or operations on files.
//!
//! The agent sends [`AgentEvent`]s. It runs beside untrusted code, so the supervisor believes none of them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::DecodeError;
use crate::exec::ExecFile;
use crate::frame;
use crate::message::message;
use crate::notice::StepFailure;

/// A program and everything the agent needs to run it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentExec<'a> {
    /// Program and arguments.
    pub argv: Vec<&'a [u8]>,
    /// `NAME=value` each.
    pub env: Vec<&'a [u8]>,
    /// Initial directory below the work directory; empty for the work directory itself.
    pub directory: &'a str,
    /// Files to create in the work directory.
    pub files: Vec<ExecFile<'a>>,
    /// Trees that the program may change: where the container mounts them, and where the program looks for them.
    pub writable_trees: Vec<(&'a [u8], &'a [u8])>,
    /// Resource limits: the kernel's number of the resource, and the value.
    pub rlimits: Vec<(u64, u64)>,
    /// The compiled system-call filter; empty for none.
    pub seccomp_filter: &'a [u8],
    /// How denied calls are answered; none if the filter answers them itself.
    pub deny_rules: Option<Vec<SyscallDenyRules>>,
    /// The program's user, if it is not the agent's.
    pub program_user: Option<u32>,
    /// Landlock ABI version to write rules for; 0 for no rules.
    pub landlock_abi: u32,
    /// Further paths that the program may write to.
    pub writable_paths: Vec<&'a [u8]>,
}

/// What an agent that serves any number of programs does before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSetup<'a> {
    /// Files to create in the work directory.
    pub files: Vec<ExecFile<'a>>,
    /// As in [`AgentExec`].
    pub writable_trees: Vec<(&'a [u8], &'a [u8])>,
    /// The programs' user, if it is not the agent's.
    pub program_user: Option<u32>,
}

/// How denials of one system call are answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyscallDenyRules {
    /// Number of the call.
    pub syscall: u32,
    /// The first rule whose conditions all hold answers the call.
    pub rules: Vec<DenyRule>,
}

/// One answer, and when it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyRule {
    /// The error that the call returns.
    pub errno: i32,
    /// What must be true of the arguments.
    pub conditions: Vec<ArgumentCondition>,
}

/// What must be true of one argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentCondition {
    /// Index of the argument, from 0.
    pub argument: u32,
    /// The bits that are compared.
    pub mask: u64,
    /// Whether the masked argument must be among the values, or must not be.
    pub is_member: bool,
    /// The values.
    pub values: Vec<u64>,
}

/// A message from the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequest<'a> {
    /// Run a program.
    Exec(AgentExec<'a>),
    /// Part of its standard input.
    Stdin(&'a [u8]),
    /// The end of its standard input.
    StdinEnd,
    /// Send a signal to the program's process group.
    Signal(u8),
    /// Read a file, by its path below the work directory.
    ReadFile(&'a [u8]),
    /// Serve any number of programs. The agent is ready again once this is done.
    Serve(AgentSetup<'a>),
    /// Open a connection: a socket in the agent, of which the supervisor takes a copy.
    Connect,
    /// The supervisor has its copy.
    Connected,
    /// Write a file, in place of one of this name, and create the directories above it.
    PutFile(ExecFile<'a>),
    /// Read a file no larger than this.
    GetFile {
        /// Maximum size in bytes.
        max_bytes: u64,
        /// Path below the work directory.
        path: &'a [u8],
    },
    /// List a directory, by its path below the work directory; empty for the work directory itself.
    ListDirectory(&'a [u8]),
    /// Remove a file, or a directory with its contents.
    RemoveFile(&'a [u8]),
}

/// How the program ended and what it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentExit {
    /// Wait status, as `wait4` returns it.
    pub wait_status: i32,
    /// Time from just before exec to its end.
    pub wall_nanos: u64,
    /// User CPU time of the program and all descendants that were waited for.
    pub user_micros: u64,
    /// Their system CPU time.
    pub system_micros: u64,
    /// Peak resident size of the largest of them.
    pub max_rss_kib: u64,
    /// Bytes they read.
    pub read_bytes: u64,
    /// Bytes they wrote.
    pub written_bytes: u64,
}

/// A message from the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent<'a> {
    /// The agent waits for a request.
    Ready,
    /// The program is about to start.
    Started,
    /// Output on standard output.
    Stdout(&'a [u8]),
    /// Output on standard error.
    Stderr(&'a [u8]),
    /// The filter denied a call.
    SyscallDenied {
        /// Number of the call.
        syscall: u32,
        /// Its arguments.
        arguments: [u64; 6],
    },
    /// The program and everything it started ended.
    Exited(AgentExit),
    /// A step failed; nothing follows.
    Failed(StepFailure),
    /// A file in the work directory. Sent for each one after the program ended, and for each one in a listed directory.
    FileEntry {
        /// Type and permissions, as `stat` returns them.
        mode: u32,
        /// Size in bytes.
        size: u64,
        /// Path below the work directory, or name in the listed directory.
        path: &'a [u8],
    },
    /// All files were listed.
    FileListEnd,
    /// Contents of a file that was requested.
    FileContents(&'a [u8]),
    /// Why a requested file cannot be read, written, listed or removed.
    FileUnavailable(String),
    /// A file was written or removed.
    FileDone,
    /// A connection is open, until the supervisor says that it has a copy.
    Connection {
        /// Its descriptor in the agent.
        descriptor: u32,
    },
}

impl AgentEvent<'_> {
    /// Everything of a [`AgentEvent::FileContents`] frame before the contents, so that a large file need not be copied into
    /// a frame.
    pub fn file_contents_header(length: usize) -> Result<Vec<u8>, DecodeError> {
        let mut bytes = frame::encode(&AgentEvent::FileContents(&[]))?;
        let header = frame::header(length.saturating_add(bytes.len() - frame::HEADER_BYTES))?;
        bytes[..frame::HEADER_BYTES].copy_from_slice(&header);
        Ok(bytes)
    }
}

message! {
    struct<'a> AgentExec<'a> {
        argv, env, directory, files, writable_trees, rlimits, seccomp_filter, deny_rules, program_user, landlock_abi,
        writable_paths,
    }
}
message! { struct<'a> AgentSetup<'a> { files, writable_trees, program_user } }
message! { struct<'a> SyscallDenyRules { syscall, rules } }
message! { struct<'a> DenyRule { errno, conditions } }
message! { struct<'a> ArgumentCondition { argument, mask, is_member, values } }
message! {
    struct<'a> AgentExit {
        wait_status, wall_nanos, user_micros, system_micros, max_rss_kib, read_bytes, written_bytes,
    }
}
message! {
    enum<'a> AgentRequest<'a> {
        1 => Exec(exec),
        2 => Stdin(..bytes),
        3 => StdinEnd {},
        4 => Signal(signal),
        5 => ReadFile(..path),
        6 => Serve(setup),
        7 => Connect {},
        8 => Connected {},
        9 => PutFile(file),
        10 => GetFile { max_bytes, path },
        11 => ListDirectory(..path),
        12 => RemoveFile(..path),
    }
}
message! {
    enum<'a> AgentEvent<'a> {
        16 => Ready {},
        17 => Started {},
        18 => Stdout(..bytes),
        19 => Stderr(..bytes),
        20 => SyscallDenied { syscall, arguments },
        21 => Exited(exit),
        22 => Failed(failure),
        23 => FileEntry { mode, size, path },
        24 => FileListEnd {},
        25 => FileContents(..contents),
        26 => FileUnavailable(reason),
        27 => FileDone {},
        28 => Connection { descriptor },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_sent_after_its_header_is_an_ordinary_frame() {
        let header = AgentEvent::file_contents_header(3).unwrap();
        let frame = frame::encode(&AgentEvent::FileContents(b"abc")).unwrap();
        assert_eq!([&header[..], b"abc"].concat(), frame);
        assert!(AgentEvent::file_contents_header(frame::MAX_FRAME_BYTES).is_err());
        assert!(AgentEvent::file_contents_header(usize::MAX).is_err());
    }
}
