//! The benchmark of `make bench`: our sandbox against bare processes and other sandboxes.
//!
//! [`setup`] starts everything that is compared. [`subjects`] are the programs, each with all ways to run it
//! ([`contender`], [`peers`]); a [`runner`] starts most of them. The parts are [`latency`] of one run, many runs at once
//! ([`parallel`], for concurrency and throughput), [`memory`] of prepared sandboxes, [`growth`] beside running programs,
//! and a server's [`queue`]. [`judge`] checks the figures against the promises. [`warm`] holds everything that depends on
//! how the library keeps things ready.

mod contender;
mod growth;
mod judge;
mod latency;
mod memory;
mod parallel;
mod peers;
mod plot;
mod process;
mod queue;
pub(crate) mod runner;
mod setup;
mod show;
mod subjects;
mod warm;

pub(crate) mod options;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

use crate::daemon;
use crate::host::HostFacts;
use crate::table::{publish, write_file};
use contender::Way;
use options::{Options, Part};
use setup::Setup;
use subjects::Subject;

/// Everything that was found out.
#[derive(Default)]
struct Findings {
    host: HostFacts,
    /// Peers and runtimes by name, with what they say they are.
    versions: Vec<(String, String)>,
    /// What could not be compared, and why.
    missing: Vec<String>,
    /// How runtimes that were started ahead were used, in words.
    warm: Vec<String>,
    latency: Vec<latency::Comparison>,
    concurrency: Vec<parallel::Parallel>,
    throughput: Vec<parallel::Parallel>,
    memory: Vec<memory::Memory>,
    growth: Vec<growth::Growth>,
    queue: Vec<queue::Queue>,
    /// How long it all took.
    seconds: u64,
}

/// Measures these parts, prints, and writes the results. The exit code speaks for the promises only if asked.
pub(crate) fn run(options: &Options, parts: &[Part]) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let mut findings = Findings { host: HostFacts::gather(""), ..Findings::default() };
    // Memory is the host's: it is measured before anything else of ours is there.
    if parts.contains(&Part::Memory) {
        say("memory");
        let (prepared, warm) = memory::measure(options.sandboxes(), options.repetitions());
        for measured in [prepared, warm] {
            findings.memory.extend(noted(measured, &mut findings.missing, "memory"));
        }
    }
    if parts.contains(&Part::Queue) {
        let program = daemon::program(options.server.as_ref())?;
        for queued in options.queued() {
            say(&format!("queue of {queued}"));
            let measured = queue::measure(&program, queued);
            findings.queue.extend(noted(measured, &mut findings.missing, "queue"));
        }
    }
    if parts.iter().any(|part| !matches!(part, Part::Memory | Part::Queue)) {
        in_setup(options, parts, &mut findings)?;
    }
    findings.seconds = begun.elapsed().as_secs();
    let judgements = judge::judge(&findings);
    let name = if parts.len() == 1 { parts[0].name() } else { "bench" };
    let text = show::text::render(&findings, &judgements);
    publish(name, &text, &show::json::of(&findings, &judgements), Some(&options.results))?;
    for (name, svg) in show::plots::all(&findings) {
        write_file(&options.results, &format!("{name}.svg"), &svg)?;
    }
    let holds = judgements.iter().all(|judgement| judgement.verdict == judge::Verdict::Holds);
    Ok(ExitCode::from(u8::from(options.judge && !holds)))
}

fn in_setup(options: &Options, parts: &[Part], findings: &mut Findings) -> anyhow::Result<()> {
    say("starting everything that is compared");
    let has_latency = parts.contains(&Part::Latency);
    let setup = Setup::start(has_latency && !options.without_peers)?;
    findings.note_peers(&setup);
    let subjects = if has_latency {
        subjects::all(&setup, &mut findings.missing)?
    } else {
        vec![subjects::small(&setup)?, subjects::python(&setup)?]
    };
    for subject in &subjects {
        findings.missing.extend(subject.complaints.iter().cloned());
        if has_latency {
            say(&format!("latency of {}", subject.name));
            findings.latency.extend(latency::measure(subject, options.rounds())?);
        }
    }
    let (small, python) = (&subjects[0], &subjects[1]);
    if parts.contains(&Part::Concurrency) {
        for (subject, ours) in [(small, Way::Prepared), (python, Way::Warm)] {
            let (workers, rounds) = (&options.concurrency, options.parallel_rounds());
            findings.concurrency.extend(run_parallel(subject, ours, workers, rounds)?);
        }
    }
    if parts.contains(&Part::Throughput) {
        let (workers, rounds) = (&options.workers, options.throughput_rounds());
        findings.throughput.extend(run_parallel(python, Way::Warm, workers, rounds)?);
    }
    if parts.contains(&Part::Growth) {
        for in_flight in options.in_flight() {
            say(&format!("{in_flight} in flight"));
            let measured = growth::measure(&setup.warm, small, in_flight, options.growth_runs());
            findings.growth.extend(noted(measured, &mut findings.missing, "growth"));
        }
    }
    drop(subjects);
    findings.warm = warm::used(&setup.warm);
    setup.stop()
}

fn run_parallel(
    subject: &Subject<'_>,
    ours: Way,
    workers: &[usize],
    rounds: parallel::Rounds,
) -> anyhow::Result<Vec<parallel::Parallel>> {
    let measure = |workers: &usize| {
        say(&format!("{} with {workers} workers", subject.name));
        parallel::measure(subject, ours, *workers, rounds)
    };
    workers.iter().map(measure).collect()
}

impl Findings {
    fn note_peers(&mut self, setup: &Setup) {
        let peers = &setup.peers;
        self.versions.extend(
            peers.versions.iter().map(|(peer, version)| (peer.name().to_owned(), version.clone())),
        );
        let missing = peers.missing.iter().map(|(peer, why)| format!("{}: {why}", peer.name()));
        self.missing.extend(missing);
    }
}

/// What a host cannot hold is left out with its reason: the other figures are worth having.
fn noted<T>(measured: anyhow::Result<T>, missing: &mut Vec<String>, what: &str) -> Option<T> {
    measured.map_err(|error| missing.push(format!("{what}: {error:#}"))).ok()
}

/// A line on standard error for people, whether that is a terminal or a file: the whole takes many minutes.
fn say(what: &str) {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let seconds = BEGAN.get_or_init(Instant::now).elapsed().as_secs();
    // A failed progress line is no failure of the benchmark.
    let _ = writeln!(std::io::stderr(), "[{:2}:{:02}] {what}", seconds / 60, seconds % 60);
}
