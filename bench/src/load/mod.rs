//! What HTTP adds: a Python hello through the library and through a `sandboxd` of the same build.
//!
//! Both have as many spare slots and run as many programs at once. They take turns, a few requests each for
//! the time that a request takes ([`single_client`]), one round each for how many there are in a second
//! ([`many_clients`]), so that whatever else the machine does falls on both alike. The client's own cost is
//! measured with the cheapest request that the server answers.

mod many_clients;
mod show;
mod single_client;

use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use sandbox::{Report, Request, Sandbox, Status};
use serde_json::json;

use crate::daemon::{self, Daemon};
use crate::host::HostFacts;
use crate::table::publish;
use crate::{client, usize_in};

use many_clients::ManyClients;
use single_client::SingleClient;

/// The maximum time that HTTP may add to a request, in the median.
const MAX_ADDED: Duration = Duration::from_micros(500);
/// The minimum share of the library's executions in a second, with [`PROMISED_CLIENTS`].
const MIN_SHARE: f64 = 0.9;
const PROMISED_CLIENTS: usize = 64;

/// Requests of a turn: as in steady use, most follow one of their own kind. If they followed one of the
/// other kind, each would also be measured beside the other's cleaning up, in a process whose caches
/// the other one has just filled.
const TURN: usize = 20;

/// So long after a request another runtime waits. One client without pauses asks for more than two cores can
/// start, so that what it sees is mostly how busy they are with that.
const PAUSE: Duration = Duration::from_millis(50);

const CODE: &str = "print('Hello, World!')";
const STDOUT: &str = "Hello, World!\n";

/// How much is measured.
#[derive(Args)]
pub(crate) struct Plan {
    /// Requests of each kind with one client
    #[arg(long, default_value_t = 500, value_parser = usize_in(2..=100_000))]
    pairs: usize,
    /// Rounds of each kind for each number of clients
    #[arg(long, default_value_t = 4, value_parser = usize_in(1..=1000))]
    rounds: usize,
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

impl Plan {
    /// The default is that of a server.
    fn concurrency(&self) -> usize {
        self.concurrency.map_or_else(|| crate::cores() * 2, NonZero::get)
    }
}

/// Everything that was found out.
struct Findings {
    host: HostFacts,
    concurrency: usize,
    in_turns: SingleClient,
    /// The same in turns of one request.
    alternating: SingleClient,
    /// The same after pauses.
    spaced: SingleClient,
    many_clients: Vec<ManyClients>,
}

impl Findings {
    /// Whether a request that finds its runtime waiting takes little longer over HTTP.
    fn holds_added(&self) -> bool {
        self.spaced.added() <= MAX_ADDED
    }

    /// Whether the server comes close to the library, if that was asked.
    fn holds_share(&self) -> Option<bool> {
        let promised = self.many_clients.iter().find(|row| row.clients == PROMISED_CLIENTS)?;
        Some(promised.share_by_round() >= MIN_SHARE && promised.errors() == 0)
    }
}

/// What is compared: the library and a server.
struct Setup {
    sandbox: Sandbox,
    daemon: Daemon,
    /// The request over HTTP, as it goes over the wire.
    execute: Vec<u8>,
    /// The cheapest request.
    health: Vec<u8>,
}

impl Setup {
    fn start(plan: &Plan) -> anyhow::Result<Self> {
        let program = daemon::program(plan.server.as_ref())?;
        let settings = [("SANDBOXD_CONCURRENCY", plan.concurrency().to_string())];
        let body = json!({ "language": "python", "code": CODE }).to_string();
        Ok(Self {
            sandbox: Sandbox::new().context("start the library")?,
            daemon: Daemon::start(&program, &settings)?,
            execute: client::request("POST", "/api/v1/execute", &[], body.as_bytes()),
            health: client::request("GET", "/api/v1/health", &[], b""),
        })
    }

    /// Runs it once through the library.
    fn library(&self) -> anyhow::Result<Report> {
        let request = Request::builder("python").code(CODE).build()?;
        let report = self.sandbox.execute(request)?;
        ensure!(
            report.status == Status::Completed && report.stdout == STDOUT,
            "the library: {report:?}"
        );
        Ok(report)
    }
}

/// Measures, prints, writes the results, and ends with 1 if a target is missed.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let host = HostFacts::gather("");
    let setup = Setup::start(plan)?;
    let spaced = single_client::measure(&setup, plan.pairs / 2, 1, PAUSE)?;
    let in_turns = single_client::measure(&setup, plan.pairs, TURN, Duration::ZERO)?;
    let alternating = single_client::measure(&setup, plan.pairs / 2, 1, Duration::ZERO)?;
    let many_clients: anyhow::Result<Vec<_>> =
        plan.clients.iter().map(|clients| many_clients::measure(&setup, plan, *clients)).collect();
    let concurrency = plan.concurrency();
    let findings =
        Findings { host, concurrency, in_turns, alternating, spaced, many_clients: many_clients? };
    setup.daemon.stop()?;
    publish("load", &show::render(&findings), &show::to_json(&findings), Some(&plan.results))?;
    let holds = findings.holds_added() && findings.holds_share() != Some(false);
    Ok(ExitCode::from(u8::from(!holds)))
}
