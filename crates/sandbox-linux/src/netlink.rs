//! Adds addresses and routes to this network namespace, through netlink.
//!
//! Only three messages are needed, so they are encoded here: a library for netlink would be larger
//! than everything else in this process.

use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// `lo` is the first interface of every namespace.
const LOOPBACK: u32 = 1;

const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const ERROR: u16 = 2;
/// Flags of a request that creates something, to be acknowledged.
const FLAGS: u16 = 0x1 | 0x4 | 0x400;
const HEADER: usize = 16;

/// Attributes of an address.
const LOCAL_ADDRESS: u16 = 2;
const OTHER_ADDRESS: u16 = 1;

/// Fields of a route: table, origin, scope, and that it is local.
const LOCAL_TABLE: u8 = 255;
const BY_HAND: u8 = 3;
const HOST_SCOPE: u8 = 254;
const TO_THIS_HOST: u8 = 2;
/// Attributes of a route.
const INTERFACE: u16 = 4;

/// Adds an address to `lo`, for programs that check whether there is one besides the loopback
/// address.
pub(crate) fn add_address(address: IpAddr) -> Result<(), Errno> {
    let (family, bytes) = parts(address);
    let mut message = Message::new(NEW_ADDRESS);
    let all_bits = u8::try_from(bytes.len() * 8).unwrap_or(u8::MAX);
    message.bytes(&[family, all_bits, 0, 0]).bytes(&LOOPBACK.to_ne_bytes());
    message.attribute(LOCAL_ADDRESS, &bytes).attribute(OTHER_ADDRESS, &bytes);
    message.send()
}

/// Makes every address of a family local to this namespace.
pub(crate) fn make_all_local(like: IpAddr) -> Result<(), Errno> {
    let (family, _) = parts(like);
    let mut message = Message::new(NEW_ROUTE);
    message
        .bytes(&[family, 0, 0, 0, LOCAL_TABLE, BY_HAND, HOST_SCOPE, TO_THIS_HOST])
        .bytes(&[0; 4]);
    message.attribute(INTERFACE, &LOOPBACK.to_ne_bytes());
    message.send()
}

fn parts(address: IpAddr) -> (u8, Vec<u8>) {
    let (family, bytes) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    (u8::try_from(family.as_raw()).unwrap_or_default(), bytes)
}

/// A message under construction.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16) -> Self {
        let mut bytes = vec![0; 4];
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(FLAGS.to_ne_bytes());
        // Sequence and port numbers: there is only one message.
        bytes.extend([0; 8]);
        Self(bytes)
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let length = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.bytes(&length.to_ne_bytes()).bytes(&kind.to_ne_bytes()).bytes(value)
    }

    /// Sends it, and waits for the acknowledgement.
    fn send(mut self) -> Result<(), Errno> {
        let length = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        let socket: OwnedFd = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // NETLINK_ROUTE.
            None,
        )?;
        send(socket.as_fd(), &self.0, SendFlags::empty())?;
        let mut answer = [0; 512];
        let (read, _) = recv(socket.as_fd(), &mut answer[..], RecvFlags::empty())?;
        judge(&answer[..read])
    }
}

/// The error of an acknowledgement; error 0 is success.
fn judge(answer: &[u8]) -> Result<(), Errno> {
    let number = |at: usize| -> Option<[u8; 4]> { answer.get(at..at + 4)?.try_into().ok() };
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    match number(HEADER).map(i32::from_ne_bytes) {
        Some(0) if kind == Some(ERROR) => Ok(()),
        Some(error) if kind == Some(ERROR) => Err(Errno::from_raw_os_error(error.wrapping_neg())),
        _ => Err(Errno::PROTO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_parsed() {
        let answer = |kind: u16, error: i32| {
            let mut bytes = vec![0; 4];
            bytes.extend(kind.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(error.to_ne_bytes());
            bytes
        };
        assert_eq!(judge(&answer(ERROR, 0)), Ok(()));
        assert_eq!(judge(&answer(ERROR, -17)), Err(Errno::EXIST));
        assert_eq!(judge(&answer(3, 0)), Err(Errno::PROTO));
        assert_eq!(judge(&[0; 7]), Err(Errno::PROTO));
    }

    #[test]
    fn attributes_carry_their_length() {
        let mut message = Message::new(NEW_ROUTE);
        message.attribute(4, &[9, 9, 9, 9]);
        assert_eq!(message.0.len(), HEADER + 8);
        assert_eq!(
            message.0[HEADER..HEADER + 4],
            [8_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat()
        );
    }
}
