//! Options of file systems in a container that its builder has no setting for, changed from outside before a program
//! runs there.

use std::io;

use rustix::fs::CWD;
use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fsconfig_set_string, fspick};

/// As in the native walls: `place.rs`. All of them: what is not said becomes what it is by default.
const OPTIONS: &[(&str, &[(&str, &str)])] = &[
    ("proc", &[("subset", "pid"), ("hidepid", "invisible")]),
    ("dev/pts", &[("ptmxmode", "0666"), ("mode", "0620"), ("max", "16")]),
];

/// Has `/proc` show processes only, and those of the same user, and bounds the number of terminals, in the container
/// of this process.
pub fn restrict(process: u32) -> io::Result<()> {
    for (place, options) in OPTIONS {
        let place = format!("/proc/{process}/root/{place}");
        let picked =
            fspick(CWD, place, FsPickFlags::FSPICK_CLOEXEC | FsPickFlags::FSPICK_NO_AUTOMOUNT)?;
        for (option, value) in *options {
            fsconfig_set_string(&picked, *option, *value)?;
        }
        fsconfig_reconfigure(&picked)?;
    }
    Ok(())
}
