//! Very many executions in one process: does anything stay behind?
//!
//! The small program goes through the backend, and now and then a Python hello through the library. The work
//! stops at ten points until everything is at rest; what is counted there ([`count`]) must not grow.

mod count;

use std::io::Write as _;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use sandbox::{Request, Sandbox, Status};
use sandbox_backends::native::{NativeBackend, NativeOptions};
use serde_json::{Value, json};

use crate::cases::{Case, Payload, Way, start_backend};
use crate::host::HostFacts;
use crate::table::{self, grid};
use crate::usize_in;
use count::{Count, Growth};

const POINTS: usize = 10;

#[derive(Args)]
pub(crate) struct Plan {
    /// Number of executions
    #[arg(long, default_value_t = 100_000, value_parser = usize_in(10..=100_000_000))]
    executions: usize,
    /// Number of workers [default: the number of cores]
    #[arg(long)]
    workers: Option<NonZero<usize>>,
    /// One execution in N is a Python hello, the others are /bin/true
    #[arg(long, default_value_t = 50, value_parser = usize_in(1..))]
    python_every: usize,
    /// Directory for steady.json and steady.txt [default: not written]
    #[arg(long, value_name = "DIRECTORY")]
    results: Option<PathBuf>,
}

struct Executors {
    backend: NativeBackend,
    sandbox: Sandbox,
}

/// What was counted at one point.
struct Point {
    executions: usize,
    elapsed: Duration,
    count: Count,
}

impl Point {
    fn line(&self) -> String {
        self.count.line(self.executions, self.elapsed) + "\n"
    }
}

/// Executes, prints what was counted at each point, and ends with 1 if anything grows.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let host = HostFacts::gather("");
    let executors = Executors {
        backend: start_backend(NativeOptions::default().spare)?,
        sandbox: Sandbox::new().context("start the library")?,
    };
    let begun = Instant::now();
    let mut points = Vec::new();
    let head = format!("{}\n{}\n", host.text(), Count::HEAD);
    print(&head)?;
    for point in 1..=POINTS {
        let done = points.last().map_or(0, |point: &Point| point.executions);
        let until = plan.executions * point / POINTS;
        execute(plan, &executors, done, until)?;
        let count = Count::at_rest()?;
        let point = Point { executions: until, elapsed: begun.elapsed(), count };
        print(&point.line())?;
        points.push(point);
    }
    // The first point is where everything has been used once.
    let (first, last) = (&points[0], &points[POINTS - 1]);
    let growth = first.count.growth(&last.count, last.executions - first.executions);
    let verdict = render_growth(&growth);
    print(&verdict)?;
    if let Some(results) = &plan.results {
        let lines: String = points.iter().map(Point::line).collect();
        let json = to_json(&host, &points, &growth);
        table::write("steady", &[head, lines, verdict].concat(), &json, results)?;
    }
    Ok(ExitCode::from(u8::from(growth.iter().any(|growth| !growth.is_flat()))))
}

fn execute(plan: &Plan, executors: &Executors, from: usize, until: usize) -> anyhow::Result<()> {
    let next = AtomicUsize::new(from);
    let work = || -> anyhow::Result<()> {
        let small = Case::ours(Payload::True, Way::Ours, &executors.backend);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= until {
                return Ok(());
            }
            if number.is_multiple_of(plan.python_every) {
                hello(&executors.sandbox)?;
            } else {
                small.run(Payload::True)?;
            }
        }
    };
    let workers = plan.workers.map_or_else(crate::cores, NonZero::get);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| anyhow::anyhow!("a worker broke off"))?);
        joined.collect()
    })
}

fn hello(sandbox: &Sandbox) -> anyhow::Result<()> {
    let request = Request::builder("python").code("print('Hello, World!')").build()?;
    let report = sandbox.execute(request)?;
    ensure!(
        report.status == Status::Completed && report.stdout == "Hello, World!\n",
        "Python hello: {report:?}"
    );
    Ok(())
}

fn render_growth(growth: &[Growth]) -> String {
    let rows = growth.iter().map(|growth| {
        let verdict = if growth.is_flat() { "flat" } else { "GROWS" };
        vec![
            growth.what.to_owned(),
            growth.first.to_string(),
            growth.last.to_string(),
            growth.allowed.to_string(),
            verdict.to_owned(),
        ]
    });
    let heads = ["from the first point to the last", "first", "last", "at most", ""];
    format!("\n{}\n", grid(&heads, rows))
}

fn to_json(host: &HostFacts, points: &[Point], growth: &[Growth]) -> Value {
    let points = points.iter().map(|point| {
        let mut row = json!(point.count);
        row["executions"] = json!(point.executions);
        row["seconds"] = json!(point.elapsed.as_secs());
        row
    });
    json!({
        "benchmark": "steady",
        "host": host.to_json(),
        "points": points.collect::<Vec<_>>(),
        "flat": growth.iter().all(Growth::is_flat),
    })
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).context("print the results")?;
    stdout.flush().context("print the results")
}
