//! Benchmarks that compare within one run, because only ratios survive on a shared machine.
//!
//! `sandbox-bench cold` asks what a sandbox costs that is built for one program and thrown away. The
//! program runs bare, under bubblewrap and in our sandbox, in turns, so that whatever else the machine
//! does falls on all alike ([`cases`], [`measure`]). Then it shows where our own time goes: by stage of
//! a run, and by wall ([`walls`]). [`table`] is for people, [`record`] for machines.
//!
//! `sandbox-bench compile` asks what compiling costs ([`compile`]).
//!
//! `sandbox-bench load` asks what HTTP adds ([`load`]); it starts a `sandboxd` ([`daemon`]) and is its
//! client ([`client`]). `sandbox-bench soak` asks whether a server stays right and small under many
//! requests of all kinds ([`soak`]). `sandbox-bench tenants` measures what one key of a server notices of another
//! that is hostile ([`tenants`]).
//!
//! `sandbox-bench backends` asks what each builder of walls costs, against plain `docker run` ([`backends`]).
//!
//! `sandbox-bench reach` asks how much comes through an allow-list ([`reach`]).
//!
//! `sandbox-bench all` is `make bench` ([`whole`]); its parts can be asked for one by one. `sandbox-bench
//! steady` asks whether anything stays behind after very many executions ([`steady`]).

mod backends;
mod cases;
mod client;
mod cold;
mod compile;
mod daemon;
mod dice;
mod host;
mod interrupt;
mod load;
mod measure;
mod reach;
mod record;
mod soak;
mod steady;
mod table;
mod tenants;
mod usage;
mod walls;
mod whole;

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};

use whole::options::{Options, Part};

#[derive(Parser)]
#[command(name = "sandbox-bench", about, version)]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Subcommand)]
enum Benchmark {
    /// What a single-use sandbox costs, against a bare process and bubblewrap.
    ///
    /// Ends with code 1 if a run of /bin/true in ours is not cheaper than under bubblewrap in every
    /// pacing.
    Cold(ColdArguments),
    /// What compiling and running hello costs: bare, new to us, and compiled before.
    ///
    /// Ends with code 1 if a program that was compiled before takes longer than compiling it bare.
    Compile(CompileArguments),
    /// What HTTP adds to a Python hello, against the library, with one client and with many.
    ///
    /// Starts the sandboxd that was built beside this program. Ends with code 1 if more than 0.5 ms is
    /// added to the median, or if 64 clients get less than 0.9 of the library's executions in a second.
    Load(LoadArguments),
    /// Many requests of all kinds against a real sandboxd, every answer checked.
    ///
    /// Ends with code 1 if an answer is wrong or missing, if the server's memory or descriptors grow, or
    /// if anything is left on the host.
    Soak(SoakArguments),
    /// Two keys of one sandboxd, one of which attacks every endpoint.
    ///
    /// Ends with code 1 if the other key loses anything, or if the 95th percentile of its requests is more than twice
    /// what it is without the attack.
    Tenants(TenantsArguments),
    /// Ours against bare processes and other sandboxes: every part below, in one run, with a judgement.
    ///
    /// Writes bench.txt, bench.json and plots. Ends with code 0 whatever was found, unless --judge is given.
    All(Options),
    /// The part of `all` about one run at a time, back to back and after idleness.
    Latency(Options),
    /// The part of `all` about many runs at once.
    Concurrency(Options),
    /// The part of `all` about runs in a second.
    Throughput(Options),
    /// The part of `all` about sandboxes that wait for a request.
    Memory(Options),
    /// The part of `all` about programs in flight.
    Growth(Options),
    /// The part of `all` about a server's queue.
    Queue(Options),
    /// A Python hello behind every backend, built for it and waiting, against plain `docker run`.
    ///
    /// Needs a Docker Engine, runc and runsc. Ends with code 1 if a container of Docker's that waited takes
    /// more than 0.35 of `docker run`.
    Backends(BackendsArguments),
    /// Bytes through an allow-list, against a plain connection over loopback.
    ///
    /// Ends with code 1 if less than half of a plain connection's comes through.
    Reach(ReachArguments),
    /// Very many executions in one process, with counts at ten points of what must not grow.
    ///
    /// Ends with code 1 if memory, descriptors, processes, cgroups or inodes grow.
    Steady(SteadyArguments),
    /// Starts commands that come on standard input, for another one of these.
    #[command(name = whole::runner::COMMAND, hide = true)]
    Runner,
}

