//! Who the agent is. Where the kernel inside protects process 1 from its own user, it is the program's user. Where it does
//! not, it is root, with the rights to become the program's user and to end its processes.

use std::ffi::{c_int, c_ulong};
use std::io;

use crate::system::check;

const PR_CAPBSET_DROP: c_int = 24;
/// No kernel has more capabilities.
const CAPABILITIES: c_ulong = 64;
const UNCHANGED: u32 = u32::MAX;
const ROOT: u32 = 0;

unsafe extern "C" {
    fn setresuid(real: u32, effective: u32, saved: u32) -> c_int;
    fn setresgid(real: u32, effective: u32, saved: u32) -> c_int;
    fn setgroups(count: usize, groups: *const u32) -> c_int;
    fn prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int;
}

/// The program's user, if that is not the agent's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User(pub(crate) Option<u32>);

impl User {
    /// What is made or opened from now on is the program's.
    pub(crate) fn act_as_program(self) -> io::Result<()> {
        let Some(id) = self.0 else { return Ok(()) };
        // SAFETY: both take numbers; the agent has one thread.
        check(unsafe { setresgid(UNCHANGED, id, UNCHANGED) })?;
        // SAFETY: as above.
        check(unsafe { setresuid(UNCHANGED, id, UNCHANGED) }).map(drop)
    }

    /// From now on the agent is itself again.
    pub(crate) fn act_as_agent(self) -> io::Result<()> {
        if self.0.is_none() {
            return Ok(());
        }
        // SAFETY: both take numbers; the agent has one thread.
        check(unsafe { setresuid(UNCHANGED, ROOT, UNCHANGED) })?;
        // SAFETY: as above.
        check(unsafe { setresgid(UNCHANGED, ROOT, UNCHANGED) }).map(drop)
    }

    /// Becomes the program's user for good, without any capability.
    pub(crate) fn become_program(self) -> io::Result<()> {
        let Some(id) = self.0 else { return Ok(()) };
        for capability in 0..CAPABILITIES {
            // SAFETY: this option takes a number. The kernel refuses those that it does not have.
            unsafe { prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) };
        }
        // SAFETY: these take numbers, and an empty list.
        unsafe {
            check(setgroups(0, std::ptr::null()))?;
            check(setresgid(id, id, id))?;
            check(setresuid(id, id, id)).map(drop)
        }
    }
}
