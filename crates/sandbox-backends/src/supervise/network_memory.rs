//! Limits kernel memory that a sandbox holds in its own network and that no cgroup counts.
//!
//! The kernel leaves two things unlimited: connections that are not yet accepted are charged to no
//! cgroup, nor is the data sent over them, and each connection may exceed the limit on socket
//! buffers by a packet in each direction. So both are sampled every few milliseconds.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use sandbox_linux::cgroup::Cgroup;

/// A program creates about 20 unaccepted connections in a millisecond.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// Reading the list of sockets takes milliseconds on a large host. While no sockets are added,
/// reading it takes at most this fraction of the time, but happens at least this often.
const LIST_SHARE: u32 = 20;
const MAX_LIST_INTERVAL: Duration = Duration::from_millis(40);
/// The list is read again after this many new sockets in any case.
const MAX_UNLISTED_SOCKETS: u64 = 64;
/// Memory of an unaccepted connection: its structures, and the receive buffer that a sandbox's
/// network settings allow.
pub(crate) const UNACCEPTED_BYTES: u64 = 20 << 10;
/// The same with the kernel's default network settings.
pub(crate) const UNACCEPTED_BYTES_BY_DEFAULT: u64 = 80 << 10;
/// The fraction of the memory limit that may be held.
const MEMORY_LIMIT_DIVISOR: u64 = 8;
const MIN_BYTES: u64 = 2 << 20;
/// The list starts with the listening sockets. If more of them are there than fit into this, some 1,700, the program is over
/// its limit: behind them, any number of connections could wait.
const MAX_LIST_BYTES: usize = 256 << 10;

/// Samples one sandbox's network.
pub(crate) struct NetworkMemory {
    next: Instant,
    /// Bytes in socket buffers, where the memory limit does not count them.
    buffers: Option<File>,
    /// A process in that network.
    process: Option<u32>,
    unaccepted_bytes: u64,
    max_bytes: u64,
    /// When to read the list again, and how many sockets there were at the last time.
    next_list: Instant,
    listed: u64,
    /// The socket counters; opened at the first sample, so that short programs do not pay for it.
    counts: Vec<File>,
}

impl NetworkMemory {
    pub(crate) fn new(
        now: Instant,
        cgroup: &dyn Cgroup,
        process: Option<u32>,
        unaccepted_bytes: u64,
        memory_limit: u64,
    ) -> Self {
        Self {
            next: now + MIN_INTERVAL,
            buffers: cgroup.uncounted_socket_memory().ok().flatten().map(OwnedFd::into),
            process,
            unaccepted_bytes,
            max_bytes: (memory_limit / MEMORY_LIMIT_DIVISOR).max(MIN_BYTES),
            next_list: now,
            listed: 0,
            counts: Vec::new(),
        }
    }

    /// When the next sample is due.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Whether the sandbox holds more than allowed.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        self.next = now + MIN_INTERVAL;
        if self.counts.is_empty() {
            let files = ["sockstat", "sockstat6"].into_iter();
            self.counts = files.filter_map(|name| self.open(name)).collect();
        }
        let buffers = self.buffers.as_ref().and_then(number).unwrap_or(0);
        let sockets: u64 = self.counts.iter().filter_map(tcp_sockets).sum();
        if buffers > self.max_bytes {
            return true;
        }
        if buffers + sockets * self.unaccepted_bytes <= self.max_bytes
            || (now < self.next_list && sockets < self.listed + MAX_UNLISTED_SOCKETS)
        {
            return false;
        }
        let begun = Instant::now();
        let lists = ["tcp", "tcp6"].into_iter().filter_map(|name| self.open(name));
        let unaccepted = lists.map(unaccepted).fold(0, u64::saturating_add);
        self.listed = sockets;
        self.next_list = now + (begun.elapsed() * LIST_SHARE).min(MAX_LIST_INTERVAL);
        buffers.saturating_add(unaccepted.saturating_mul(self.unaccepted_bytes)) > self.max_bytes
    }

    fn open(&self, name: &str) -> Option<File> {
        File::open(format!("/proc/{}/net/{name}", self.process?)).ok()
    }
}

/// The number that a control file contains.
fn number(file: &File) -> Option<u64> {
    let mut text = [0; 32];
    let count = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..count]).ok()?.trim().parse().ok()
}

/// Number of TCP sockets, from `sockstat` or `sockstat6`.
fn tcp_sockets(counts: &File) -> Option<u64> {
    let mut text = [0; 1024];
    let count = counts.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..count]).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("TCP: inuse ").or(line.strip_prefix("TCP6: inuse ")))?;
    line.split(' ').next()?.parse().ok()
}

/// Number of unaccepted connections, from the list of TCP sockets; `u64::MAX` if it has too many listening sockets.
fn unaccepted(mut list: impl io::Read) -> u64 {
    let mut text = Vec::new();
    let mut part = [0; 4096];
    while text.len() < MAX_LIST_BYTES {
        match list.read(&mut part) {
            Ok(count) if count > 0 => text.extend_from_slice(&part[..count]),
            _ => return listeners(&text).0,
        }
        let (backlog, is_complete) = listeners(&text);
        if is_complete {
            return backlog;
        }
    }
    u64::MAX
}

/// Sums the backlogs of the listening sockets, and returns whether the list has passed them.
fn listeners(list: &[u8]) -> (u64, bool) {
    const LISTENS: &str = "0A";
    let text = String::from_utf8_lossy(list);
    let mut backlog = 0;
    for line in text.lines().skip(1) {
        let mut fields = line.split_whitespace().skip(3);
        let (Some(state), Some(queues)) = (fields.next(), fields.next()) else { continue };
        if state != LISTENS {
            return (backlog, true);
        }
        let waiting = queues.split_once(':').map(|(_, waiting)| u64::from_str_radix(waiting, 16));
        backlog += waiting.and_then(Result::ok).unwrap_or(0);
    }
    (backlog, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:8AE5 00000000:0000 0A 00000000:000000FF 00:00000000 00000000     0        0 84 1 0 100 0 0 10 0
   1: 0100007F:8AE6 00000000:0000 0A 00000000:00000002 00:00000000 00000000     0        0 85 1 0 100 0 0 10 0
";

    #[test]
    fn backlogs_of_listening_sockets_are_summed_until_other_sockets_begin() {
        assert_eq!(listeners(LIST.as_bytes()), (257, false));
        let other =
            "   2: 0100007F:8AE5 0100007F:9000 01 00000000:00001000 00:00000000 00000000 0 0 0 1\n";
        assert_eq!(listeners(format!("{LIST}{other}").as_bytes()), (257, true));
        assert_eq!(listeners(b""), (0, false));
    }

    #[test]
    fn more_listening_sockets_than_are_read_count_as_without_bound() {
        let line = LIST.lines().nth(1).unwrap();
        let list = |count| format!("sl\n{}", format!("{line}\n").repeat(count));
        assert_eq!(unaccepted(list(1000).as_bytes()), 255_000);
        assert_eq!(unaccepted(list(2500).as_bytes()), u64::MAX);
    }

    #[test]
    fn the_kernel_counts_as_is_expected() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let _clients: Vec<_> =
            (0..3).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
        assert!(unaccepted(File::open("/proc/self/net/tcp").unwrap()) >= 3);
        assert!(tcp_sockets(&File::open("/proc/self/net/sockstat").unwrap()).unwrap() >= 7);
    }
}
