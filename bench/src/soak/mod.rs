//! Many requests of all kinds against a real `sandboxd`: is each answered rightly, does the server stay
//! as small as it was, and is nothing left on the host?
//!
//! The number of a request decides what it asks ([`case`]), so that every run asks the same,
//! whichever client comes first. [`exchange`] checks each answer to the letter; [`server_stats`] looks at the server
//! from outside.

mod case;
mod exchange;
mod programs;
mod server_stats;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use sandbox_tests::process::{adopt_orphans, wait_for_no_descendants};
use sandbox_tests::residue::{Residue, cgroups_of};
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_until_empty;
use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::daemon::{self, Daemon};
use crate::host::HostFacts;
use crate::table::{grid, publish};
use crate::usize_in;

use case::{Case, Kind};
use programs::PROGRAMS;
use server_stats::{Comparison, Sample};

/// What a server that was stopped still needs to be gone.
const SOON: Duration = Duration::from_secs(15);
/// Wrong answers that are printed; all are counted.
const SHOWN: usize = 10;
/// Characters that are printed of each.
const MAX_SHOWN_LEN: usize = 1500;

#[derive(Args)]
pub(crate) struct Plan {
    /// Number of requests
    #[arg(long, default_value_t = 20_000, value_parser = usize_in(1..=10_000_000))]
    requests: usize,
    /// Number of concurrent clients
    #[arg(long, default_value_t = 16, value_parser = usize_in(1..=1000))]
    clients: usize,
    /// Stop after this many minutes; unsent requests count as unanswered
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// The sandboxd to start [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// Directory for soak.json and soak.txt [default: not written]
    #[arg(long, value_name = "DIRECTORY")]
    results: Option<PathBuf>,
}

/// What the clients have found out so far.
#[derive(Default)]
struct Tally {
    /// Right and wrong answers of each kind.
    kinds: BTreeMap<Kind, (usize, usize)>,
    wrong: Vec<String>,
}

struct Findings {
    host: HostFacts,
    requests: usize,
    elapsed: Duration,
    tally: Tally,
    comparison: Comparison,
    /// What is still there after the server has stopped, in words.
    left: Vec<String>,
}

/// Sends all requests, prints the results, and exits with 1 if anything is wrong.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let host = HostFacts::gather("");
    // Whatever the server leaves becomes ours, and is seen.
    adopt_orphans();
    let before = Residue::count();
    let program = daemon::program(plan.server.as_ref())?;
    let daemon = Daemon::start(&program, &[])?;
    let languages = languages(&daemon)?;
    let started = Instant::now();
    let (tally, comparison) = ask_everything(plan, &daemon, &languages)?;
    let elapsed = started.elapsed();
    let id = daemon.id();
    daemon.stop()?;
    let left = left_behind(id, &before);
    let findings = Findings { host, requests: plan.requests, elapsed, tally, comparison, left };
    publish("soak", &render(&findings), &to_json(&findings), plan.results.as_deref())?;
    Ok(ExitCode::from(u8::from(!findings.is_good())))
}

/// The languages of our programs that this host has; others are skipped aloud.
fn languages(daemon: &Daemon) -> anyhow::Result<Vec<&'static str>> {
    let mut client = Client::connect(daemon.address())?;
    let mut found = Vec::new();
    for program in PROGRAMS {
        let body = json!({
            "language": program.language, "code": program.text(0, None), "stdin": "x\n",
        });
        let body = body.to_string();
        let answer = client.exchange(&request("POST", "/api/v1/execute", &[], body.as_bytes()))?;
        let said: Value = serde_json::from_slice(&answer.body)?;
        if said["code"] == "language_unavailable" {
            skip(&format!("soak: {}", program.language), &said["detail"].to_string());
        } else {
            ensure!(answer.status == 200, "{}: {said}", program.language);
            found.push(program.language);
        }
    }
    Ok(found)
}

/// Lets the clients ask, and looks at the server when it is warm and when all is over.
fn ask_everything(
    plan: &Plan,
    daemon: &Daemon,
    languages: &[&str],
) -> anyhow::Result<(Tally, Comparison)> {
    // A new connection for each: the server closes one on which nothing is said for so long.
    let idle = || Sample::of_idle(daemon.id(), &mut Client::connect(daemon.address())?);
    let deadline = Instant::now() + Duration::from_mins(plan.minutes);
    let tally = Mutex::new(Tally::default());
    let third = plan.requests / 3;
    ask_some(plan, 0..third, daemon, languages, deadline, &tally)?;
    let warm = idle()?;
    ask_some(plan, third..plan.requests, daemon, languages, deadline, &tally)?;
    let end = idle()?;
    Ok((tally.into_inner().unwrap_or_else(PoisonError::into_inner), Comparison { warm, end }))
}

