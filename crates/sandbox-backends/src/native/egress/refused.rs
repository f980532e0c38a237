//! Parses packets that the kernel refused: the first packet of a connection, and every datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sandbox_core::Transport;

/// A refused connection or datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefusedPacket {
    pub(super) transport: Transport,
    pub(super) address: IpAddr,
    pub(super) port: u16,
}

/// Parses a packet, starting at its network header. The socket's filter passes only the first
/// packets of connections and datagrams.
pub(super) fn parse(packet: &[u8]) -> Option<RefusedPacket> {
    let (protocol, address, rest) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 0xf) * 4;
            let address: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            (*packet.get(9)?, IpAddr::V4(Ipv4Addr::from(address)), packet.get(header..)?)
        }
        6 => {
            let address: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            let address = Ipv6Addr::from(address).to_canonical();
            (*packet.get(6)?, address, packet.get(40..)?)
        }
        _ => return None,
    };
    let transport = match protocol {
        6 => Transport::Tcp,
        17 => Transport::Udp,
        _ => return None,
    };
    let port = u16::from_be_bytes(rest.get(2..4)?.try_into().ok()?);
    Some(RefusedPacket { transport, address, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_both_ip_versions_are_parsed() {
        let mut packet = vec![0; 40];
        packet[0] = 0x46;
        packet[9] = 6;
        packet[16..20].copy_from_slice(&[192, 0, 2, 7]);
        packet[26..28].copy_from_slice(&443_u16.to_be_bytes());
        let attempt = parse(&packet).unwrap();
        assert_eq!((attempt.address.to_string(), attempt.port), ("192.0.2.7".to_owned(), 443));
        assert_eq!(attempt.transport, Transport::Tcp);
        let mut packet = vec![0; 48];
        packet[0] = 0x60;
        packet[6] = 17;
        packet[24..26].copy_from_slice(&[0x20, 0x01]);
        packet[42..44].copy_from_slice(&53_u16.to_be_bytes());
        let attempt = parse(&packet).unwrap();
        assert_eq!((attempt.address.to_string(), attempt.port), ("2001::".to_owned(), 53));
        for length in 0..44 {
            assert_eq!(parse(&packet[..length]), None);
        }
        assert_eq!(parse(&[0x20; 60]), None);
    }
}
