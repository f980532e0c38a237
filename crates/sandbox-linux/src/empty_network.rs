//! Network namespaces without any interface up, for container runtimes.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::loopback;
use crate::syscall::{self, NEW_NET};
use crate::thread::on_a_thread;

/// Creates one. It exists as long as the descriptor, or a process in it.
pub fn make() -> io::Result<OwnedFd> {
    let make = || -> io::Result<OwnedFd> {
        syscall::unshare(NEW_NET)?;
        Ok(File::open("/proc/thread-self/ns/net")?.into())
    };
    on_a_thread("sandbox-network", make)
}

/// Takes the loopback interface down in the network namespace of a process, where a runtime set it
/// up.
pub fn silence(process: u32) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{process}/ns/net"))?;
    on_a_thread("sandbox-network", move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(loopback::take_down()?)
    })
}
