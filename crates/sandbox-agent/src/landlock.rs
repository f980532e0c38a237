//! The Landlock rules: the same as the native backend's, written with the kernel's own structures, because the library that
//! the native backend uses cannot be a dependency here.

use std::ffi::{CStr, CString, c_char, c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::sys::{check, check_fd};

const SYS_CREATE_RULESET: c_long = 444;
const SYS_ADD_RULE: c_long = 445;
const SYS_RESTRICT_SELF: c_long = 446;
const PATH_BENEATH: c_long = 1;
const NO_FLAGS: c_long = 0;
const O_PATH: c_int = 0o10_000_000;
const O_CLOEXEC: c_int = 0o2_000_000;

const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const CONTROL_DEVICE: u64 = 1 << 15;
/// Execute, read files, list directories.
const READ: u64 = 1 | READ_FILE | 1 << 3;
/// Accesses to files: execute, write, read, truncate, device control.
const OF_FILES: u64 = 1 | WRITE_FILE | READ_FILE | 1 << 14 | CONTROL_DEVICE;
/// Abstract sockets and signals reach only the program's own processes.
const SCOPES: u64 = 0b11;

const WRITABLE: &[&CStr] = &[c"/work", c"/tmp", c"/dev/shm"];
/// Read and write, without device control: that leads into their drivers' code.
const DEVICES: &[&CStr] =
    &[c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/random", c"/dev/urandom"];
/// Device control too; the filter denies what reaches further.
const TERMINALS: &[&CStr] = &[c"/dev/pts", c"/dev/tty"];

/// The kernel's `struct landlock_ruleset_attr` of ABI 6.
#[repr(C)]
struct RulesetAttributes {
    files: u64,
    network: u64,
    scopes: u64,
}

/// The kernel's `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    directory: c_int,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    #[link_name = "open"]
    fn c_open(path: *const c_char, flags: c_int, ...) -> c_int;
}

/// A rule set for a program that is started later.
#[derive(Debug)]
pub(crate) struct Rules(OwnedFd);

impl Rules {
    /// Everything may be read and executed, because everything in the root was put there for that. Only the program's own
    /// directories and `writable` may be written to.
    ///
    /// `abi` is the version that the kernel implements: an older kernel gets the part it knows.
    pub(crate) fn new<'a>(abi: u32, writable: impl Iterator<Item = &'a Path>) -> io::Result<Self> {
        let all = file_accesses(abi);
        let scopes = if abi >= 6 { SCOPES } else { 0 };
        let attributes = RulesetAttributes { files: all, network: 0, scopes };
        let size: usize = match abi {
            0..=3 => 8,
            4..=5 => 16,
            _ => size_of::<RulesetAttributes>(),
        };
        // SAFETY: landlock_create_ruleset(2) reads `size` bytes of the attributes, which are at least as large.
        let created = unsafe { syscall(SYS_CREATE_RULESET, &raw const attributes, size, NO_FLAGS) };
        // SAFETY: the call opens a descriptor, which nothing else owns.
        let rules = Self(unsafe { check_fd(created) }?);
        rules.allow(c"/", READ)?;
        for path in WRITABLE {
            rules.allow(path, all)?;
        }
        for path in writable {
            // The kernel refuses a rule for a file that names accesses to directories.
            let allowed = if path.is_dir() { all } else { all & OF_FILES };
            rules.allow(&CString::new(path.as_os_str().as_bytes())?, allowed)?;
        }
        for path in DEVICES {
            rules.allow(path, READ_FILE | WRITE_FILE)?;
        }
        for path in TERMINALS {
            rules.allow(path, (READ_FILE | WRITE_FILE | CONTROL_DEVICE) & all)?;
        }
        Ok(rules)
    }

    fn allow(&self, path: &CStr, allowed: u64) -> io::Result<()> {
        // SAFETY: open(2) reads a terminated path, which outlives the call; these flags need no third argument.
        let opened = unsafe { c_open(path.as_ptr(), O_PATH | O_CLOEXEC) };
        // SAFETY: the call opens a descriptor, which nothing else owns.
        let directory = match unsafe { check_fd(opened.into()) } {
            // Not every container has every device; a path that does not exist needs no rule.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => result?,
        };
        let rule = PathBeneath { allowed, directory: directory.as_raw_fd() };
        let ruleset: c_long = self.0.as_raw_fd().into();
        // SAFETY: landlock_add_rule(2) with this type reads a landlock_path_beneath_attr, which outlives the call.
        let added =
            unsafe { syscall(SYS_ADD_RULE, ruleset, PATH_BENEATH, &raw const rule, NO_FLAGS) };
        check(c_int::try_from(added).map_err(io::Error::other)?).map(drop)
    }

    /// Applies the rules to this process, for good.
    pub(crate) fn restrict(&self) -> io::Result<()> {
        let ruleset: c_long = self.0.as_raw_fd().into();
        // SAFETY: landlock_restrict_self(2) takes two numbers.
        let result = unsafe { syscall(SYS_RESTRICT_SELF, ruleset, NO_FLAGS) };
        check(c_int::try_from(result).map_err(io::Error::other)?).map(drop)
    }
}

