//! The cost of each backend: a Python hello in a cold sandbox and in a prepared one, against plain
//! `docker run`. All have their turn in every round.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbox::{Isolation, Limits, Request, Sandbox, Start, Status};
use sandbox_tests::wait::wait_for;
use serde_json::json;

use crate::cases::Run;
use crate::host::HostFacts;
use crate::measure::Series;
use crate::table::{grid, millis};

/// The most that an execution in a container of Docker's that waited may take, as a share of `docker run`.
const MOST: f64 = 0.35;
const CODE: &str = "print('Hello, World!')";
const STDOUT: &str = "Hello, World!\n";
/// Rounds at the start that are not counted: files are read for the first time, kinds become habits.
const WARM_UP: usize = 3;
/// Longer than the slowest runtime takes to start a container on a busy machine.
const RUN_TIMEOUT: Duration = Duration::from_mins(1);
const PLAIN: &str = "docker run";

/// One way to run it.
struct Contestant {
    name: String,
    way: Way,
    series: Series,
}

enum Way {
    /// The Engine's own client, with the limits that ours have.
    Plain { host: String, image: String },
    /// Our library, with this start.
    Ours(Box<Sandbox>, Start),
}

/// Measures, prints, and writes `backends.json` and `backends.txt`. Ends with 1 if Docker's containers that waited are
/// not as much sooner as promised.
pub(crate) fn run(rounds: usize, docker_host: &str, results: &Path) -> anyhow::Result<ExitCode> {
    let mut contestants = contestants(docker_host)?;
    for round in 0..WARM_UP + rounds {
        let count = contestants.len();
        for turn in 0..count {
            // Another one begins in every round.
            let contestant = &mut contestants[(turn + round) % count];
            let time = contestant.way.measure().with_context(|| contestant.name.clone())?;
            if round >= WARM_UP {
                contestant.series.push(Run::lasting(time));
            }
        }
    }
    let host = HostFacts::gather("");
    let text = render(&host, &contestants);
    std::io::stdout().write_all(text.as_bytes()).context("print the results")?;
    std::fs::create_dir_all(results)?;
    let json = serde_json::to_string_pretty(&to_json(&host, &contestants))? + "\n";
    for (name, contents) in [("backends.json", &json), ("backends.txt", &text)] {
        let path = results.join(name);
        std::fs::write(&path, contents).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(ExitCode::from(u8::from(share_of_docker(&contestants) > MOST)))
}

fn contestants(docker_host: &str) -> anyhow::Result<Vec<Contestant>> {
    let mut all = Vec::new();
    for isolation in Isolation::ALL {
        for (start, spare, name) in
            [(Start::Cold, 0, "built for it"), (Start::Prepared, 2, "waiting")]
        {
            let builder = Sandbox::builder().isolation(*isolation).docker_host(docker_host);
            // Runtimes that wait are another matter: `sandbox-bench all`.
            let sandbox = builder.spare_slots(spare).warm(false).build()?;
            let way = Way::Ours(Box::new(sandbox), start);
            let name = format!("{isolation}, {name}");
            all.push(Contestant { name, way, series: Series::default() });
        }
    }
    // It has our image now.
    let image = our_image(docker_host)?;
    let way = Way::Plain { host: docker_host.to_owned(), image };
    all.insert(0, Contestant { name: PLAIN.to_owned(), way, series: Series::default() });
    Ok(all)
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

fn find<'a>(contestants: &'a [Contestant], name: &str) -> &'a Contestant {
    contestants.iter().find(|contestant| contestant.name == name).expect("it is measured")
}

fn share_of_docker(contestants: &[Contestant]) -> f64 {
    let plain = &find(contestants, PLAIN).series;
    find(contestants, "docker, waiting").series.ratio_by_round(plain)
}

fn render(host: &HostFacts, contestants: &[Contestant]) -> String {
    let plain = &find(contestants, PLAIN).series;
    let rows = contestants.iter().map(|contestant| {
        let summary = contestant.series.summary();
        vec![
            contestant.name.clone(),
            summary.count.to_string(),
            millis(summary.median),
            millis(summary.p95),
            format!("{:.2}", contestant.series.ratio_by_round(plain)),
        ]
    });
    let table = grid(&["Python hello, ms", "runs", "median", "p95", "of docker run"], rows);
    let share = share_of_docker(contestants);
    let verdict = if share <= MOST { "holds" } else { "does NOT hold" };
    format!(
        "{}\n\n{table}\n  docker, waiting, takes {share:.2} of docker run by round; promised: at most {MOST} ({verdict})\n",
        host.lines().join("\n")
    )
}

fn to_json(host: &HostFacts, contestants: &[Contestant]) -> serde_json::Value {
    let plain = &find(contestants, PLAIN).series;
    let rows = contestants.iter().map(|contestant| {
        let summary = contestant.series.summary();
        json!({
            "name": contestant.name,
            "runs": summary.count,
            "median_ms": summary.median.as_secs_f64() * 1e3,
            "p95_ms": summary.p95.as_secs_f64() * 1e3,
            "of_docker_run": contestant.series.ratio_by_round(plain),
        })
    });
    json!({ "host": host.to_json(), "contestants": rows.collect::<Vec<_>>() })
}
