//! Estimates the kernel memory of a sandbox in objects that are charged to no cgroup: sockets, and
//! directories that are being read.

use std::fs;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use crate::process_tree;

/// Of each socket, pending connections included: the packet that carries the connection to an
/// `AF_UNIX` listener is 832 bytes.
const SOCKET_BYTES: u64 = 1 << 10;
/// Of each open directory: ext4 keeps the names of the block at which reading stopped. They took
/// 13 KiB in `/usr/bin`, and 22 KiB if all were of four letters.
const DIRECTORY_BYTES: u64 = 16 << 10;

/// What the sandbox below this process holds, as an estimate. Looks no further than `enough`.
pub(super) fn estimate(init: u32, enough: u64) -> u64 {
    let mut bytes = sockets(init).unwrap_or(0) * SOCKET_BYTES;
    let processes = process_tree::descendants(init);
    // Most sandboxes have fewer descriptors than would matter if all of them were directories.
    let descriptors = processes.iter().map(|process| descriptors(*process));
    let descriptors = descriptors.sum::<Option<u64>>();
    if descriptors.is_some_and(|count| bytes + count * DIRECTORY_BYTES <= enough) {
        return bytes;
    }
    for process in processes {
        if bytes > enough {
            break;
        }
        bytes += directories(process) * DIRECTORY_BYTES;
    }
    bytes
}

/// Number of sockets in the network of a process, if that is not the caller's own network.
fn sockets(process: u32) -> Option<u64> {
    let network = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let process = process.to_string();
    if network(&process)? == network("self")? {
        return None;
    }
    used(&fs::read_to_string(format!("/proc/{process}/net/sockstat")).ok()?)
}

fn used(sockstat: &str) -> Option<u64> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("sockets: used "))?;
    line.trim().parse().ok()
}

/// Number of open descriptors of a process; `None` on kernels before 6.2, which do not tell it.
fn descriptors(process: u32) -> Option<u64> {
    // A process without descriptors looks like such a kernel.
    let listed = fs::metadata(format!("/proc/{process}/fd")).map_or(1, |listed| listed.len());
    (listed > 0).then_some(listed)
}

/// Number of open directories of a process.
fn directories(process: u32) -> u64 {
    let list = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    list.filter(|descriptor| is_directory(&descriptor.path())).map(|_| 1).sum()
}

fn is_directory(descriptor: &Path) -> bool {
    // Without asking a file server, which may never answer.
    let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
    let found = statx(CWD, descriptor, flags, StatxFlags::TYPE);
    found.is_ok_and(|file| FileType::from_raw_mode(file.stx_mode.into()) == FileType::Directory)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn open_directories_are_counted_among_other_descriptors() {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "exec 3</ 4</usr 5</usr 6</dev/null; echo; read line"]);
        let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0];
        shell.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
        let counts = (directories(shell.id()), descriptors(shell.id()));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(counts.0, 3);
        assert!(counts.1.is_none_or(|all| all >= 7), "{counts:?}");
    }

    #[test]
    fn the_number_of_sockets_is_the_one_of_all_families() {
        assert_eq!(used("sockets: used 245\nTCP: inuse 8 orphan 0 tw 2\n"), Some(245));
        assert_eq!(used("TCP: inuse 8"), None);
    }
}
