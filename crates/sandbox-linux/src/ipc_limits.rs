//! Bounds the System V message queues and semaphore sets of an IPC namespace.
//!
//! The kernel charges messages one by one, but keeps a page while one of them is left in it. With
//! many queues a program can fill page after page, remove all but one message of each, and hold
//! many times its memory limit.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;

use rustix::thread::{LinkNameSpaceType, Uid, move_into_link_name_space, set_thread_res_uid};

use crate::thread::on_a_thread;

/// Both numbers are the kernel's own defaults of former times, with which programs lived for
/// decades.
const SETTINGS: [(&str, &str); 2] = [
    ("/proc/sys/kernel/msgmni", "16"),
    // Semaphores of a set and of all sets, operations of one call, and the number of sets.
    ("/proc/sys/kernel/sem", "32000 1024000000 500 128"),
];

/// Whether root of a user namespace may set them in an IPC namespace that it owns: since Linux 6.9.
pub fn are_settable_inside() -> bool {
    let kernel = rustix::system::uname();
    kernel.release().to_str().is_ok_and(|release| is_since(release, (6, 9)))
}

fn is_since(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(['.', '-', '+']).map_while(|number| number.parse().ok());
    numbers.next().zip(numbers.next()).is_some_and(|release| release >= version)
}

/// Sets them in the caller's namespace, whose root the caller is.
pub(crate) fn set() -> io::Result<()> {
    SETTINGS.iter().try_for_each(|(path, value)| fs::write(path, value))
}

/// Sets them in the namespace of a process. Needs root.
pub fn set_for(process: u32) -> io::Result<()> {
    let namespace = File::open(format!("/proc/{process}/ns/ipc"))?;
    on_a_thread("sandbox-ipc", move || {
        move_into_link_name_space(
            namespace.as_fd(),
            Some(LinkNameSpaceType::InterProcessCommunication),
        )?;
        // Since Linux 6.9 only root of the namespace's owner may write, before only real root.
        let owner = Uid::from_raw(fs::metadata(SETTINGS[0].0)?.uid());
        set_thread_res_uid(owner, owner, owner)?;
        set()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        for release in ["6.9.0", "6.18.44-fc", "7.0", "6.12+deb13-amd64"] {
            assert!(is_since(release, (6, 9)), "{release}");
        }
        for release in ["6.8.12", "5.15.0-91-generic", "", "6"] {
            assert!(!is_since(release, (6, 9)), "{release}");
        }
    }
}
