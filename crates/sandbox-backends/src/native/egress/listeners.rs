//! Listeners inside the sandbox's network, one for each allowed address and port.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseport, socket_domain};
use rustix::net::{AddressFamily, bind, listen};
use sandbox_core::{AllowTarget, Allowlist};

use super::dns::LIFETIME_SECONDS;

/// Backlog of a listener.
const BACKLOG: i32 = 1024;
/// A program that resolved a name may connect for this long after the TTL.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// The address of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListenAddress {
    /// `None` stands for every address without a listener of its own.
    pub(super) address: Option<IpAddr>,
    pub(super) port: u16,
}

/// A listener.
pub(super) struct Listener {
    pub(super) socket: OwnedFd,
    /// The name that it was opened for last; `None` if a rule names the address itself.
    pub(super) name: Option<String>,
    /// When to close it, if it was opened for a name.
    until: Option<Instant>,
}

/// All listeners, and unbound sockets for more.
pub(super) struct Listeners {
    spare: Vec<OwnedFd>,
    open: BTreeMap<ListenAddress, Listener>,
}

impl Listeners {
    /// Opens listeners for the rules that name addresses. They stay open.
    pub(super) fn new(spare: Vec<OwnedFd>, allow: &Allowlist) -> Result<Self, Errno> {
        let mut listeners = Self { spare, open: BTreeMap::new() };
        for rule in allow.rules() {
            let AllowTarget::Range(range) = rule.target() else { continue };
            for port in rule.each_port() {
                listeners.open(ListenAddress { address: range.only(), port }, None)?;
            }
        }
        Ok(listeners)
    }

    /// Opens listeners for a name's address on these ports, or extends their lifetime.
    pub(super) fn open_for(
        &mut self,
        address: IpAddr,
        ports: &[u16],
        name: &str,
    ) -> Result<(), Errno> {
        let addresses =
            ports.iter().map(|port| ListenAddress { address: Some(address), port: *port });
        let missing = addresses
            .clone()
            .filter(|listen_address| !self.open.contains_key(listen_address))
            .count();
        if missing > self.spare.len() {
            return Err(Errno::MFILE);
        }
        addresses.into_iter().try_for_each(|listen_address| self.open(listen_address, Some(name)))
    }

    pub(super) fn get(&self, listen_address: ListenAddress) -> Option<&Listener> {
        self.open.get(&listen_address)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ListenAddress, &Listener)> {
        self.open.iter()
    }

    /// Whether a listener accepts connections to this address and port.
    pub(super) fn answers(&self, address: IpAddr, port: u16) -> bool {
        [Some(address), None]
            .into_iter()
            .any(|address| self.open.contains_key(&ListenAddress { address, port }))
    }

    /// Closes expired listeners. The kernel refuses connections to their addresses from then on.
    pub(super) fn close_old(&mut self, now: Instant) {
        self.open.retain(|_, listener| listener.until.is_none_or(|until| now < until));
    }

    fn open(&mut self, listen_address: ListenAddress, name: Option<&str>) -> Result<(), Errno> {
        let lifetime = Duration::from_secs(LIFETIME_SECONDS.into()) + TERM_GRACE;
        let until = name.map(|_| Instant::now() + lifetime);
        if let Some(listener) = self.open.get_mut(&listen_address) {
            if listener.until.is_some() {
                listener.until = until;
                listener.name = name.map(str::to_owned);
            }
            return Ok(());
        }
        let listener = self.spare.pop().ok_or(Errno::MFILE)?;
        // Allows a listener for one address beside one for all.
        set_socket_reuseport(&listener, true)?;
        bind(&listener, &address_for(&listener, listen_address)?)?;
        listen(&listener, BACKLOG)?;
        self.open.insert(
            listen_address,
            Listener { socket: listener, name: name.map(str::to_owned), until },
        );
        Ok(())
    }
}

/// The address in the socket's family: IPv6 sockets need IPv4 addresses mapped.
fn address_for(listener: &OwnedFd, listen_address: ListenAddress) -> Result<SocketAddr, Errno> {
    let is_v6 = socket_domain(listener)? == AddressFamily::INET6;
    let address = match (listen_address.address, is_v6) {
        (None, true) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        (None, false) => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        (Some(IpAddr::V4(address)), true) => IpAddr::V6(address.to_ipv6_mapped()),
        (Some(address), _) => address,
    };
    Ok(SocketAddr::new(address, listen_address.port))
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

    /// A free port of the loopback interface.
    fn free_port() -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.local_addr().unwrap().port()
    }

    #[test]
    fn a_listener_for_a_name_closes_after_the_ttl() {
        let (address, port) = ("127.0.0.1".parse().unwrap(), free_port());
        let mut listeners = Listeners::new(sockets(2), &Allowlist::default()).unwrap();
        let is_open = || TcpStream::connect((address, port)).is_ok();
        assert!(!is_open());
        listeners.open_for(address, &[port], "site.example").unwrap();
        assert!(is_open() && listeners.answers(address, port));
        let lifetime = Duration::from_secs(LIFETIME_SECONDS.into());
        listeners.close_old(Instant::now() + lifetime);
        assert!(is_open(), "a program may just have heard of it");
        listeners.close_old(Instant::now() + lifetime + TERM_GRACE + Duration::from_secs(1));
        assert!(!is_open() && !listeners.answers(address, port));
    }

    #[test]
    fn listeners_for_addresses_stay_open_and_their_number_is_bounded() {
        let port = free_port();
        let rule = format!("127.0.0.1:{port}").parse().unwrap();
        let allow = Allowlist::new(vec![rule], false).unwrap();
        let mut listeners = Listeners::new(sockets(2), &allow).unwrap();
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        // A name that resolves to the same address changes nothing.
        listeners.open_for(address, &[port], "site.example").unwrap();
        listeners.close_old(Instant::now() + Duration::from_hours(1));
        assert!(listeners.answers(address, port));
        let other: IpAddr = "127.0.0.2".parse().unwrap();
        assert_eq!(listeners.open_for(other, &[port, port + 1], "x"), Err(Errno::MFILE));
        assert!(!listeners.answers(other, port), "all of its ports or none");
    }
}
