//! What the launcher, init and the program's process report to the supervisor.

use alloc::string::String;

use crate::message::message;

/// A step that failed: what was attempted, and the kernel's error number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// The step, as the rest of "could not …".
    pub step: String,
    /// The error number; 0 if there is none.
    pub errno: i32,
}

/// How a program ended and what it used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExitNotice {
    /// Exit code, if it exited.
    pub code: Option<i32>,
    /// Signal that killed it, if one did.
    pub signal: Option<i32>,
    /// Time from just before exec to its end.
    pub wall_nanos: u64,
    /// User CPU time of the program and all descendants that were waited for.
    pub user_micros: u64,
    /// Their system CPU time.
    pub system_micros: u64,
    /// Peak resident size of the largest of them.
    pub max_rss_kib: u64,
    /// User CPU time of init, which the cgroup counts too.
    pub init_user_micros: u64,
    /// System CPU time of init.
    pub init_system_micros: u64,
    /// Bytes read by the program and its descendants.
    pub read_bytes: u64,
    /// Bytes written by them.
    pub written_bytes: u64,
}

/// One report on the slot's socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Init was cloned; or, in an instance, the shim of a program. Descriptor: its pidfd.
    Cloned,
    /// Init is isolated and waits for a request. Descriptor: the work directory.
    Ready {
        /// The program's user and group on the host.
        owner: u32,
    },
    /// The program is about to start. Descriptor, if there is a filter that was not reported yet: its notifications.
    Starting,
    /// A step failed.
    Failed(StepFailure),
    /// The program ended, and so did everything it left behind.
    Exited(ExitNotice),
    /// Init was reaped, and with it every process of the sandbox.
    Gone,
    /// The program can reach the egress proxy. Descriptor: a socket that listens on its loopback interface.
    ProxyListener,
    /// The work directory is now that of a workspace. Descriptor: the directory.
    Workspace,
    /// A process of the slot is confined and waits to become the program. Descriptor, if there is a filter: its
    /// notifications.
    Confined,
    /// The files of a request without a program are written.
    FilesWritten,
    /// Every address is local. Descriptors: the listeners, in as many messages as it takes.
    Network,
    /// The sandbox is an instance, and programs can be started in it.
    Serving,
}

message! { struct<'a> StepFailure { step, errno } }
message! {
    struct<'a> ExitNotice {
        code, signal, wall_nanos, user_micros, system_micros, max_rss_kib, init_user_micros, init_system_micros,
        read_bytes, written_bytes,
    }
}
message! {
    enum<'a> Notice {
        1 => Cloned {},
        2 => Ready { owner },
        3 => Starting {},
        4 => Failed(failure),
        5 => Exited(exit),
        6 => Gone {},
        7 => ProxyListener {},
        8 => Workspace {},
        9 => Confined {},
        10 => FilesWritten {},
        11 => Network {},
        12 => Serving {},
    }
}
