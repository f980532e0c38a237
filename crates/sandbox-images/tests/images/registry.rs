//! A minimal registry on loopback that can be configured to misbehave.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sandbox_images::Digest;

use crate::archives::{INDEX, MANIFEST, bytes, config, descriptor, manifest};

/// The content and behaviour of a registry.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    /// Manifests by digest or tag, with their media types.
    pub(crate) manifests: BTreeMap<String, (String, Vec<u8>)>,
    /// Blobs by digest.
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    /// Requires a token, which clients get from this server.
    pub(crate) token: Option<Realm>,
    /// Redirects requests for blobs to this URL.
    pub(crate) redirect: Option<String>,
    /// The number of blob responses that are interrupted.
    pub(crate) interruptions: usize,
    /// Whether an interruption stalls instead of closing the connection.
    pub(crate) stalls: bool,
    /// Whether range requests are supported.
    pub(crate) ranges: bool,
    /// A status for the first requests, and their number.
    pub(crate) failures: Option<(u16, usize)>,
    /// Whether manifests are infinitely long.
    pub(crate) endless: bool,
}

#[derive(Clone)]
pub(crate) enum Realm {
    Here,
    At(String),
}

pub(crate) const TOKEN: &str = "let-me-in";

/// A registry that serves requests until this is dropped.
pub(crate) struct RunningRegistry {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    stopped: Arc<AtomicBool>,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
}

impl Registry {
    /// A registry with one image, under a tag and its digest.
    pub(crate) fn with_image(tag: &str, layers: &[Vec<u8>]) -> (Self, Digest) {
        Self::with_compressed_image(tag, layers, layers)
    }

    /// The same with compressed layers.
    pub(crate) fn with_compressed_image(
        tag: &str,
        layers: &[Vec<u8>],
        sent: &[Vec<u8>],
    ) -> (Self, Digest) {
        let config = bytes(&config(layers));
        let manifest = bytes(&manifest(&config, sent));
        let digest = Digest::of(&manifest);
        let mut registry = Self { ranges: true, ..Self::default() };
        for blob in sent.iter().chain([&config]) {
            registry.blobs.insert(Digest::of(blob).to_string(), blob.clone());
        }
        registry.add(tag, MANIFEST, &manifest);
        (registry, digest)
    }

    pub(crate) fn add(&mut self, tag: &str, kind: &str, document: &[u8]) {
        let digest = Digest::of(document).to_string();
        for name in [tag.to_owned(), digest] {
            self.manifests.insert(name, (kind.to_owned(), document.to_owned()));
        }
    }

    /// Replaces the manifest of a tag by an index, with an image for another platform first.
    pub(crate) fn add_index(&mut self, tag: &str) {
        let manifest = self.manifests[tag].1.clone();
        let mut entry = descriptor(MANIFEST, &manifest);
        let architecture = crate::archives::architecture();
        entry["platform"] = serde_json::json!({ "os": "linux", "architecture": architecture });
        let mut other = descriptor(MANIFEST, b"other");
        other["platform"] = serde_json::json!({ "os": "linux", "architecture": "vax" });
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [other, entry] });
        self.add(tag, INDEX, &bytes(&index));
    }

    pub(crate) fn start(self) -> RunningRegistry {
        self.start_with(None)
    }

    pub(crate) fn start_with_tls(self, config: Arc<ServerConfig>) -> RunningRegistry {
        self.start_with(Some(config))
    }

    fn start_with(self, tls: Option<Arc<ServerConfig>>) -> RunningRegistry {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let stopped = Arc::new(AtomicBool::new(false));
        let (received, is_stopped) = (Arc::clone(&requests), Arc::clone(&stopped));
        std::thread::spawn(move || {
            let state = Arc::new(Mutex::new(self));
            for stream in listener.incoming().flatten() {
                if is_stopped.load(Ordering::SeqCst) {
                    return;
                }
                let (state, received) = (Arc::clone(&state), Arc::clone(&received));
                let tls = tls.clone();
                // Clients may close the connection at any time.
                std::thread::spawn(move || match tls {
                    None => serve(stream, "http", &state, &received, address),
                    Some(config) => {
                        let stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
                        serve(stream, "https", &state, &received, address)
                    }
                });
            }
        });
        RunningRegistry { address, requests, stopped }
    }
}

