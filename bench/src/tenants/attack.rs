//! The hostile key: each of its clients draws one attack after another.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::rng::Rng;

const EXECUTE: &str = "/api/v1/execute";
/// How long a stream of events is followed.
const FOLLOW_TIME: Duration = Duration::from_millis(300);

/// What the clients of the attacker share.
pub(super) struct Attack {
    address: SocketAddr,
    key: String,
    /// An execution of the victim.
    victims: String,
}

/// Answers to attacks, by endpoint.
#[derive(Default)]
pub(super) struct Tally(BTreeMap<String, Counts>);

#[derive(Clone, Copy, Default)]
struct Counts {
    answered: usize,
    refused: usize,
    broken: usize,
}

/// One request: its endpoint as the API's description names it, and what is sent.
struct Shot {
    endpoint: &'static str,
    path: String,
    body: Vec<u8>,
}

/// Programs that use up what they can.
const PROGRAMS: &[&str] = &[
    "while True: pass",
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "kept = []\nwhile True: kept.append(bytearray(1 << 20))",
    "while True: print('x' * 10_000)",
    "f = open('f', 'wb')\nwhile True: f.write(b'x' * (1 << 20))",
    "import threading\nwhile True: threading.Thread(target=lambda: sum(range(10**8))).start()",
    "import os\nnumber = 0\nwhile True:\n    open(str(number), 'w')\n    number += 1",
    "print('short')",
];

/// Takes a compiler seconds and much memory.
const TEMPLATES: &str = "template<int N> struct F { static const long value = F<N - 1>::value + F<N - 2>::value; };\n\
    template<> struct F<0> { static const long value = 0; };\ntemplate<> struct F<1> { static const long value = 1; };\n\
    #include <regex>\n#include <iostream>\nint main() { std::cout << F<800>::value << SALT; std::regex r(\"a\"); }\n";

/// Endpoints and how often each is drawn.
const ENDPOINTS: &[(usize, &str)] = &[
    (12, "POST /api/v1/execute"),
    (2, "POST /api/v1/batch"),
    (2, "GET /api/v1/execute/{id}"),
    (1, "GET /api/v1/execute/{id}/stream"),
    (1, "POST /api/v1/execute/{id}/stdin"),
    (1, "DELETE /api/v1/execute/{id}"),
    (2, "GET /api/v1/executions"),
    (1, "GET /api/v1/runtimes"),
    (1, "GET /api/v1/environments"),
    (1, "POST /api/v1/environments"),
    (1, "GET /api/v1/environments/{name}"),
    (1, "DELETE /api/v1/environments/{name}"),
    (1, "GET /api/v1/workspaces"),
    (1, "GET /api/v1/workspaces/{name}"),
    (1, "PUT /api/v1/workspaces/{name}"),
    (1, "DELETE /api/v1/workspaces/{name}"),
    (1, "GET /api/v1/workspaces/{name}/export"),
    (1, "GET /api/v1/health"),
    (1, "GET /api/v1/ready"),
    (1, "GET /metrics"),
];

impl Attack {
    pub(super) fn new(address: SocketAddr, key: String, victims: String) -> Self {
        Self { address, key, victims }
    }

    pub(super) fn json(&self) -> Value {
        json!({ "address": self.address, "key": self.key, "victims": self.victims })
    }

    pub(super) fn from_json(value: &Value) -> anyhow::Result<Self> {
        let text = |name: &str| value[name].as_str().with_context(|| format!("there is no {name}"));
        let address = text("address")?.parse().context("read the address")?;
        Ok(Self::new(address, text("key")?.to_owned(), text("victims")?.to_owned()))
    }

