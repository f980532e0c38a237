//! Benchmarks of sandbox-run. Every benchmark compares alternatives within one run, in turns, because only ratios are
//! meaningful on a shared machine.
//!
//! | subcommand | measures | module |
//! |---|---|---|
//! | `all` | everything of `make bench`; its parts are subcommands too | [`suite`] |
//! | `cold` | a single-use sandbox against a bare process and bubblewrap; time per stage and per protection | [`cold`], [`cases`] |
//! | `compile` | compiling hello: bare, uncached, cached | [`compile`] |
//! | `load` | what HTTP adds to the library | [`load`] |
//! | `soak` | a server under many requests of all kinds: every response correct, nothing grows | [`soak`] |
//! | `tenants` | what one API key notices of another that attacks | [`tenants`] |
//! | `backends` | every backend against plain `docker run` | [`backends`] |
//! | `reach` | throughput through an allow-list | [`reach`] |
//! | `steady` | growth over very many executions in one process | [`steady`] |
//!
//! `load`, `soak`, `tenants` and part of `all` start a `sandboxd` ([`daemon`]) and are its clients ([`client`]).
//! [`measure`] takes the times of single runs, [`rounds`] of parallel ones; [`table`] prints and writes them.

mod backends;
mod cases;
mod client;
mod cold;
mod compile;
mod daemon;
mod host;
mod interrupt;
mod load;
mod measure;
mod reach;
mod rng;
mod rounds;
mod soak;
mod steady;
mod suite;
mod table;
mod tenants;
mod usage;

use std::num::NonZero;
use std::ops::RangeBounds;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand};

use suite::options::{Options, Part};

#[derive(Parser)]
#[command(name = "sandbox-bench", about, version)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// Measure a single-use sandbox against a bare process and bubblewrap.
    ///
    /// Exits with 1 if /bin/true in our sandbox is not faster than under bubblewrap in every pacing.
    Cold(cold::Plan),
    /// Measure compiling and running hello: bare, uncached and cached.
    ///
    /// Exits with 1 if a cached program takes longer than compiling it bare.
    Compile(compile::Plan),
    /// Measure what HTTP adds to a Python hello, with one client and with many.
    ///
    /// Starts the sandboxd that was built beside this program. Exits with 1 if HTTP adds more than 0.5 ms to the
    /// median, or if 64 clients get less than 0.9 of the library's executions per second.
    Load(load::Plan),
    /// Send many requests of all kinds to a sandboxd and check every response.
    ///
    /// Exits with 1 if a response is wrong or missing, if the server's memory or descriptors grow, or
    /// if anything is left on the host.
    Soak(soak::Plan),
    /// Attack every endpoint of a sandboxd with one API key while another one works.
    ///
    /// Exits with 1 if the other key loses anything, or if the 95th percentile of its requests is more than twice
    /// what it is without the attack.
    Tenants(TenantsArguments),
    /// Measure everything: our sandbox against bare processes and other sandboxes.
    ///
    /// Writes bench.txt, bench.json and plots. Exits with 0 whatever the results are, unless --judge is given.
    All(Options),
    /// Measure one run at a time, back to back and after idleness (part of `all`).
    Latency(Options),
    /// Measure many runs at once (part of `all`).
    Concurrency(Options),
    /// Measure runs per second (part of `all`).
    Throughput(Options),
    /// Measure the memory of prepared sandboxes (part of `all`).
    Memory(Options),
    /// Measure the cost of an execution beside many running programs (part of `all`).
    Growth(Options),
    /// Measure a server's queue (part of `all`).
    Queue(Options),
    /// Measure a Python hello on every backend, cold and prepared, against plain `docker run`.
    ///
    /// Needs a Docker Engine, runc and runsc. Exits with 1 if a prepared Docker container takes
    /// more than 0.35 of the time of `docker run`.
    Backends(backends::Plan),
    /// Measure throughput through an allow-list against a plain loopback connection.
    ///
    /// Exits with 1 if it is less than half of the plain connection's.
    Reach(reach::Plan),
    /// Run very many executions in one process and count ten times what must not grow.
    ///
    /// Exits with 1 if memory, descriptors, processes, cgroups or inodes grow.
    Steady(steady::Plan),
    /// Start the commands that another sandbox-bench sends on standard input.
    #[command(name = suite::runner::COMMAND, hide = true)]
    Runner,
    /// Attack the server that another sandbox-bench names on standard input, until it ends.
    #[command(name = tenants::attacker::COMMAND, hide = true)]
    Attacker,
}

#[derive(Args)]
struct TenantsArguments {
    /// Seconds of attack; the other key is measured without it for as long
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Number of phases of the attack
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    phases: u32,
    /// Number of connections of the attacker
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// Run one short phase and do not check the latency
    #[arg(long, conflicts_with_all = ["seconds", "phases"])]
    quick: bool,
    /// The sandboxd to start [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// Directory for tenants.json and tenants.txt
    #[arg(long, value_name = "DIRECTORY")]
    results: Option<PathBuf>,
}

impl TenantsArguments {
    fn plan(self) -> tenants::Plan {
        let (seconds, phases) =
            if self.quick { (QUICK_SECONDS, 1) } else { (self.seconds, self.phases) };
        tenants::Plan {
            attack: Duration::from_secs(seconds),
            phases,
            clients: self.clients as usize,
            judges_latency: !self.quick,
            server: self.server,
            results: self.results,
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Parses a number in this range.
fn usize_in(range: impl RangeBounds<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(range)
}

const QUICK_SECONDS: u64 = 6;

fn main() -> anyhow::Result<ExitCode> {
    let benchmark = Arguments::parse().benchmark;
    // A runner exits when the process that started it does.
    if !matches!(benchmark, Benchmark::Runner) {
        interrupt::listen().context("listen to signals")?;
    }
    match benchmark {
        Benchmark::Cold(plan) => cold::run(&plan),
        Benchmark::Compile(plan) => compile::run(&plan),
        Benchmark::Backends(plan) => backends::run(&plan),
        Benchmark::Reach(plan) => reach::run(&plan),
        Benchmark::Load(plan) => load::run(&plan),
        Benchmark::Soak(plan) => soak::run(&plan),
        Benchmark::Tenants(arguments) => tenants::run(&arguments.plan()),
        Benchmark::All(options) => suite::run(&options, &Part::ALL),
        Benchmark::Latency(options) => suite::run(&options, &[Part::Latency]),
        Benchmark::Concurrency(options) => suite::run(&options, &[Part::Concurrency]),
        Benchmark::Throughput(options) => suite::run(&options, &[Part::Throughput]),
        Benchmark::Memory(options) => suite::run(&options, &[Part::Memory]),
        Benchmark::Growth(options) => suite::run(&options, &[Part::Growth]),
        Benchmark::Queue(options) => suite::run(&options, &[Part::Queue]),
        Benchmark::Steady(plan) => steady::run(&plan),
        Benchmark::Runner => suite::runner::serve(),
        Benchmark::Attacker => tenants::attacker::serve(),
    }
}
