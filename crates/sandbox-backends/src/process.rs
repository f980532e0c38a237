//! Facts about processes, from `/proc`.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes read and written by a process and its reaped children.
pub(crate) fn bytes_moved_by(process: u32) -> Option<(u64, u64)> {
    let mut text = [0; 512];
    let count = File::open(format!("/proc/{process}/io")).ok()?.read(&mut text).ok()?;
    let text = std::str::from_utf8(&text[..count]).ok()?;
    let value = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    Some((value("rchar:")?, value("wchar:")?))
}

/// The PID behind a descriptor, in this process's namespace.
pub(crate) fn process_id(process: BorrowedFd<'_>) -> Option<u32> {
    let path = format!("/proc/self/fdinfo/{}", process.as_raw_fd());
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
}

/// The PID of a process in the innermost of its PID namespaces.
pub(crate) fn id_inside(process: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let ids = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}