    /// Attacks until it is over.
    pub(super) fn run(&self, number: usize, is_over: &AtomicBool) -> Tally {
        let mut rng = Rng::seeded(number);
        let mut tally = Tally::default();
        let mut client = Client::new(self.address);
        // Every endpoint once, however slow the machine is; each client begins with another.
        let mut round = (0..ENDPOINTS.len()).map(|place| (place + number * 3) % ENDPOINTS.len());
        loop {
            let endpoint = match round.next() {
                Some(place) => ENDPOINTS[place].1,
                None if is_over.load(Ordering::Relaxed) => return tally,
                None => draw(&mut rng),
            };
            let shot = self.shot(endpoint, &mut rng);
            let outcome = self.fire(&mut client, &shot);
            tally.count(shot.endpoint, &outcome);
        }
    }

    /// Ends what the attacker has left at the server, for a phase in which the victim is alone.
    pub(super) fn cancel_all(&self) -> anyhow::Result<()> {
        let mut client = Client::new(self.address);
        let key = [("x-api-key", &*self.key)];
        for status in ["running", "queued"] {
            loop {
                let path = format!("/api/v1/executions?limit=100&status={status}");
                let answer = client.exchange(&request("GET", &path, &key, b""))?;
                let page: Value = serde_json::from_slice(&answer.body)?;
                let executions = page["executions"].as_array().cloned().unwrap_or_default();
                if executions.is_empty() {
                    break;
                }
                for execution in executions {
                    let path =
                        format!("{EXECUTE}/{}", execution["id"].as_str().unwrap_or_default());
                    client.exchange(&request("DELETE", &path, &key, b""))?;
                }
            }
        }
        Ok(())
    }

    fn fire(&self, client: &mut Client, shot: &Shot) -> std::io::Result<u16> {
        let method = shot.endpoint.split(' ').next().unwrap_or_default();
        let mut headers = vec![("x-api-key", &*self.key)];
        if method == "PUT" {
            headers.push(("content-type", "application/x-tar"));
        }
        if shot.endpoint.ends_with("/stdin") {
            headers.push(("content-type", "application/octet-stream"));
        }
        let sent = request(method, &shot.path, &headers, &shot.body);
        if shot.endpoint.ends_with("/stream") {
            return self.follow(&sent);
        }
        client.exchange(&sent).map(|answer| answer.status)
    }

    /// Follows events for a moment, and goes away in the middle.
    fn follow(&self, sent: &[u8]) -> std::io::Result<u16> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(FOLLOW_TIME))?;
        stream.write_all(sent)?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        let status = std::str::from_utf8(&head[9..]).ok().and_then(|status| status.parse().ok());
        status.ok_or_else(|| std::io::ErrorKind::InvalidData.into())
    }

    fn shot(&self, endpoint: &'static str, rng: &mut Rng) -> Shot {
        let (_, template) = endpoint.split_once(' ').unwrap_or_default();
        let name = if rng.below(2) == 0 { "mine" } else { "w" };
        let path = template.replace("{id}", &self.victims).replace("{name}", name);
        let plain = Shot { endpoint, path, body: Vec::new() };
        match endpoint {
            "POST /api/v1/execute" => {
                let (query, body) = execution(rng);
                Shot { path: format!("{EXECUTE}{query}"), body, ..plain }
            }
            "POST /api/v1/batch" => {
                let requests: Vec<_> = (0..16).map(|_| program(rng)).collect();
                let body = json!({ "requests": requests }).to_string().into_bytes();
                Shot { path: format!("{}?wait=1", plain.path), body, ..plain }
            }
            "GET /api/v1/executions" => Shot { path: format!("{}?limit=500", plain.path), ..plain },
            "POST /api/v1/environments" => {
                let body = json!({ "name": "e", "language": "python", "packages": ["six"] });
                Shot { body: body.to_string().into_bytes(), ..plain }
            }
            "POST /api/v1/execute/{id}/stdin" | "PUT /api/v1/workspaces/{name}" => {
                Shot { body: vec![b'x'; 1 << 20], ..plain }
            }
            _ => plain,
        }
    }
}

