//! Benchmarks of sandbox-run. Every benchmark compares alternatives within one run, in turns, because only ratios are
//! meaningful on a shared machine.
//!
//! | subcommand | measures | module |
//! |---|---|---|
//! | `all` | everything of `make bench`; its parts are subcommands too | [`suite`] |
//! | `cold` | a single-use sandbox against a bare process and bubblewrap; time per stage and per protection | [`cold`], [`cases`], [`protections`] |
//! | `compile` | compiling hello: bare, uncached, cached | [`compile`] |
//! | `load` | what HTTP adds to the library | [`load`] |
//! | `soak` | a server under many requests of all kinds: every response correct, nothing grows | [`soak`] |
//! | `tenants` | what one API key notices of another that attacks | [`tenants`] |
//! | `backends` | every backend against plain `docker run` | [`backends`] |
//! | `reach` | throughput through an allow-list | [`reach`] |
//! | `steady` | growth over very many executions in one process | [`steady`] |
//!
//! `load`, `soak`, `tenants` and part of `all` start a `sandboxd` ([`daemon`]) and are its clients ([`client`]).
//! [`measure`] takes the times, [`table`] prints them, [`record`] writes them.

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
mod protections;
mod reach;
mod record;
mod rng;
mod soak;
mod steady;
mod suite;
mod table;
mod tenants;
mod usage;

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
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
    Cold(ColdArguments),
    /// Measure compiling and running hello: bare, uncached and cached.
    ///
    /// Exits with 1 if a cached program takes longer than compiling it bare.
    Compile(CompileArguments),
    /// Measure what HTTP adds to a Python hello, with one client and with many.
    ///
    /// Starts the sandboxd that was built beside this program. Exits with 1 if HTTP adds more than 0.5 ms to the
    /// median, or if 64 clients get less than 0.9 of the library's executions per second.
    Load(LoadArguments),
    /// Send many requests of all kinds to a sandboxd and check every response.
    ///
    /// Exits with 1 if a response is wrong or missing, if the server's memory or descriptors grow, or
    /// if anything is left on the host.
    Soak(SoakArguments),
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
    Backends(BackendsArguments),
    /// Measure throughput through an allow-list against a plain loopback connection.
    ///
    /// Exits with 1 if it is less than half of the plain connection's.
    Reach(ReachArguments),
    /// Run very many executions in one process and count ten times what must not grow.
    ///
    /// Exits with 1 if memory, descriptors, processes, cgroups or inodes grow.
    Steady(SteadyArguments),
    /// Start the commands that another sandbox-bench sends on standard input.
    #[command(name = suite::runner::COMMAND, hide = true)]
    Runner,
    /// Attack the server that another sandbox-bench names on standard input, until it ends.
    #[command(name = tenants::attacker::COMMAND, hide = true)]
    Attacker,
}

#[derive(Args)]
struct SteadyArguments {
    /// Number of executions
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(10..=100_000_000))]
    executions: u32,
    /// Number of workers [default: the number of cores]
    #[arg(long)]
    workers: Option<NonZero<usize>>,
    /// One execution in N is a Python hello, the others are /bin/true
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    python_every: u32,
    /// Directory for steady.json and steady.txt [default: not written]
    #[arg(long, value_name = "DIRECTORY")]
    results: Option<PathBuf>,
}

impl SteadyArguments {
    fn plan(self) -> steady::Plan {
        steady::Plan {
            executions: self.executions as usize,
            workers: self.workers.map_or_else(cores, NonZero::get),
            python_every: self.python_every as usize,
            results: self.results,
        }
    }
}

