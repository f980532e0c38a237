//! Servers out there: plain ones for tests, real ones for real clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use sandbox_tests::wait::wait_for;

/// An echo server that counts its connections.
pub(crate) struct Echo {
    pub(crate) came: Arc<AtomicU64>,
}

impl Echo {
    /// Listens at an address and port.
    pub(crate) fn listen(address: &str, port: u16) -> Self {
        let listener = TcpListener::bind((address, port)).expect("nobody else is there");
        Self::serve(listener, |mut stream| {
            let mut bytes = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = stream.read(&mut bytes) {
                if stream.write_all(&bytes[..count]).is_err() {
                    return;
                }
            }
        })
    }

    /// Answers every request of the web with this, whatever is asked.
    pub(crate) fn web(address: &str, port: u16, answer: &str) -> Self {
        let listener = TcpListener::bind((address, port)).expect("nobody else is there");
        let answer = answer.to_owned();
        Self::serve(listener, move |mut stream| {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut byte) {
                    Ok(1..) => head.push(byte[0]),
                    _ => return,
                }
            }
            let _ = stream.write_all(answer.as_bytes());
        })
    }

    fn serve(listener: TcpListener, each: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let came = Arc::new(AtomicU64::new(0));
        let (counter, each) = (Arc::clone(&came), Arc::new(each));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let each = Arc::clone(&each);
                let small = thread::Builder::new().stack_size(256 * 1024);
                small.spawn(move || each(stream)).expect("a thread can be started");
            }
        });
        Self { came }
    }

    pub(crate) fn came(&self) -> u64 {
        self.came.load(Ordering::SeqCst)
    }
}

/// A page.
pub(crate) fn page(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

/// A page that says to go elsewhere.
pub(crate) fn redirect(to: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

/// Hears datagrams, and counts them.
pub(crate) fn hear_datagrams(address: &str, port: u16) -> Arc<AtomicU64> {
    let socket = UdpSocket::bind((address, port)).expect("nobody else is there");
    let heard = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&heard);
    thread::spawn(move || {
        let mut bytes = [0; 1500];
        while socket.recv_from(&mut bytes).is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    heard
}

/// A web server that gives out the files of a directory; it ends with this value.
pub(crate) struct Files(Child);

impl Files {
    pub(crate) fn of(directory: &Path, address: &str, port: u16) -> Self {
        let server = Command::new("/usr/bin/python3")
            .args(["-m", "http.server", "--bind", address, &port.to_string(), "--directory"])
            .arg(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python is there");
        let files = Self(server);
        let place = SocketAddr::new(address.parse().expect("it is an address"), port);
        let is_there = || TcpStream::connect(place).ok();
        assert!(wait_for(Duration::from_secs(30), is_there).is_some(), "it does not start");
        files
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
