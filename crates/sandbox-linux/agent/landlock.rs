//! Rules about files, by path, beside the mounts: the same that stand behind the native walls. The library that makes
//! those is not here, so the kernel is told in its own numbers.

use std::ffi::{CStr, CString, c_int, c_long};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::system::check;

const SYS_CREATE_RULESET: c_long = 444;
const SYS_ADD_RULE: c_long = 445;
const SYS_RESTRICT_SELF: c_long = 446;
const PATH_BENEATH: c_int = 1;
const O_PATH: c_int = 0o10_000_000;
const O_CLOEXEC: c_int = 0o2_000_000;

const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const CONTROL_DEVICE: u64 = 1 << 15;
/// To execute, to read files and to list directories.
const READ: u64 = 1 | READ_FILE | 1 << 3;
/// What can be done with a file: to execute, write, read, truncate and control it.
const OF_FILES: u64 = 1 | WRITE_FILE | READ_FILE | 1 << 14 | CONTROL_DEVICE;
/// Abstract sockets and signals reach no further than the program's own processes.
const SCOPES: u64 = 0b11;

const WRITABLE: &[&CStr] = &[c"/work", c"/tmp", c"/dev/shm"];
/// To be read and written, but not controlled: that leads to their drivers' code.
const DEVICES: &[&CStr] =
    &[c"/dev/null", c"/dev/zero", c"/dev/full", c"/dev/random", c"/dev/urandom"];
/// To be controlled too; what reaches further is refused by the filter.
const TERMINALS: &[&CStr] = &[c"/dev/pts", c"/dev/tty"];

/// As the kernel reads it, of the version that has all of it.
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scopes: u64,
}

/// As the kernel reads it.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    place: c_int,
}

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    #[link_name = "open"]
    fn open_of_c(path: *const std::ffi::c_char, flags: c_int, ...) -> c_int;
}

/// Rules for a program that is started later.
pub(crate) struct Rules(OwnedFd);

impl Rules {
    /// Everything may be read and executed, because everything in the root was put there for that. Written is only to
    /// the program's own places, of which `more` are some.
    ///
    /// `version` is what the kernel has of this: an older one takes the part that it knows.
    pub(crate) fn new<'a>(version: u64, more: impl Iterator<Item = &'a Path>) -> io::Result<Self> {
        let all = every_access(version);
        let handled =
            Handled { files: all, network: 0, scopes: if version >= 6 { SCOPES } else { 0 } };
        let size: usize = match version {
            0..=3 => 8,
            4..=5 => 16,
            _ => 24,
        };
        // SAFETY: the kernel reads so many bytes from where this points, which has as many or more.
        let made = unsafe { syscall(SYS_CREATE_RULESET, &raw const handled, size, 0_u32) };
        let made = check(c_int::try_from(made).map_err(io::Error::other)?)?;
        // SAFETY: it was just opened and is nobody else's.
        let rules = Self(unsafe { OwnedFd::from_raw_fd(made) });
        rules.allow(c"/", READ)?;
        for path in WRITABLE {
            rules.allow(path, all)?;
        }
        for path in more {
            // The kernel takes no rules about directories for a file.
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
        // SAFETY: the path ends with a zero byte.
        let place = match check(unsafe { open_of_c(path.as_ptr(), O_PATH | O_CLOEXEC) }) {
            // Not every container has every device; what is not there needs no rule.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => result?,
        };
        // SAFETY: it was just opened and is nobody else's.
        let place = unsafe { OwnedFd::from_raw_fd(place) };
        let rule = Beneath { allowed, place: place.as_raw_fd() };
        // SAFETY: the kernel reads a rule of this kind from where this points, which is one.
        let added = unsafe {
            syscall(SYS_ADD_RULE, self.0.as_raw_fd(), PATH_BENEATH, &raw const rule, 0_u32)
        };
        check(c_int::try_from(added).map_err(io::Error::other)?).map(drop)
    }

    /// Puts the rules over this process for good.
    pub(crate) fn restrict(&self) -> io::Result<()> {
        // SAFETY: this takes two numbers.
        let result = unsafe { syscall(SYS_RESTRICT_SELF, self.0.as_raw_fd(), 0_u32) };
        check(c_int::try_from(result).map_err(io::Error::other)?).map(drop)
    }
}

/// Every kind of access that this version rules.
fn every_access(version: u64) -> u64 {
    let kinds = match version {
        0..=1 => 13,
        // Moving between directories.
        2 => 14,
        // Truncating.
        3..=4 => 15,
        // Controlling devices.
        _ => 16,
    };
    (1 << kinds) - 1
}