#[derive(Args)]
struct SteadyArguments {
    /// How many.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(10..=100_000_000))]
    executions: u32,
    /// Workers at once; as many as there are cores if not given.
    #[arg(long)]
    workers: Option<NonZero<usize>>,
    /// One in so many is a Python hello, the others are /bin/true.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    python_every: u32,
    /// Where steady.json and steady.txt go; they are not written if it is not given.
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
    /// How many.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    requests: u32,
    /// Clients at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// After so many minutes no more is asked, and what was not asked counts as not answered.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: u64,
    /// The sandboxd to start; the one beside this program if not given.
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// Where soak.json and soak.txt go; they are not written if it is not given.
    #[arg(long, value_name = "DIRECTORY")]
    results: Option<PathBuf>,
}

#[derive(Args)]
struct TenantsArguments {
    /// Seconds of attack; the other key is measured alone for as long.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Phases into which that is divided.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    phases: u32,
    /// Connections of the attacker.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    clients: u32,
    /// One short phase, and no judgement of the latency.
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
    /// Requests of each kind with one client.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pairs: u32,
    /// Rounds of each kind for each number of clients.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// How long a round is.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Numbers of clients at once.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 256])]
    clients: Vec<usize>,
    /// Programs that run at once, in the server and through the library; twice the cores if not given.
    #[arg(long)]
    concurrency: Option<NonZero<usize>>,
    /// The sandboxd to start; the one beside this program if not given.
    #[arg(long, value_name = "PROGRAM")]
    server: Option<PathBuf>,
    /// Where load.json and load.txt go.
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct CompileArguments {
    /// Programs of each language.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Where compile.json and compile.txt go.
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct ReachArguments {
    /// Runs of each.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// How much is carried in each.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=4000))]
    mib: u32,
    /// Where to write what was found.
    #[arg(long, value_name = "DIR", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct BackendsArguments {
    /// Runs of each.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    rounds: u32,
    /// Where the Docker Engine listens.
    #[arg(
        long,
        value_name = "unix:///PATH",
        env = "DOCKER_HOST",
        default_value = "unix:///var/run/docker.sock"
    )]
    docker_host: String,
    /// Where backends.json and backends.txt go.
    #[arg(long, value_name = "DIRECTORY", default_value = "bench/results")]
    results: PathBuf,
}

#[derive(Args)]
struct ColdArguments {
    /// Rounds with pauses; the other pacings do a multiple of it.
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    rounds: u32,
    /// A few rounds only: to see that it works, not to quote figures.
    #[arg(long, conflicts_with = "rounds")]
    quick: bool,
    /// Where cold.json and cold.txt go.
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

/// As many programs as a server runs at once by default.
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
    // A runner ends with whoever started it.
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
        Benchmark::All(options) => whole::run(&options, &Part::ALL),
        Benchmark::Latency(options) => whole::run(&options, &[Part::Latency]),
        Benchmark::Concurrency(options) => whole::run(&options, &[Part::Concurrency]),
        Benchmark::Throughput(options) => whole::run(&options, &[Part::Throughput]),
        Benchmark::Memory(options) => whole::run(&options, &[Part::Memory]),
        Benchmark::Growth(options) => whole::run(&options, &[Part::Growth]),
        Benchmark::Queue(options) => whole::run(&options, &[Part::Queue]),
        Benchmark::Steady(arguments) => steady::run(&arguments.plan()),
        Benchmark::Runner => whole::runner::serve(),
    }
}
