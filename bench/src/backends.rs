//! The cost of each backend: a Python hello in a cold sandbox and in a prepared one, against plain
//! `docker run`. All have their turn in every round.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use sandbox::{Isolation, Limits, Request, Sandbox, Start, Status};
use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::cases::Run;
use crate::host::HostFacts;
use crate::measure::{Series, in_turns};
use crate::table::{grid, millis, publish};
use crate::usize_in;

/// The most that an execution in a container of Docker's that waited may take, as a share of `docker run`.
const MOST: f64 = 0.35;
const CODE: &str = "print('Hello, World!')";
const STDOUT: &str = "Hello, World!\n";
/// Rounds at the start that are not counted: files are read for the first time, kinds become habits.
const WARM_UP: usize = 3;
/// Longer than the slowest runtime takes to start a container on a busy machine.
const RUN_TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Args)]
pub(crate) struct Plan {
    /// Runs of each
    #[arg(long, default_value_t = 20, value_parser = usize_in(2..=10_000))]
    rounds: usize,
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

/// One way to run it.
enum Way {
    /// The Engine's own client, with the limits that ours have.
    Plain { host: String, image: String },
    /// Our library, with this start.
    Ours(Box<Sandbox>, Start),
}

/// The runs of each way, by name. The first is `docker run`.
type Results = [(String, Series)];

/// Measures, prints, and writes the results. Ends with 1 if Docker's containers that waited are not as much sooner as
/// promised.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let ways = ways(&plan.docker_host)?;
    let series = in_turns(ways.len(), WARM_UP, plan.rounds, |place, _| {
        let (name, way) = &ways[place];
        let time = way.measure().with_context(|| name.clone())?;
        Ok(vec![Run::lasting(time)])
    })?;
    let results: Vec<_> = ways.into_iter().map(|(name, _)| name).zip(series).collect();
    let host = HostFacts::gather("");
    publish("backends", &render(&host, &results), &to_json(&host, &results), Some(&plan.results))?;
    Ok(ExitCode::from(u8::from(share_of_docker(&results) > MOST)))
}

fn ways(docker_host: &str) -> anyhow::Result<Vec<(String, Way)>> {
    let mut ours = Vec::new();
    for isolation in Isolation::ALL {
        for (start, spare, name) in
            [(Start::Cold, 0, "built for it"), (Start::Prepared, 2, "waiting")]
        {
            let builder = Sandbox::builder().isolation(*isolation).docker_host(docker_host);
            // Runtimes that wait are another matter: `sandbox-bench all`.
            let sandbox = builder.spare_slots(spare).warm(false).build()?;
            ours.push((format!("{isolation}, {name}"), Way::Ours(Box::new(sandbox), start)));
        }
    }
    // It has our image now.
    let plain = Way::Plain { host: docker_host.to_owned(), image: our_image(docker_host)? };
    Ok([("docker run".to_owned(), plain)].into_iter().chain(ours).collect())
}

fn our_image(host: &str) -> anyhow::Result<String> {
    let mut list = Command::new("docker");
    list.args(["--host", host, "images", "--format", "{{.Repository}}:{{.Tag}}"]);
    let listed = list.output().context("start the Engine's client")?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let image = text.lines().find(|name| name.starts_with("sandbox-run/base:"));
    Ok(image.context("the Engine has no image of ours")?.to_owned())
}

impl Way {
    fn measure(&self) -> anyhow::Result<Duration> {
        match self {
            Self::Plain { host, image } => plain(host, image),
            Self::Ours(sandbox, start) => ours(sandbox, *start),
        }
    }
}

fn plain(host: &str, image: &str) -> anyhow::Result<Duration> {
    let limits = Limits::run();
    let (memory, pids) = (limits.memory().as_u64().to_string(), limits.pids().to_string());
    let mut command = Command::new("docker");
    command
        .args(["--host", host, "run", "--rm", "--network", "none", "--read-only"])
        .args(["--memory", &memory, "--memory-swap", &memory, "--pids-limit", &pids])
        .args(["--cpus", &limits.cpus().to_string(), "--cap-drop", "ALL", "--tmpfs", "/tmp"])
        .args(["--security-opt", "no-new-privileges", "--user", "65534:65534"])
        .args(["--volume", "/usr:/usr:ro", image, "/usr/bin/python3", "-c", CODE])
        .stdin(Stdio::null());
    let started = Instant::now();
    let output = command.output().context("start the Engine's client")?;
    let time = started.elapsed();
    ensure!(output.status.success() && output.stdout == STDOUT.as_bytes(), "{output:?}");
    Ok(time)
}

fn ours(sandbox: &Sandbox, start: Start) -> anyhow::Result<Duration> {
    if start == Start::Prepared {
        // The warm-up creates what is created on first use.
        wait_for(RUN_TIMEOUT, || {
            let pool = sandbox.pool().unwrap_or_default();
            (pool.ready > 0 || pool.wanted == 0).then_some(())
        });
    }
    let request = Request::builder("python").code(CODE).build()?;
    let started = Instant::now();
    let report = sandbox.execute(request)?;
    let time = started.elapsed();
    ensure!(report.status == Status::Completed && report.stdout == STDOUT, "{report:?}");
    Ok(time)
}

fn share_of_docker(results: &Results) -> f64 {
    let waiting = results.iter().find(|(name, _)| name == "docker, waiting");
    waiting.expect("it is measured").1.ratio_by_round(&results[0].1)
}

fn render(host: &HostFacts, results: &Results) -> String {
    let rows = results.iter().map(|(name, series)| {
        let summary = series.summary();
        vec![
            name.clone(),
            summary.count.to_string(),
            millis(summary.median),
            millis(summary.p95),
            format!("{:.2}", series.ratio_by_round(&results[0].1)),
        ]
    });
    let table = grid(&["Python hello, ms", "runs", "median", "p95", "of docker run"], rows);
    let share = share_of_docker(results);
    let verdict = if share <= MOST { "holds" } else { "does NOT hold" };
    format!(
        "{}\n{table}\n  docker, waiting, takes {share:.2} of docker run by round; promised: at most {MOST} ({verdict})\n",
        host.text()
    )
}

fn to_json(host: &HostFacts, results: &Results) -> serde_json::Value {
    let rows = results.iter().map(|(name, series)| {
        let summary = series.summary();
        json!({
            "name": name,
            "runs": summary.count,
            "median_ms": summary.median.as_secs_f64() * 1e3,
            "p95_ms": summary.p95.as_secs_f64() * 1e3,
            "of_docker_run": series.ratio_by_round(&results[0].1),
        })
    });
    json!({ "host": host.to_json(), "contestants": rows.collect::<Vec<_>>() })
}