#[derive(Args)]
struct SoakArguments {
    /// Number of requests
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    requests: u32,
    /// Number of concurrent clients
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
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

#[derive(Args)]
struct LoadArguments {
    /// Requests of each kind with one client
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pairs: u32,
    /// Rounds of each kind for each number of clients
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Seconds per round
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Numbers of concurrent clients
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 256])]
    clients: Vec<usize>,
    /// Concurrent programs, in the server and through the library [default: twice the cores]
    #[arg(long)]
    concurrency: Option<NonZero<usize>>,
    /// The sandboxd to start [default: the one beside this program]
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// Directory for load.json and load.txt
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct CompileArguments {
    /// Programs of each language
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Directory for compile.json and compile.txt
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct ReachArguments {
    /// Runs of each
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// MiB per run
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=4000))]
    mib: u32,
    /// Directory for reach.json and reach.txt
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct BackendsArguments {
    /// Runs of each
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    rounds: u32,
    /// Address of the Docker Engine
    #[arg(
        long,
        value_name = "unix:///PATH",
        env = "DOCKER_HOST",
        default_value = "unix:///var/run/docker.sock"
    )]
    docker_host: String,
    /// Directory for backends.json and backends.txt
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct ColdArguments {
    /// Rounds with pauses; the other pacings run a multiple of it
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    rounds: u32,
    /// Run only a few rounds: a smoke test, not for quoting figures
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Directory for cold.json and cold.txt
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

impl LoadArguments {
    fn plan(self) -> load::Plan {
        load::Plan {
            pairs: self.pairs as usize,
            rounds: self.rounds as usize,
            round: Duration::from_secs(self.seconds),
            clients: self.clients,
            concurrency: self.concurrency.map_or_else(twice_the_cores, NonZero::get),
            server: self.server,
        }
    }
}

/// The default concurrency of a server.
fn twice_the_cores() -> usize {
    cores() * 2
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

const QUICK_ROUNDS: u32 = 6;
const QUICK_SECONDS: u64 = 6;

fn main() -> anyhow::Result<ExitCode> {
    let benchmark = Arguments::parse().benchmark;
    // A runner exits when the process that started it does.
    if !matches!(benchmark, Benchmark::Runner) {
        interrupt::listen().context("listen to signals")?;
    }
    match benchmark {
        Benchmark::Cold(arguments) => {
            let rounds = if arguments.quick { QUICK_ROUNDS } else { arguments.rounds };
            cold::run(rounds as usize, &arguments.results)
        }
        Benchmark::Compile(arguments) => {
            compile::run(arguments.rounds as usize, &arguments.results)
        }
        Benchmark::Backends(arguments) => {
            backends::run(arguments.rounds as usize, &arguments.docker_host, &arguments.results)
        }
        Benchmark::Reach(arguments) => {
            reach::run(arguments.rounds as usize, arguments.mib as usize, &arguments.results)
        }
        Benchmark::Load(arguments) => {
            let results = arguments.results.clone();
            load::run(&arguments.plan(), &results)
        }
        Benchmark::Soak(arguments) => soak::run(&soak::Plan {
            requests: arguments.requests as usize,
            clients: arguments.clients as usize,
            limit: Duration::from_mins(arguments.minutes),
            server: arguments.server,
            results: arguments.results,
        }),
        Benchmark::Tenants(arguments) => tenants::run(&arguments.plan()),
        Benchmark::All(options) => suite::run(&options, &Part::ALL),
        Benchmark::Latency(options) => suite::run(&options, &[Part::Latency]),
        Benchmark::Concurrency(options) => suite::run(&options, &[Part::Concurrency]),
        Benchmark::Throughput(options) => suite::run(&options, &[Part::Throughput]),
        Benchmark::Memory(options) => suite::run(&options, &[Part::Memory]),
        Benchmark::Growth(options) => suite::run(&options, &[Part::Growth]),
        Benchmark::Queue(options) => suite::run(&options, &[Part::Queue]),
        Benchmark::Steady(arguments) => steady::run(&arguments.plan()),
        Benchmark::Runner => suite::runner::serve(),
        Benchmark::Attacker => tenants::attacker::serve(),
    }
}
