//! The cost of a server's queue: it is filled while every worker is busy, and then drained.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbox::{Report, Status};
use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::daemon::Daemon;
use crate::measure::Summary;

const EXECUTE: &str = "/api/v1/execute";
/// The concurrency of the server.
const WORKERS: usize = 2;
/// As long as the queue takes to be filled, and more.
const BUSY: Duration = Duration::from_mins(4);
/// The script that is queued, and the script that keeps a worker busy.
const EMPTY: &str = ":";
const WAITING: &str = "exec sleep 240";
/// Requests of each client with an empty queue.
const ASKED: usize = 100;
/// Reports that are looked at, of however many there are.
const LOOKED_AT: usize = 200;

/// The cost with one length of the queue.
pub(crate) struct Queue {
    pub(crate) queued: usize,
    /// One request that is put into the queue, answered before it is its turn.
    pub(crate) accept: Summary,
    /// From one execution's turn to the next one's, on average; none if there is only one.
    pub(crate) drain: Option<Duration>,
    /// The same with as many clients as workers, each of which waits for its report before it asks again:
    /// there is no queue then.
    pub(crate) without: Duration,
    /// From being accepted to its turn: the longest.
    pub(crate) longest_wait: Duration,
}

pub(super) fn measure(program: &Path, queued: usize) -> anyhow::Result<Queue> {
    let settings = [("SANDBOXD_CONCURRENCY", WORKERS.to_string())];
    let daemon = Daemon::start(program, &settings)?;
    let mut server = Server::connect(&daemon)?;
    // What is read or made for the first time is not counted.
    for _ in 0..WORKERS * 4 {
        let id = server.accept(EMPTY, Duration::from_secs(10))?;
        server.report(&id)?;
    }
    let without = without_queue(&daemon)?;
    let busy: Vec<String> =
        (0..WORKERS).map(|_| server.accept(WAITING, BUSY)).collect::<Result<_, _>>()?;
    let (mut times, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..queued {
        let begun = Instant::now();
        ids.push(server.accept(EMPTY, Duration::from_secs(10))?);
        times.push(begun.elapsed());
    }
    for id in busy {
        server.ask("DELETE", &format!("{EXECUTE}/{id}"), b"", &[200])?;
    }
    // They come to their turn in the order in which they were accepted.
    let last = ids.last().context("at least one is queued")?;
    server.report(last)?;
    let (mut turns, mut longest_wait) = (Vec::new(), Duration::ZERO);
    for id in ids.iter().step_by(queued.div_ceil(LOOKED_AT)).chain([last]) {
        let report = server.report(id)?;
        ensure!(report.status == Status::Completed, "{report:?}");
        let waited = Duration::from_secs_f64(report.timings_ms.queue / 1e3);
        longest_wait = longest_wait.max(waited);
        turns.push(report.created_at + waited);
    }
    daemon.stop()?;
    let between = u32::try_from(queued - 1)?;
    let from_first_to_last = (turns[turns.len() - 1] - turns[0]).to_std().unwrap_or_default();
    let drain = (between > 0).then(|| from_first_to_last / between);
    Ok(Queue { queued, accept: Summary::of(times), drain, without, longest_wait })
}

/// Time per execution with an empty queue.
fn without_queue(daemon: &Daemon) -> anyhow::Result<Duration> {
    let ask = || -> anyhow::Result<()> {
        let mut server = Server::connect(daemon)?;
        for _ in 0..ASKED {
            let body = json!({ "language": "bash", "code": EMPTY }).to_string();
            server.ask("POST", EXECUTE, body.as_bytes(), &[200])?;
        }
        Ok(())
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..WORKERS).map(|_| scope.spawn(ask)).collect();
        clients
            .into_iter()
            .try_for_each(|client| client.join().ok().context("a client broke off")?)
    })?;
    Ok(begun.elapsed() / u32::try_from(ASKED * WORKERS)?)
}

struct Server(Client);

impl Server {
    fn connect(daemon: &Daemon) -> anyhow::Result<Self> {
        Ok(Self(Client::connect(daemon.address()).context("connect")?))
    }

    /// Has a script accepted for later.
    fn accept(&mut self, code: &str, timeout: Duration) -> anyhow::Result<String> {
        let timeout = u64::try_from(timeout.as_millis())?;
        let body = json!({ "language": "bash", "code": code, "timeout_ms": timeout }).to_string();
        let answer = self.ask("POST", &format!("{EXECUTE}?wait=false"), body.as_bytes(), &[202])?;
        Ok(answer["id"].as_str().context("it has an id")?.to_owned())
    }

    /// Waits for the report, however long it takes.
    fn report(&mut self, id: &str) -> anyhow::Result<Report> {
        let deadline = Instant::now() + BUSY;
        while Instant::now() < deadline {
            let path = format!("{EXECUTE}/{id}?wait=30");
            let answer = self.ask("GET", &path, b"", &[200, 202])?;
            if answer["stdout"].is_string() {
                return Ok(serde_json::from_value(answer)?);
            }
        }
        anyhow::bail!("{id} is not done after {BUSY:?}")
    }

    fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        wanted: &[u16],
    ) -> anyhow::Result<Value> {
        let answer = self.0.exchange(&request(method, path, &[], body))?;
        let said = String::from_utf8_lossy(&answer.body);
        ensure!(wanted.contains(&answer.status), "{method} {path}: {}: {said}", answer.status);
        serde_json::from_str(&said).with_context(|| said.to_string())
    }
}