fn ask_some(
    plan: &Plan,
    numbers: Range<usize>,
    daemon: &Daemon,
    languages: &[&str],
    deadline: Instant,
    tally: &Mutex<Tally>,
) -> anyhow::Result<()> {
    let address = daemon.address();
    let nonce = u64::from(daemon.id()) ^ host_time();
    let next = AtomicUsize::new(numbers.start);
    let work = || {
        let mut client = None;
        while Instant::now() < deadline {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= numbers.end {
                break;
            }
            let case = Case::draw(number, languages, nonce);
            let answer = exchange::check(address, &mut client, &case);
            show_progress(number, plan.requests);
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.add(case.kind, number, answer);
        }
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..plan.clients).map(|_| scope.spawn(work)).collect();
        let joined: Vec<_> = clients.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        ensure!(joined.iter().all(Result::is_ok), "a client broke off");
        Ok(())
    })
}

fn host_time() -> u64 {
    chrono::Utc::now().timestamp_micros().unsigned_abs()
}

/// A progress line that overwrites itself.
fn show_progress(answered: usize, requests: usize) {
    let mut screen = std::io::stderr();
    if screen.is_terminal() {
        // A failed progress line is no failure of the benchmark.
        let _ = write!(screen, "\r{answered} of {requests} ");
        let _ = screen.flush();
    }
}

/// Looks for what outlived the server, and gives it a moment to go.
fn left_behind(server: u32, before: &Residue) -> Vec<String> {
    let mut left = Vec::new();
    let processes = wait_for_no_descendants(SOON);
    if !processes.is_empty() {
        left.push(format!("processes: {processes:?}"));
    }
    let cgroups = wait_until_empty(SOON, || cgroups_of(server));
    if !cgroups.is_empty() {
        left.push(format!("cgroups: {cgroups:?}"));
    }
    left.extend(before.wait_for_return().err());
    left
}

impl Tally {
    fn add(&mut self, kind: Kind, number: usize, answer: anyhow::Result<()>) {
        let (right, wrong) = self.kinds.entry(kind).or_default();
        match answer {
            Ok(()) => *right += 1,
            Err(error) => {
                *wrong += 1;
                if self.wrong.len() < SHOWN {
                    let error = format!("{error:#}");
                    let words: String = error.chars().take(MAX_SHOWN_LEN).collect();
                    self.wrong.push(format!("request {number}: {words}"));
                }
            }
        }
    }

    fn right(&self) -> usize {
        self.kinds.values().map(|(right, _)| right).sum()
    }
}

impl Findings {
    fn is_good(&self) -> bool {
        let is_flat = self.comparison.is_flat();
        self.tally.right() == self.requests && is_flat && self.left.is_empty()
    }
}

fn render(findings: &Findings) -> String {
    let host = findings.host.text();
    let mut text = format!("\nMany requests of all kinds against a real sandboxd\n\n{host}");
    let kinds = findings.tally.kinds.iter();
    let rows = kinds.map(|(kind, (right, wrong))| {
        vec![kind.name().to_owned(), right.to_string(), wrong.to_string()]
    });
    let _ = writeln!(text, "\n{}", grid(&["requests", "right", "wrong"], rows));
    for wrong in &findings.tally.wrong {
        let _ = writeln!(text, "  {wrong}");
    }
    let (right, requests) = (findings.tally.right(), findings.requests);
    let seconds = findings.elapsed.as_secs_f64();
    let _ = writeln!(text, "\n{right} of {requests} answered rightly in {seconds:.0} s");
    let comparison = &findings.comparison;
    let row = |name: &str, sample: &Sample| {
        vec![
            name.to_owned(),
            sample.memory_kib.to_string(),
            sample.descriptors.to_string(),
            sample.threads.to_string(),
            sample.waiting.to_string(),
        ]
    };
    let rows = [row("warm", &comparison.warm), row("at the end", &comparison.end)];
    let heads = ["the server", "resident KiB", "descriptors", "threads", "waiting sandboxes"];
    let verdict = if comparison.is_flat() { "flat" } else { "NOT flat" };
    let _ = writeln!(text, "\n{}\n{verdict}: {}", grid(&heads, rows), server_stats::RULE);
    if findings.left.is_empty() {
        text.push_str("nothing left on the host\n");
    }
    for left in &findings.left {
        let _ = writeln!(text, "left on the host: {left}");
    }
    text
}

fn to_json(findings: &Findings) -> Value {
    let kinds = findings.tally.kinds.iter();
    let kinds = kinds.map(|(kind, (right, wrong))| {
        (kind.name().to_owned(), json!({ "right": right, "wrong": wrong }))
    });
    let sample = |sample: &Sample| {
        json!({
            "resident_kib": sample.memory_kib,
            "descriptors": sample.descriptors,
            "threads": sample.threads,
            "waiting_sandboxes": sample.waiting,
        })
    };
    json!({
        "benchmark": "soak",
        "host": findings.host.to_json(),
        "requests": findings.requests,
        "seconds": findings.elapsed.as_secs(),
        "kinds": kinds.collect::<serde_json::Map<_, _>>(),
        "warm": sample(&findings.comparison.warm),
        "end": sample(&findings.comparison.end),
        "flat": findings.comparison.is_flat(),
        "left": findings.left,
    })
}
