//! A server of lines with a thread for each client, datagrams, a Unix pair, a deadline.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

fn serve(listener: TcpListener, clients: usize) -> std::io::Result<()> {
    for peer in listener.incoming().take(clients) {
        let mut peer = peer?;
        thread::spawn(move || {
            let lines = BufReader::new(peer.try_clone().unwrap()).lines();
            for line in lines.map_while(Result::ok) {
                let reversed: String = line.chars().rev().collect();
                writeln!(peer, "{reversed}").unwrap();
            }
        });
    }
    Ok(())
}

fn ask(address: SocketAddr, words: &[&str]) -> std::io::Result<Vec<String>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    for word in words {
        writeln!(stream, "{word}")?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    BufReader::new(stream).lines().collect()
}

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let server = thread::spawn(move || serve(listener, 2));
    println!("{:?}", ask(address, &["stressed", "grün"])?);
    println!("{:?}", ask(address, &["level"])?);
    server.join().unwrap()?;

    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    sender.send_to(b"datagram", receiver.local_addr()?)?;
    let mut buffer = [0; 64];
    let (size, from) = receiver.recv_from(&mut buffer)?;
    println!("{} {}", String::from_utf8_lossy(&buffer[..size]), from == sender.local_addr()?);
    receiver.set_read_timeout(Some(Duration::from_millis(20)))?;
    println!("{}", receiver.recv(&mut buffer).unwrap_err().kind() == ErrorKind::WouldBlock);

    let (mut left, mut right) = UnixStream::pair()?;
    left.write_all(b"pair")?;
    drop(left);
    let mut text = String::new();
    right.read_to_string(&mut text)?;
    println!("{text} {}", TcpStream::connect("127.0.0.1:1").unwrap_err().kind());
    Ok(())
}
