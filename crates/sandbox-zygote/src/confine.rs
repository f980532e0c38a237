//! The isolation of a fork. The steps are those of `program.rs` and `init/mod.rs` of sandbox-linux, in the same order.

use core::ffi::{c_int, c_long};

use sandbox_protocol::zygote::{ForkReport, ForkStep, INSTRUCTION_BYTES, ZygoteConfig};

use crate::message::{report_failure, send};
use crate::sys::{self, syscall};

/// The program's user and group inside.
const PROGRAM_ID: c_long = 1000;
/// See `capabilities.rs` of sandbox-linux: no special root, no change by ids, nothing kept or raised, all of it locked.
const LOCKED_SECUREBITS: c_long = 0b1110_1111;
const FILE_MODE_MASK: c_long = 0o022;
const ENOSYS: c_int = 38;

/// The descriptors of one sandbox.
pub(crate) struct Place<'a> {
    /// Where to report.
    pub(crate) report: c_int,
    /// Init's pidfd.
    pub(crate) init: c_int,
    /// Standard input, output and error.
    pub(crate) streams: [c_int; 3],
    /// The Landlock rules.
    pub(crate) rules: c_int,
    /// Files to write "0" to, to join a cgroup.
    pub(crate) cgroups: &'a [c_int],
}

/// In a fork: isolates it and reports that. A step that fails is reported, and ends the fork.
pub(crate) fn confine(config: &ZygoteConfig<'_>, place: &Place<'_>) {
    let step = |step: ForkStep, result: c_long| {
        if result < 0 {
            report_failure(place.report, step);
            sys::exit(1);
        }
        result
    };
    for entry in place.cgroups {
        step(ForkStep::JoinCgroups, join_cgroup(*entry));
    }
    let namespaces = c_long::from(config.namespaces);
    step(ForkStep::EnterNamespaces, sys::SETNS.call(place.init.into(), namespaces, 0));
    step(ForkStep::ResetKeyring, reset_keyring());
    step(ForkStep::StartSession, sys::SETSID.call(0, 0, 0));
    for (target, stream) in (0..).zip(place.streams) {
        step(ForkStep::SetUpStreams, sys::DUP3.call(stream.into(), target, 0));
    }
    sys::UMASK.call(FILE_MODE_MASK, 0, 0);
    step(ForkStep::EnterWorkDirectory, enter_work_directory());
    step(ForkStep::LockCapabilities, lock_capabilities());
    if config.has_own_ids {
        step(ForkStep::SwitchUser, drop_groups());
        step(ForkStep::SwitchUser, sys::SETRESGID.call(PROGRAM_ID, PROGRAM_ID, PROGRAM_ID));
        step(ForkStep::SwitchUser, sys::SETRESUID.call(PROGRAM_ID, PROGRAM_ID, PROGRAM_ID));
    }
    step(ForkStep::DropCapabilities, drop_capabilities());
    // Changing ids made it undumpable; a program that was started by exec would not be.
    step(ForkStep::SetDumpable, sys::PR_SET_DUMPABLE.set(1));
    step(ForkStep::SetNoNewPrivileges, sys::PR_SET_NO_NEW_PRIVS.set(1));
    let restricted = sys::LANDLOCK_RESTRICT_SELF.call(place.rules.into(), 0, 0);
    step(ForkStep::ApplyLandlock, restricted);
    let listener = step(ForkStep::InstallFilter, install_filter(config.seccomp_filter));
    let listener = c_int::try_from(listener).ok();
    let pid = u32::try_from(sys::GETPID.call(0, 0, 0)).unwrap_or(0);
    let report = ForkReport::Confined { pid }.encode();
    step(ForkStep::Report, send(place.report, &report, listener));
    step(ForkStep::CloseDescriptors, sys::CLOSE_RANGE.call(3, u32::MAX.into(), 0));
}

fn join_cgroup(entry: c_int) -> c_long {
    const SELF: &[u8] = b"0";
    // SAFETY: write(2) reads so many bytes as it is told, which the slice has.
    unsafe { syscall(sys::WRITE, c_long::from(entry), SELF.as_ptr(), SELF.len()) }
}

/// Gives it an empty session keyring. A kernel without keyrings has none to share.
fn reset_keyring() -> c_long {
    // The operation is 1; the name, a pointer, is null: anonymous.
    let joined = sys::KEYCTL_JOIN_SESSION.call(1, 0, 0);
    if joined < 0 && sys::errno() == ENOSYS { 0 } else { joined }
}

fn enter_work_directory() -> c_long {
    // SAFETY: chdir(2) reads a terminated path, which is a constant.
    unsafe { syscall(sys::CHDIR, c"/work".as_ptr()) }
}

/// Makes sure that no capability can come back: not by exec, not by changing ids.
fn lock_capabilities() -> c_long {
    const MAX_CAPABILITIES: c_long = 64;
    const AMBIENT_CLEAR_ALL: c_long = 4;
    // It fails for the first capability that this kernel does not have.
    let mut capabilities = 0..MAX_CAPABILITIES;
    while capabilities.next().is_some_and(|number| sys::PR_CAPBSET_DROP.set(number) == 0) {}
    let cleared = sys::PR_CAP_AMBIENT.set(AMBIENT_CLEAR_ALL);
    if cleared < 0 { cleared } else { sys::PR_SET_SECUREBITS.set(LOCKED_SECUREBITS) }
}

fn drop_groups() -> c_long {
    const NONE: c_long = 0;
    const NULL: c_long = 0;
    // SAFETY: setgroups(2) reads as many groups as it is told, which is none.
    unsafe { syscall(sys::SETGROUPS, NONE, NULL) }
}

fn drop_capabilities() -> c_long {
    const VERSION_3: u32 = 0x2008_0522;
    const THIS_THREAD: u32 = 0;
    let header = [VERSION_3, THIS_THREAD];
    let none = [0_u32; 6];
    // SAFETY: capset(2) of this version reads a header of two numbers and sets of six, which outlive the call.
    unsafe { syscall(sys::CAPSET, header.as_ptr(), none.as_ptr()) }
}

/// Installs the filter and returns its listener.
fn install_filter(filter: &[u8]) -> c_long {
    /// The kernel's `struct sock_fprog`.
    #[repr(C)]
    struct FilterProgram {
        length: u16,
        instructions: *const u8,
    }
    const SET_MODE_FILTER: c_long = 1;
    const NEW_LISTENER: c_long = 1 << 3;
    const WAIT_KILLABLE: c_long = 1 << 5;
    // Too many for a datagram do not arrive; an empty program is an error of the kernel's.
    let length = u16::try_from(filter.len() / INSTRUCTION_BYTES).unwrap_or(0);
    let program = FilterProgram { length, instructions: filter.as_ptr() };
    let install = |flags: c_long| {
        // SAFETY: seccomp(2) reads a sock_fprog and so many instructions as its length says, which the filter has. Both
        // outlive the call, and the kernel checks what the instructions do.
        unsafe { syscall(sys::SECCOMP, SET_MODE_FILTER, flags, &raw const program) }
    };
    // Linux before 5.19 lacks the second flag.
    let listener = install(NEW_LISTENER | WAIT_KILLABLE);
    if listener < 0 { install(NEW_LISTENER) } else { listener }
}
