//! Sends one case to the server and checks the response exactly.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::case::{Case, Expected, Kind};
use crate::client::{Answer, Client, request};

/// Sends a case and checks the response; the error says what is wrong with it.
pub(super) fn check(
    address: SocketAddr,
    client: &mut Option<Client>,
    case: &Case,
) -> anyhow::Result<()> {
    let mut connection = match client.take() {
        Some(connection) => connection,
        None => Client::connect(address).context("connect")?,
    };
    let result = Exchange { client: &mut connection, case }.run();
    // After a failure the connection may still hold the rest of a response.
    if result.is_ok() {
        *client = Some(connection);
    }
    result.with_context(|| {
        let body = String::from_utf8_lossy(&case.body);
        format!("{}: {}", case.kind.name(), body.chars().take(300).collect::<String>())
    })
}

struct Exchange<'a> {
    client: &'a mut Client,
    case: &'a Case,
}

impl Exchange<'_> {
    fn run(&mut self) -> anyhow::Result<()> {
        match self.case.kind {
            Kind::Polled => {
                let path = self.accept()?;
                let answer = self.send("GET", &format!("{path}?wait=60"), &[])?;
                self.check(&answer)
            }
            Kind::Streamed => {
                let path = self.accept()?;
                let accept = [("Accept", "text/event-stream")];
                let answer = self.send("GET", &format!("{path}/stream"), &accept)?;
                self.check_events(&answer)
            }
            Kind::Cancelled => {
                let path = self.accept()?;
                std::thread::sleep(self.case.cancel_after);
                let answer = self.send("DELETE", &path, &[])?;
                self.check(&answer)?;
                // The stored report equals the response.
                let answer = self.send("GET", &path, &[])?;
                self.check(&answer)
            }
            Kind::Waited | Kind::Files | Kind::Timeout | Kind::Memory | Kind::BadInput => {
                let answer = self.post("/api/v1/execute")?;
                self.check(&answer)
            }
        }
    }

    /// Submits the request without waiting; returns the path of the execution.
    fn accept(&mut self) -> anyhow::Result<String> {
        let answer = self.post("/api/v1/execute?wait=false")?;
        ensure!(answer.status == 202, "not accepted: {}", words(&answer));
        let accepted = json(&answer)?;
        let id = accepted["id"].as_str().with_context(|| format!("no id in {accepted}"))?;
        Ok(format!("/api/v1/execute/{id}"))
    }

    fn post(&mut self, path: &str) -> anyhow::Result<Answer> {
        Ok(self.client.exchange(&request("POST", path, &[], &self.case.body))?)
    }

    fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> anyhow::Result<Answer> {
        Ok(self.client.exchange(&request(method, path, headers, b""))?)
    }

    fn check(&self, answer: &Answer) -> anyhow::Result<()> {
        match &self.case.expected {
            Expected::Report { .. } => {
                ensure!(answer.status == 200, "{}: {}", answer.status, words(answer));
                self.check_report(&json(answer)?)
            }
            Expected::Problem { status, code, names } => {
                let problem = json(answer)?;
                let detail = problem["detail"].as_str().unwrap_or_default();
                let is_right =
                    answer.status == *status && problem["code"] == *code && detail.contains(names);
                ensure!(is_right, "not {status} {code} naming '{names}': {problem}");
                Ok(())
            }
        }
    }

    fn check_report(&self, report: &Value) -> anyhow::Result<()> {
        let Expected::Report { status, exit_code, stdout, files } = &self.case.expected else {
            bail!("a report where a problem was expected: {report}");
        };
        let is_right = report["status"] == *status
            && report["exit_code"] == *exit_code
            && report["stdout"] == *stdout
            // A runtime may print its own message when it runs out of memory.
            && (report["stderr"] == "" || *status == "memory_limit")
            && report["output_files"].as_array().map_or(0, Vec::len)
                == files.as_array().map_or(0, Vec::len)
            && files.as_array().into_iter().flatten().all(|file| has(report, file));
        ensure!(is_right, "not {status} with {stdout:?} and {files}: {report}");
        Ok(())
    }

    fn check_events(&self, answer: &Answer) -> anyhow::Result<()> {
        ensure!(answer.status == 200, "{}: {}", answer.status, words(answer));
        let text = words(answer);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let events: Vec<Value> = data.map(serde_json::from_str).collect::<Result<_, _>>()?;
        let is_numbered =
            (1..).zip(&events).all(|(number, event): (u64, _)| event["seq"] == number);
        ensure!(is_numbered, "the numbers have gaps: {text}");
        let pieces = events.iter().filter(|event| event["type"] == "stdout");
        let printed: String = pieces.filter_map(|event| event["data"].as_str()).collect();
        let last = events.last().context("there are no events")?;
        ensure!(last["type"] == "report", "the last event is not the report: {text}");
        ensure!(last["report"]["stdout"] == printed, "events and report differ: {text}");
        self.check_report(&last["report"])
    }
}

/// Whether a report has this file; further fields are ignored.
fn has(report: &Value, file: &Value) -> bool {
    let found = report["output_files"].as_array().into_iter().flatten();
    let fields = file.as_object().into_iter().flatten();
    found.into_iter().any(|found| fields.clone().all(|(name, value)| found[name] == *value))
}

fn json(answer: &Answer) -> anyhow::Result<Value> {
    serde_json::from_slice(&answer.body)
        .with_context(|| format!("{} without JSON: {}", answer.status, words(answer)))
}

fn words(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}
