//! Network namespaces with nothing in them, for containers that others build.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::loopback;
use crate::syscall::{self, NEW_NET};

/// Makes one. It is there as long as the descriptor is, or a process in it.
pub fn make() -> io::Result<OwnedFd> {
    let make = || -> io::Result<OwnedFd> {
        syscall::unshare(NEW_NET)?;
        Ok(File::open("/proc/thread-self/ns/net")?.into())
    };
    on_a_thread(make)
}

/// Takes the loopback interface down in the network namespace of a process, where somebody else brought it up.
pub fn silence(process: u32) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{process}/ns/net"))?;
    on_a_thread(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(loopback::take_down()?)
    })
}

/// Each thread has a network namespace of its own. This one ends, and nobody else moved.
fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = std::thread::Builder::new().name("sandbox-network".to_owned()).spawn(work)?;
    thread.join().map_err(|_| io::Error::other("its thread broke off"))?
}