fn draw(rng: &mut Rng) -> &'static str {
    let mut left = rng.below(ENDPOINTS.iter().map(|(weight, _)| weight).sum());
    for (weight, endpoint) in ENDPOINTS {
        if left < *weight {
            return endpoint;
        }
        left -= weight;
    }
    ENDPOINTS[0].1
}

/// The query and body of a request to execute something.
fn execution(rng: &mut Rng) -> (&'static str, Vec<u8>) {
    let body = match rng.below(10) {
        // Large and wrong only in its last byte.
        0 => {
            return (
                "",
                [&br#"{"language": "python", "code": ""#[..], &vec![b'x'; 8 << 20]].concat(),
            );
        }
        1 => {
            let mut body = program(rng);
            body["code"] = "x = 1\n".repeat(100_000).into();
            body
        }
        2 => {
            let mut body = program(rng);
            body["stdin"] = "x".repeat(1 << 20).into();
            body
        }
        3 => {
            let code = TEMPLATES.replace("SALT", &rng.below(1 << 30).to_string());
            json!({ "language": "cpp", "code": code })
        }
        4 => {
            let mut body = program(rng);
            body["allow_missing"] = json!(["landlock", "seccomp"]);
            body
        }
        // An input that never comes.
        5 => {
            let code = "import sys; sys.stdin.read()";
            let body = json!({ "language": "python", "code": code, "stdin_stream": true });
            return ("?wait=false", body.to_string().into_bytes());
        }
        6 => json!({ "language": format!("l{}", rng.below(1 << 30)), "code": "" }),
        _ => program(rng),
    };
    let query = if rng.below(3) == 0 { "?wait=false" } else { "?wait=1" };
    (query, body.to_string().into_bytes())
}

fn program(rng: &mut Rng) -> Value {
    let code = PROGRAMS[rng.below(PROGRAMS.len())];
    let language = "python";
    json!({ "language": language, "code": code, "timeout_ms": 3_000, "cpus": 64.0 })
}

impl Tally {
    pub(super) fn has(&self, endpoint: &str) -> bool {
        self.0.contains_key(endpoint)
    }

    /// Requests that were sent.
    pub(super) fn total(&self) -> usize {
        self.0.values().map(|counts| counts.answered + counts.refused + counts.broken).sum()
    }

    pub(super) fn json(&self) -> Value {
        let counts = |counts: &Counts| json!([counts.answered, counts.refused, counts.broken]);
        self.0.iter().map(|(endpoint, of_one)| (endpoint.clone(), counts(of_one))).collect()
    }

    pub(super) fn from_json(value: &Value) -> anyhow::Result<Self> {
        let mut tally = Self::default();
        for (endpoint, counts) in value.as_object().context("it is no object")? {
            let count = |place: usize| {
                let count = counts[place].as_u64().and_then(|count| usize::try_from(count).ok());
                count.with_context(|| format!("no counts of {endpoint}"))
            };
            let counts = Counts { answered: count(0)?, refused: count(1)?, broken: count(2)? };
            tally.0.insert(endpoint.clone(), counts);
        }
        Ok(tally)
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (endpoint, counts) in other.0 {
            let sum = self.0.entry(endpoint).or_default();
            sum.answered += counts.answered;
            sum.refused += counts.refused;
            sum.broken += counts.broken;
        }
    }

    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let row = |(endpoint, counts): (&String, &Counts)| {
            let Counts { answered, refused, broken } = counts;
            let counts = [answered, refused, broken].map(ToString::to_string);
            [vec![endpoint.clone()], counts.to_vec()].concat()
        };
        self.0.iter().map(row).collect()
    }

    fn count(&mut self, endpoint: &str, outcome: &std::io::Result<u16>) {
        let counts = self.0.entry(endpoint.to_owned()).or_default();
        match outcome {
            Ok(200..400) => counts.answered += 1,
            Ok(_) => counts.refused += 1,
            Err(_) => counts.broken += 1,
        }
    }
}
