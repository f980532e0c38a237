//! Listeners inside: each at one address and port, for as long as somebody may go there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseport, socket_domain};
use rustix::net::{AddressFamily, bind, listen};
use sandbox_core::{AllowTarget, Allowlist};

use super::questions::LIFETIME_SECONDS;

/// Connections that may wait to be accepted.
const WAITING: i32 = 1024;
/// A program that was told an address has this much more time to go there.
const GRACE: Duration = Duration::from_secs(5);

/// Where a listener stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    /// Nothing stands for every address that no other listener has.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

/// A listener.
pub(super) struct Door {
    pub(super) listener: OwnedFd,
    /// The name that it was opened for last; nothing if a rule names the address itself.
    pub(super) name: Option<String>,
    /// Until when, if it was opened for a name.
    until: Option<Instant>,
}

/// All of them, and sockets for more.
pub(super) struct Doors {
    spare: Vec<OwnedFd>,
    open: BTreeMap<Spot, Door>,
}

impl Doors {
    /// Opens what is allowed by address, from the beginning to the end.
    pub(super) fn new(spare: Vec<OwnedFd>, allow: &Allowlist) -> Result<Self, Errno> {
        let mut doors = Self { spare, open: BTreeMap::new() };
        for rule in allow.rules() {
            let AllowTarget::Range(range) = rule.target() else { continue };
            for port in rule.each_port() {
                doors.open(Spot { address: range.only(), port }, None)?;
            }
        }
        Ok(doors)
    }

    /// Opens these ports of an address for a name, or keeps them open.
    pub(super) fn open_for(
        &mut self,
        address: IpAddr,
        ports: &[u16],
        name: &str,
    ) -> Result<(), Errno> {
        let spots = ports.iter().map(|port| Spot { address: Some(address), port: *port });
        let missing = spots.clone().filter(|spot| !self.open.contains_key(spot)).count();
        if missing > self.spare.len() {
            return Err(Errno::MFILE);
        }
        spots.into_iter().try_for_each(|spot| self.open(spot, Some(name)))
    }

    pub(super) fn get(&self, spot: Spot) -> Option<&Door> {
        self.open.get(&spot)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Spot, &Door)> {
        self.open.iter()
    }

    /// Whether a connection to there is accepted by one of them.
    pub(super) fn answers(&self, address: IpAddr, port: u16) -> bool {
        [Some(address), None]
            .into_iter()
            .any(|address| self.open.contains_key(&Spot { address, port }))
    }

    /// Closes those whose time is over: what goes there now is refused by the kernel.
    pub(super) fn close_old(&mut self, now: Instant) {
        self.open.retain(|_, door| door.until.is_none_or(|until| now < until));
    }

    fn open(&mut self, spot: Spot, name: Option<&str>) -> Result<(), Errno> {
        let lifetime = Duration::from_secs(LIFETIME_SECONDS.into()) + GRACE;
        let until = name.map(|_| Instant::now() + lifetime);
        if let Some(door) = self.open.get_mut(&spot) {
            if door.until.is_some() {
                door.until = until;
                door.name = name.map(str::to_owned);
            }
            return Ok(());
        }
        let listener = self.spare.pop().ok_or(Errno::MFILE)?;
        // So that one for an address can stand beside one for all.
        set_socket_reuseport(&listener, true)?;
        bind(&listener, &address_for(&listener, spot)?)?;
        listen(&listener, WAITING)?;
        self.open.insert(spot, Door { listener, name: name.map(str::to_owned), until });
        Ok(())
    }
}

/// The spot as the socket writes it: those of version six take addresses of version four in their own way.
fn address_for(listener: &OwnedFd, spot: Spot) -> Result<SocketAddr, Errno> {
    let is_v6 = socket_domain(listener)? == AddressFamily::INET6;
    let address = match (spot.address, is_v6) {
        (None, true) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        (None, false) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        (Some(IpAddr::V4(address)), true) => IpAddr::V6(address.to_ipv6_mapped()),
        (Some(address), _) => address,
    };
    Ok(SocketAddr::new(address, spot.port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SocketType, socket};
    use std::net::{TcpListener, TcpStream};

    fn sockets(count: usize) -> Vec<OwnedFd> {
        let one = || socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        (0..count).map(|_| one()).collect()
    }

    /// A port of the loopback that nobody has.
    fn free_port() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.local_addr().unwrap().port()
    }

    #[test]
    fn a_door_for_a_name_is_closed_when_its_answer_does_not_count_any_more() {
        let (address, port) = ("127.0.0.1".parse().unwrap(), free_port());
        let mut doors = Doors::new(sockets(2), &Allowlist::default()).unwrap();
        let is_open = || TcpStream::connect((address, port)).is_ok();
        assert!(!is_open());
        doors.open_for(address, &[port], "site.example").unwrap();
        assert!(is_open() && doors.answers(address, port));
        let lifetime = Duration::from_secs(LIFETIME_SECONDS.into());
        doors.close_old(Instant::now() + lifetime);
        assert!(is_open(), "a program may just have heard of it");
        doors.close_old(Instant::now() + lifetime + GRACE + Duration::from_secs(1));
        assert!(!is_open() && !doors.answers(address, port));
    }

    #[test]
    fn what_is_allowed_by_address_stays_open_and_there_are_only_so_many() {
        let port = free_port();
        let rule = format!("127.0.0.1:{port}").parse().unwrap();
        let allow = Allowlist::new(vec![rule], false).unwrap();
        let mut doors = Doors::new(sockets(2), &allow).unwrap();
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        // A name that leads to the same place changes nothing.
        doors.open_for(address, &[port], "site.example").unwrap();
        doors.close_old(Instant::now() + Duration::from_hours(1));
        assert!(doors.answers(address, port));
        let other: IpAddr = "127.0.0.2".parse().unwrap();
        assert_eq!(doors.open_for(other, &[port, port + 1], "x"), Err(Errno::MFILE));
        assert!(!doors.answers(other, port), "all of its ports or none");
    }
}
