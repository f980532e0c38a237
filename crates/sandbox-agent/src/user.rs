//! The agent's user. In a kernel that protects process 1 from its own user, the agent has the program's user. In others it
//! is root, with the capabilities to switch to the program's user and to kill its processes.

use std::ffi::{c_int, c_ulong};
use std::io;

use crate::sys::check;

const PR_CAPBSET_DROP: c_int = 24;
/// No kernel has more capabilities.
const MAX_CAPABILITIES: c_ulong = 64;
const UNCHANGED: u32 = u32::MAX;
const ROOT: u32 = 0;

unsafe extern "C" {
    // These take numbers only. They change the whole process, which has one thread.
    safe fn setresuid(real: u32, effective: u32, saved: u32) -> c_int;
    safe fn setresgid(real: u32, effective: u32, saved: u32) -> c_int;
    fn setgroups(count: usize, groups: *const u32) -> c_int;
    fn prctl(option: c_int, ...) -> c_int;
}

/// The program's user, if it is not the agent's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User(Option<u32>);

impl User {
    /// Root would not be another user than the agent.
    pub(crate) fn new(id: Option<u32>) -> Self {
        Self(id.filter(|id| *id != ROOT))
    }

    /// Makes the program's user the effective one: what is created or opened from now on is the program's.
    pub(crate) fn act_as_program(self) -> io::Result<()> {
        let Some(id) = self.0 else { return Ok(()) };
        check(setresgid(UNCHANGED, id, UNCHANGED))?;
        check(setresuid(UNCHANGED, id, UNCHANGED)).map(drop)
    }

    /// Undoes [`act_as_program`](Self::act_as_program).
    pub(crate) fn act_as_agent(self) -> io::Result<()> {
        if self.0.is_none() {
            return Ok(());
        }
        check(setresuid(UNCHANGED, ROOT, UNCHANGED))?;
        check(setresgid(UNCHANGED, ROOT, UNCHANGED)).map(drop)
    }

    /// Becomes the program's user for good, without any capability.
    pub(crate) fn become_program(self) -> io::Result<()> {
        let Some(id) = self.0 else { return Ok(()) };
        for capability in 0..MAX_CAPABILITIES {
            // SAFETY: this option reads one number, passed with the width of a register. It fails for capabilities
            // that this kernel does not have.
            unsafe { prctl(PR_CAPBSET_DROP, capability) };
        }
        // SAFETY: setgroups(2) reads as many groups as it is told, which is none.
        check(unsafe { setgroups(0, std::ptr::null()) })?;
        check(setresgid(id, id, id))?;
        check(setresuid(id, id, id)).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn an_agent_of_the_programs_user_changes_nothing() {
        for user in [User::new(None), User::new(Some(ROOT))] {
            let before = std::fs::metadata("/proc/self").unwrap().uid();
            user.act_as_program().unwrap();
            user.act_as_agent().unwrap();
            user.become_program().unwrap();
            assert_eq!(std::fs::metadata("/proc/self").unwrap().uid(), before);
        }
    }
}
