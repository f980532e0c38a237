//! The key that is to notice nothing.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::client::{Answer, Client, request};

/// Between two requests, in which a runtime becomes ready for the next one.
const PAUSE: Duration = Duration::from_millis(50);
const EXECUTE: &str = "/api/v1/execute";

/// A client with a key, and what it has at the server.
pub(super) struct Victim {
    address: SocketAddr,
    client: Client,
    key: String,
    /// An execution from before the attack, and its report.
    id: String,
    report: Value,
    /// Requests that were answered, all of which the history must name.
    executions: usize,
}

impl Victim {
    /// Makes everything that must outlive the attack.
    pub(super) fn prepare(address: SocketAddr, key: String) -> anyhow::Result<Self> {
        let client = Client::connect(address)?;
        let mut victim =
            Self { address, client, key, id: String::new(), report: Value::Null, executions: 0 };
        let first = victim.post(&python("print('first')"), &[("idempotency-key", "mine")])?;
        first["id"].as_str().context("it has an id")?.clone_into(&mut victim.id);
        victim.report = victim.json("GET", &format!("{EXECUTE}/{}", victim.id))?;
        let kept = with(python("open('f', 'w').write('kept')"), "workspace", "mine");
        victim.post(&kept, &[])?;
        victim.post(&compiled(), &[])?;
        // Its runtime waits from now on.
        for _ in 0..5 {
            victim.hello()?;
        }
        Ok(victim)
    }

    /// An execution whose id the attacker has found out.
    pub(super) fn known(&self) -> String {
        self.id.clone()
    }

    /// Sends one small program after another, and says how long each took.
    pub(super) fn work(&mut self, phase: Duration) -> anyhow::Result<Vec<Duration>> {
        // The server has closed the connection of the phase before, if that was long ago.
        self.client = Client::connect(self.address)?;
        let end = Instant::now() + phase;
        let mut latencies = Vec::new();
        while Instant::now() < end {
            latencies.push(self.hello()?);
            std::thread::sleep(PAUSE);
        }
        Ok(latencies)
    }

    /// What is not as it was.
    pub(super) fn losses(&mut self) -> anyhow::Result<Vec<String>> {
        self.client = Client::connect(self.address)?;
        let mut losses = Vec::new();
        let mut lost = |what: &str, is_lost: bool| {
            if is_lost {
                losses.push(what.to_owned());
            }
        };
        let report = self.json("GET", &format!("{EXECUTE}/{}", self.id))?;
        lost("the report of the first execution has changed", report != self.report);
        let again = self.post(&python("print('first')"), &[("idempotency-key", "mine")])?;
        lost("the idempotency key was forgotten", again["id"] != self.report["id"]);
        // That was no new execution.
        self.executions -= 1;
        let read = with(python("print(open('f').read())"), "workspace", "mine:ro");
        lost("the workspace has lost its file", self.post(&read, &[])?["stdout"] != "kept\n");
        let cached = self.post(&compiled(), &[])?;
        let stages = cached["stages"].as_array().context("it has stages")?;
        let is_cached = stages.iter().any(|stage| stage["cached"] == true);
        lost("the compiled program was evicted", !is_cached);
        let known = self.history()?;
        lost(
            &format!("the history has {known} of {} executions", self.executions),
            known != self.executions,
        );
        Ok(losses)
    }

    fn history(&mut self) -> anyhow::Result<usize> {
        let (mut known, mut cursor) = (0, String::new());
        loop {
            let page = self.json("GET", &format!("/api/v1/executions?limit=500{cursor}"))?;
            known += page["executions"].as_array().context("it has executions")?.len();
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(known),
            }
        }
    }

    fn hello(&mut self) -> anyhow::Result<Duration> {
        let started = Instant::now();
        let report = self.post(&python("print('hello')"), &[])?;
        let elapsed = started.elapsed();
        ensure!(report["stdout"] == "hello\n", "the victim's program: {report}");
        Ok(elapsed)
    }

    /// Executes; anything but a report is a loss that ends the benchmark.
    fn post(&mut self, body: &Value, headers: &[(&str, &str)]) -> anyhow::Result<Value> {
        self.executions += 1;
        let headers = [&[("x-api-key", &*self.key)], headers].concat();
        let sent = request("POST", EXECUTE, &headers, body.to_string().as_bytes());
        let answer = self.client.exchange(&sent)?;
        value(&answer)
    }

    fn json(&mut self, method: &str, path: &str) -> anyhow::Result<Value> {
        let sent = request(method, path, &[("x-api-key", &self.key)], b"");
        let answer = self.client.exchange(&sent)?;
        value(&answer)
    }
}

fn value(answer: &Answer) -> anyhow::Result<Value> {
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status == 200, "the victim was refused with {}: {text}", answer.status);
    serde_json::from_str(&text).with_context(|| format!("read an answer: {text}"))
}

fn python(code: &str) -> Value {
    json!({ "language": "python", "code": code })
}

fn compiled() -> Value {
    json!({ "language": "c", "code": "#include <stdio.h>\nint main(void) { puts(\"compiled\"); }\n" })
}

fn with(mut body: Value, field: &str, value: &str) -> Value {
    body[field] = value.into();
    body
}
