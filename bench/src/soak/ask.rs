//! Asking, and checking the answer to the letter.

use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use super::question::{Expected, Kind, Question};
use crate::client::{Answer, Client, request};

/// Asks and checks; the error says what was wrong.
pub(super) fn ask(
    address: SocketAddr,
    client: &mut Option<Client>,
    question: &Question,
) -> anyhow::Result<()> {
    let mut connection = match client.take() {
        Some(connection) => connection,
        None => Client::connect(address).context("connect")?,
    };
    let asked = Asker { client: &mut connection, question }.ask();
    // After a failure nobody knows what the connection has still to tell.
    if asked.is_ok() {
        *client = Some(connection);
    }
    asked.with_context(|| {
        let body = String::from_utf8_lossy(&question.body);
        format!("{}: {}", question.kind.name(), body.chars().take(300).collect::<String>())
    })
}

struct Asker<'a> {
    client: &'a mut Client,
    question: &'a Question,
}

impl Asker<'_> {
    fn ask(&mut self) -> anyhow::Result<()> {
        match self.question.kind {
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
                std::thread::sleep(self.question.cancel_after);
                let answer = self.send("DELETE", &path, &[])?;
                self.check(&answer)?;
                // It is remembered as what the answer said.
                let answer = self.send("GET", &path, &[])?;
                self.check(&answer)
            }
            Kind::Waited | Kind::Files | Kind::Timeout | Kind::Memory | Kind::BadInput => {
                let answer = self.post("/api/v1/execute")?;
                self.check(&answer)
            }
        }
    }

    /// Has the request accepted for later; gives the path of the execution.
    fn accept(&mut self) -> anyhow::Result<String> {
        let answer = self.post("/api/v1/execute?wait=false")?;
        ensure!(answer.status == 202, "not accepted: {}", words(&answer));
        let accepted = json(&answer)?;
        let id = accepted["id"].as_str().with_context(|| format!("no id in {accepted}"))?;
        Ok(format!("/api/v1/execute/{id}"))
    }

    fn post(&mut self, path: &str) -> anyhow::Result<Answer> {
        Ok(self.client.exchange(&request("POST", path, &[], &self.question.body))?)
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
        match &self.question.expected {
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
        let Expected::Report { status, exit_code, stdout, files } = &self.question.expected else {
            bail!("a report where a problem was expected: {report}");
        };
        let is_right = report["status"] == *status
            && report["exit_code"] == *exit_code
            && report["stdout"] == *stdout
            // A language's complaint about running out of memory is its own.
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

/// Whether a report has this file, whatever else is said about it.
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
