//! The loopback interface of this network namespace: up, down, and listening on it.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

/// Backlog of the listener.
const WAITING: i32 = 64;

/// Settings of a network namespace, below `/proc/sys/net`. Connections that are not yet accepted
/// are charged to no cgroup, so they must not hold much memory; nor must the addresses of closed
/// connections.
const SETTINGS: [(&str, &[u8]); 2] = [
    // Minimum, default and maximum of the receive buffer.
    ("ipv4/tcp_rmem", b"4096 16384 131072"),
    ("ipv4/tcp_max_tw_buckets", b"4096"),
];

/// Limits the memory of connections in this namespace, and sets `lo` up. In a new network namespace
/// it is down, without an address. `settings` is the directory `/proc/sys/net`, which shows the
/// reader's own namespace.
pub(crate) fn bring_up(settings: BorrowedFd<'_>) -> Result<(), Errno> {
    for (name, value) in SETTINGS {
        let file = openat(settings, name, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(file, value)?;
    }
    set_flags(libc::IFF_UP | libc::IFF_RUNNING)
}

/// Sets `lo` down and removes its addresses, as in a new namespace.
pub(crate) fn take_down() -> Result<(), Errno> {
    // Setting the unspecified address removes the current one. IPv6 addresses are removed with the
    // interface.
    change(libc::SIOCSIFADDR, |request| {
        request.ifr_ifru.ifru_addr.sa_family =
            libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default();
    })?;
    set_flags(0)
}

fn set_flags(flags: libc::c_int) -> Result<(), Errno> {
    change(libc::SIOCSIFFLAGS, |request| {
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
    })
}

/// Makes an ioctl request for `lo`.
fn change(what: libc::c_ulong, fill: impl FnOnce(&mut libc::ifreq)) -> Result<(), Errno> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all-zero is a valid ifreq: a name of no characters and a union of plain numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, letter) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *slot = libc::c_char::try_from(*letter).unwrap_or_default();
    }
    fill(&mut request);
    // SAFETY: those that change an interface demand a socket and a pointer to an ifreq with a terminated
    // name, which is read only.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), what as _, &raw const request) };
    if result == -1 {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    }
    Ok(())
}

/// A non-blocking socket that listens on 127.0.0.1. It belongs to this namespace even if it is sent
/// elsewhere.
pub(crate) fn listen_on(port: u16) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    listen(&socket, WAITING)?;
    Ok(socket)
}