/// Every access to files that this ABI version knows.
fn file_accesses(abi: u32) -> u64 {
    let count = match abi {
        0..=1 => 13,
        // Moving between directories.
        2 => 14,
        // Truncating.
        3..=4 => 15,
        // Device control.
        _ => 16,
    };
    (1 << count) - 1
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The version that this host's kernel has; 0 if it has none.
    fn abi() -> u32 {
        const VERSION: c_long = 1;
        let nothing: *const RulesetAttributes = std::ptr::null();
        // SAFETY: with this flag the call reads no attributes.
        let abi = unsafe { syscall(SYS_CREATE_RULESET, nothing, 0_usize, VERSION) };
        u32::try_from(abi).unwrap_or(0)
    }

    #[test]
    fn a_version_knows_the_accesses_of_those_before_it() {
        for (abi, highest) in [(1, 12), (2, 13), (3, 14), (4, 14), (5, 15), (6, 15), (99, 15)] {
            assert_eq!(file_accesses(abi), (1 << (highest + 1)) - 1, "{abi}");
        }
    }

    #[test]
    fn only_the_named_directory_can_be_written_to() {
        let abi = abi();
        if abi == 0 {
            return; // A kernel without Landlock.
        }
        // Not below /tmp, which is the program's.
        let place = std::path::PathBuf::from("/var/tmp");
        let place = place.join(format!("sandbox-agent.{}.landlock", std::process::id()));
        let allowed = place.join("allowed");
        fs::create_dir_all(&allowed).unwrap();
        for version in 1..=abi {
            let rules = Rules::new(version, std::iter::once(allowed.as_path())).unwrap();
            let (inside, outside) = (allowed.join("file"), place.join("file"));
            // For good, so on a thread of its own.
            let outcome = std::thread::spawn(move || {
                const PR_SET_NO_NEW_PRIVS: c_int = 38;
                unsafe extern "C" {
                    fn prctl(option: c_int, ...) -> c_int;
                }
                // SAFETY: this option takes four numbers.
                unsafe { prctl(PR_SET_NO_NEW_PRIVS, 1_u64, 0_u64, 0_u64, 0_u64) };
                rules.restrict().unwrap();
                let write = |path| fs::write(path, "x").map_err(|error| error.kind());
                (write(inside), write(outside), fs::read("/etc/passwd").is_ok())
            });
            let denied = Err(io::ErrorKind::PermissionDenied);
            assert_eq!(outcome.join().unwrap(), (Ok(()), denied, true), "version {version}");
        }
        fs::remove_dir_all(&place).unwrap();
    }
}
