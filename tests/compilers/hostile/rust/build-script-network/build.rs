// Connects to a server on the host's loopback and to addresses outside, which are of those that are kept
// for examples. PORT is replaced by the server's port.
use std::fmt::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

fn main() {
    let mut loot = String::new();
    for address in ["127.0.0.1:PORT", "192.0.2.1:80", "198.51.100.1:53"] {
        let address: SocketAddr = address.parse().unwrap();
        let found = TcpStream::connect_timeout(&address, Duration::from_secs(1)).map(|_| "connected");
        let _ = writeln!(loot, "{found:?}");
    }
    let sent = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"x", "192.0.2.1:53"));
    let _ = writeln!(loot, "{sent:?}");
    std::fs::write(format!("{}/loot", std::env::var("OUT_DIR").unwrap()), loot).unwrap();
}
