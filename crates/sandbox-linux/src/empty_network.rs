//! Network namespaces with nothing in them, for containers that others build.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::loopback;
use crate::syscall::{self, NEW_NET};
use crate::thread::on_a_thread;

/// Makes one. It is there as long as the descriptor is, or a process in it.
pub fn make() -> io::Result<OwnedFd> {
    let make = || -> io::Result<OwnedFd> {
        syscall::unshare(NEW_NET)?;
        Ok(File::open("/proc/thread-self/ns/net")?.into())
    };
    on_a_thread("sandbox-network", make)
}

/// Takes the loopback interface down in the network namespace of a process, where somebody else brought it up.
pub fn silence(process: u32) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{process}/ns/net"))?;
    on_a_thread("sandbox-network", move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(loopback::take_down()?)
    })
}