impl RunningRegistry {
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The number of requests with this text in their path.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.requests().iter().filter(|request| request.path.contains(part)).count()
    }
}

impl Drop for RunningRegistry {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn read_request(stream: &mut impl Read) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let mut headers = HashMap::new();
    loop {
        let line = lines.next()?.ok()?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    Some(Request { path, headers })
}

fn serve(
    mut stream: impl Read + Write,
    scheme: &str,
    state: &Mutex<Registry>,
    received: &Mutex<Vec<Request>>,
    address: SocketAddr,
) -> Option<()> {
    let request = read_request(&mut stream)?;
    received.lock().unwrap().push(request.clone());
    let mut registry = state.lock().unwrap();
    let authorized = request.headers.get("authorization").map(String::as_str)
        == Some(&format!("Bearer {TOKEN}"));
    if request.path.starts_with("/token") {
        return respond(&mut stream, "200 OK", "", format!("{{\"token\":\"{TOKEN}\"}}").as_bytes());
    }
    if let Some((status, left @ 1..)) = &mut registry.failures {
        *left -= 1;
        let status = format!("{status} Because");
        return respond(&mut stream, &status, "", b"no");
    }
    if let Some(realm) = registry.token.as_ref().filter(|_| !authorized) {
        let realm = match realm {
            Realm::Here => format!("{scheme}://localhost:{}/token", address.port()),
            Realm::At(url) => url.clone(),
        };
        let challenge = format!("WWW-Authenticate: Bearer realm=\"{realm}\",service=\"test\"\r\n");
        return respond(&mut stream, "401 Unauthorized", &challenge, b"");
    }
    let (_, name) = request.path.rsplit_once('/')?;
    if request.path.contains("/manifests/") {
        let Some((kind, document)) = registry.manifests.get(name).cloned() else {
            return respond(&mut stream, "404 Not Found", "", b"");
        };
        if registry.endless {
            drop(registry);
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").ok()?;
            while stream.write_all(&[b' '; 4096]).is_ok() {}
            return None;
        }
        return respond(&mut stream, "200 OK", &format!("Content-Type: {kind}\r\n"), &document);
    }
    if let Some(url) = registry.redirect.as_ref().filter(|_| request.path.starts_with("/v2/")) {
        let location = format!("Location: {url}/elsewhere/{name}\r\n");
        return respond(&mut stream, "307 Temporary Redirect", &location, b"");
    }
    let Some(blob) = registry.blobs.get(name).cloned() else {
        return respond(&mut stream, "404 Not Found", "", b"");
    };
    let start = request.headers.get("range").filter(|_| registry.ranges);
    let start =
        start.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let (status, range, rest) = match start {
        Some(start) => {
            let range =
                format!("Content-Range: bytes {start}-{}/{}\r\n", blob.len() - 1, blob.len());
            ("206 Partial Content", range, &blob[start..])
        }
        None => ("200 OK", String::new(), &blob[..]),
    };
    if registry.interruptions > 0 && rest.len() > 100 {
        registry.interruptions -= 1;
        let stalls = registry.stalls;
        drop(registry);
        let head = format!("HTTP/1.1 {status}\r\n{range}Content-Length: {}\r\n\r\n", rest.len());
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&rest[..rest.len() / 2]).ok()?;
        if stalls {
            // Waits until the client closes the connection.
            let _ = stream.read(&mut [0; 1]);
        }
        return None;
    }
    drop(registry);
    respond(&mut stream, status, &range, rest)
}

fn respond(stream: &mut impl Write, status: &str, headers: &str, body: &[u8]) -> Option<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    stream.flush().ok()
}
