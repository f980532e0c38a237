//! A network namespace with nothing in it, for containers that others build.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use crate::syscall::{self, NEW_NET};

/// Makes one. It is there as long as the descriptor is, or a process in it.
pub fn make() -> io::Result<OwnedFd> {
    let make = || -> io::Result<OwnedFd> {
        syscall::unshare(NEW_NET)?;
        Ok(File::open("/proc/thread-self/ns/net")?.into())
    };
    // A thread leaves for it alone, and ends.
    let thread = std::thread::Builder::new().name("sandbox-network".to_owned()).spawn(make)?;
    thread.join().map_err(|_| io::Error::other("its thread broke off"))?
}
