//! Changes options of file systems in a container for which its runtime has no setting, from
//! outside before a program runs in it.

use std::io;

use rustix::fs::CWD;
use rustix::mount::{FsPickFlags, fsconfig_reconfigure, fsconfig_set_string, fspick};

/// As in the native backend (`rootfs.rs`). Complete: options that are not given are reset.
const OPTIONS: &[(&str, &[(&str, &str)])] = &[
    ("proc", &[("subset", "pid"), ("hidepid", "invisible")]),
    ("dev/pts", &[("ptmxmode", "0666"), ("mode", "0620"), ("max", "16")]),
];

/// Makes `/proc` show only processes of the same user, and limits the number of terminals, in the
/// container of this process.
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
