//! A network in which every address is local, and only the supervisor's listeners accept
//! connections.
//!
//! All addresses belong to `lo`. The sockets are created here, inside, and bound by the supervisor:
//! a socket stays in the namespace in which it was created. A connection to an address and port
//! with a listener reaches it; the kernel refuses all others immediately. A packet socket lets the
//! supervisor see the first packet of each.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_freebind, set_ipv6_v6only};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with};

use crate::netlink;

/// Maximum number of descriptors in one message.
const BATCH: usize = 24;
/// Number of sockets for listeners, one for each address and port.
const LISTENERS: usize = 4 * BATCH;
/// The sockets that are sent first: the packet socket, and two for DNS, over UDP and TCP.
pub const FIRST_SOCKETS: usize = 3;
/// Number of all sockets.
pub const ALL_SOCKETS: usize = FIRST_SOCKETS + LISTENERS;
/// The default address of a DNS server.
const NAME_SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 53);
const WAITING: i32 = 128;

/// Further addresses of the interface, from the ranges for documentation.
const OWN_ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
];

/// The sockets for the supervisor: first [`Ends::first`], then the listeners in batches.
pub(crate) struct NetworkSockets {
    pub(crate) first: [OwnedFd; FIRST_SOCKETS],
    pub(crate) listeners: Vec<OwnedFd>,
}

impl NetworkSockets {
    /// In messages of maximum size.
    pub(crate) fn batches(&self) -> impl Iterator<Item = &[OwnedFd]> {
        std::iter::once(&self.first[..]).chain(self.listeners.chunks(BATCH))
    }
}

/// Configures the network and creates its sockets. `lo` is up already.
pub(crate) fn open() -> Result<NetworkSockets, Errno> {
    let [v4, v6] = OWN_ADDRESSES;
    netlink::add_address(v4)?;
    netlink::make_all_local(v4)?;
    // A kernel without IPv6 has no such sockets.
    let has_v6 = netlink::add_address(v6).and_then(|()| netlink::make_all_local(v6)).is_ok();
    let ear = packet_socket()?;
    let datagrams = socket(AddressFamily::INET, SocketType::DGRAM)?;
    bind(&datagrams, &NAME_SERVER)?;
    let connections = socket(AddressFamily::INET, SocketType::STREAM)?;
    bind(&connections, &NAME_SERVER)?;
    listen(&connections, WAITING)?;
    let family = if has_v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let listener = || {
        let socket = socket(family, SocketType::STREAM)?;
        if has_v6 {
            // For both families, and for addresses that belong to the interface only through a
            // route.
            set_ipv6_v6only(&socket, false)?;
            set_ipv6_freebind(&socket, true)?;
        }
        Ok(socket)
    };
    let listeners = (0..LISTENERS).map(|_| listener()).collect::<Result<_, Errno>>()?;
    Ok(NetworkSockets { first: [ear, datagrams, connections], listeners })
}

fn socket(family: AddressFamily, kind: SocketType) -> Result<OwnedFd, Errno> {
    socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// The packet socket: receives the start of each connection's first packet and of each datagram.
fn packet_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // With protocol 0 it receives nothing until the filter is attached.
    let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, flags, None)?;
    attach(&socket, PACKET_FILTER)?;
    bind_to_loopback(&socket)?;
    Ok(socket)
}

/// From here on it receives every packet of `lo`.
fn bind_to_loopback(socket: &OwnedFd) -> Result<(), Errno> {
    // SAFETY: all-zero is a valid sockaddr_ll: numbers and bytes.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::sa_family_t::try_from(libc::AF_PACKET).unwrap_or_default();
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).unwrap_or_default().to_be();
    address.sll_ifindex = 1;
    let length = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or_default();
    // SAFETY: the pointer is to an address of that length, which is only read.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

const fn step(code: u16, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt: jump_true, jf: jump_false, k: value }
}

/// Bytes received of each packet: the largest headers that matter.
const MAX_PACKET_BYTES: u32 = 128;

/// Accepts IPv4 and IPv6 packets that start connections (SYN without ACK), and datagrams. A packet
/// starts with its network header and is seen twice, sent and received; only the second counts.
const PACKET_FILTER: &[libc::sock_filter] = &{
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_WORD: u16 = 0x20;
    const LOAD_BYTE_BEHIND: u16 = 0x50;
    const HEADER_LENGTH: u16 = 0xb1;
    const AND: u16 = 0x54;
    const SHIFT_RIGHT: u16 = 0x74;
    const EQUAL: u16 = 0x15;
    const JUMP: u16 = 0x05;
    const RETURN: u16 = 0x06;
    // The direction of the packet, from the kernel.
    const PACKET_TYPE: u32 = 0xffff_f000 + 4;
    const TO_US: u32 = 0;
    const TCP: u32 = 6;
    const UDP: u32 = 17;
    const SYN_ACK: u32 = 0x12;
    const SYN: u32 = 0x02;
    [
        step(LOAD_WORD, 0, 0, PACKET_TYPE),
        step(EQUAL, 0, 17, TO_US),
        step(LOAD_BYTE, 0, 0, 0),
        step(SHIFT_RIGHT, 0, 0, 4),
        step(EQUAL, 7, 0, 6),
        step(EQUAL, 0, 13, 4),
        // IPv4: the protocol, then the TCP flags behind a header of variable length.
        step(LOAD_BYTE, 0, 0, 9),
        step(EQUAL, 10, 0, UDP),
        step(EQUAL, 0, 10, TCP),
        step(HEADER_LENGTH, 0, 0, 0),
        step(LOAD_BYTE_BEHIND, 0, 0, 13),
        step(JUMP, 0, 0, 4),
        // IPv6.
        step(LOAD_BYTE, 0, 0, 6),
        step(EQUAL, 4, 0, UDP),
        step(EQUAL, 0, 4, TCP),
        step(LOAD_BYTE, 0, 0, 40 + 13),
        // Both.
        step(AND, 0, 0, SYN_ACK),
        step(EQUAL, 0, 1, SYN),
        step(RETURN, 0, 0, MAX_PACKET_BYTES),
        step(RETURN, 0, 0, 0),
    ]
};

fn attach(socket: &OwnedFd, filter: &[libc::sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| Errno::INVAL)?,
        filter: filter.as_ptr().cast_mut(),
    };
    let length = libc::socklen_t::try_from(size_of_val(&program)).unwrap_or_default();
    // SAFETY: the program and what it points to live through the call, and the kernel only reads them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}
