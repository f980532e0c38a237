//! A registry on this machine, as small as it can be, that can be told to misbehave.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sandbox_images::Digest;

use crate::archives::{INDEX, MANIFEST, bytes, config, descriptor, manifest};

/// What it has, and how it gives it away.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    /// By digest or tag, with their media types.
    pub(crate) manifests: BTreeMap<String, (String, Vec<u8>)>,
    /// By digest.
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    /// Gives nothing without this token, and sends clients to get it here.
    pub(crate) token: Option<Realm>,
    /// Sends clients elsewhere for blobs.
    pub(crate) redirect: Option<String>,
    /// How many blobs are cut in the middle before one is sent whole.
    pub(crate) cuts: usize,
    /// Whether it stops in the middle instead of hanging up.
    pub(crate) stalls: bool,
    /// Whether it can send the rest of a blob.
    pub(crate) continues: bool,
    /// What it answers first, and how often.
    pub(crate) refuses: Option<(u16, usize)>,
    /// Whether manifests never end.
    pub(crate) endless: bool,
}

#[derive(Clone)]
pub(crate) enum Realm {
    Here,
    At(String),
}

pub(crate) const TOKEN: &str = "let-me-in";

/// A registry that answers until this is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    over: Arc<AtomicBool>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
}

impl Registry {
    /// With one image, under a tag and its digest.
    pub(crate) fn with_image(tag: &str, layers: &[Vec<u8>]) -> (Self, Digest) {
        Self::with_sent_image(tag, layers, layers)
    }

    /// The same with layers that are sent in another form than their content.
    pub(crate) fn with_sent_image(
        tag: &str,
        layers: &[Vec<u8>],
        sent: &[Vec<u8>],
    ) -> (Self, Digest) {
        let config = bytes(&config(layers));
        let manifest = bytes(&manifest(&config, sent));
        let digest = Digest::of(&manifest);
        let mut registry = Self { continues: true, ..Self::default() };
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

    /// Puts an index in front of what has a tag, with an image for other machines first.
    pub(crate) fn behind_index(&mut self, tag: &str) {
        let ours = self.manifests[tag].1.clone();
        let mut entry = descriptor(MANIFEST, &ours);
        let here = crate::archives::architecture();
        entry["platform"] = serde_json::json!({ "os": "linux", "architecture": here });
        let mut other = descriptor(MANIFEST, b"other");
        other["platform"] = serde_json::json!({ "os": "linux", "architecture": "vax" });
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [other, entry] });
        self.add(tag, INDEX, &bytes(&index));
    }

    pub(crate) fn start(self) -> Running {
        self.start_with(None)
    }

    pub(crate) fn start_with_tls(self, config: Arc<ServerConfig>) -> Running {
        self.start_with(Some(config))
    }

    fn start_with(self, tls: Option<Arc<ServerConfig>>) -> Running {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (all, is_over) = (Arc::clone(&asked), Arc::clone(&over));
        std::thread::spawn(move || {
            let state = Arc::new(Mutex::new(self));
            for stream in listener.incoming().flatten() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                let (state, all) = (Arc::clone(&state), Arc::clone(&all));
                let tls = tls.clone();
                // Whoever hangs up on us may do so.
                std::thread::spawn(move || match tls {
                    None => serve(stream, "http", &state, &all, address),
                    Some(config) => {
                        let stream = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
                        serve(stream, "https", &state, &all, address)
                    }
                });
            }
        });
        Running { address, asked, over }
    }
}

impl Running {
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often something was asked for that has this in its path.
    pub(crate) fn times(&self, part: &str) -> usize {
        self.asked().iter().filter(|asked| asked.path.contains(part)).count()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn read_request(stream: &mut impl Read) -> Option<Asked> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let mut headers = HashMap::new();
    loop {
        let line = lines.next()?.ok()?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    Some(Asked { path, headers })
}

fn serve(
    mut stream: impl Read + Write,
    scheme: &str,
    state: &Mutex<Registry>,
    all: &Mutex<Vec<Asked>>,
    address: SocketAddr,
) -> Option<()> {
    let asked = read_request(&mut stream)?;
    all.lock().unwrap().push(asked.clone());
    let mut registry = state.lock().unwrap();
    let authorized =
        asked.headers.get("authorization").map(String::as_str) == Some(&format!("Bearer {TOKEN}"));
    if asked.path.starts_with("/token") {
        return answer(&mut stream, "200 OK", "", format!("{{\"token\":\"{TOKEN}\"}}").as_bytes());
    }
    if let Some((status, left @ 1..)) = &mut registry.refuses {
        *left -= 1;
        let status = format!("{status} Because");
        return answer(&mut stream, &status, "", b"no");
    }
    if let Some(realm) = registry.token.as_ref().filter(|_| !authorized) {
        let realm = match realm {
            Realm::Here => format!("{scheme}://localhost:{}/token", address.port()),
            Realm::At(place) => place.clone(),
        };
        let challenge = format!("WWW-Authenticate: Bearer realm=\"{realm}\",service=\"test\"\r\n");
        return answer(&mut stream, "401 Unauthorized", &challenge, b"");
    }
    let (_, what) = asked.path.rsplit_once('/')?;
    if asked.path.contains("/manifests/") {
        let Some((kind, document)) = registry.manifests.get(what).cloned() else {
            return answer(&mut stream, "404 Not Found", "", b"");
        };
        if registry.endless {
            drop(registry);
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").ok()?;
            while stream.write_all(&[b' '; 4096]).is_ok() {}
            return None;
        }
        return answer(&mut stream, "200 OK", &format!("Content-Type: {kind}\r\n"), &document);
    }
    if let Some(place) = registry.redirect.as_ref().filter(|_| asked.path.starts_with("/v2/")) {
        let location = format!("Location: {place}/elsewhere/{what}\r\n");
        return answer(&mut stream, "307 Temporary Redirect", &location, b"");
    }
    let Some(blob) = registry.blobs.get(what).cloned() else {
        return answer(&mut stream, "404 Not Found", "", b"");
    };
    let begin = asked.headers.get("range").filter(|_| registry.continues);
    let begin =
        begin.and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let (status, range, rest) = match begin {
        Some(begin) => {
            let range =
                format!("Content-Range: bytes {begin}-{}/{}\r\n", blob.len() - 1, blob.len());
            ("206 Partial Content", range, &blob[begin..])
        }
        None => ("200 OK", String::new(), &blob[..]),
    };
    if registry.cuts > 0 && rest.len() > 100 {
        registry.cuts -= 1;
        let stalls = registry.stalls;
        drop(registry);
        let head = format!("HTTP/1.1 {status}\r\n{range}Content-Length: {}\r\n\r\n", rest.len());
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(&rest[..rest.len() / 2]).ok()?;
        if stalls {
            // Until the client has had enough.
            let _ = stream.read(&mut [0; 1]);
        }
        return None;
    }
    drop(registry);
    answer(&mut stream, status, &range, rest)
}

fn answer(stream: &mut impl Write, status: &str, headers: &str, body: &[u8]) -> Option<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    stream.flush().ok()
}
