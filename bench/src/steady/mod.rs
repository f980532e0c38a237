//! Very many executions in one process: does anything stay behind?
//!
//! The small program goes through the backend, and now and then a Python hello through the library. The work
//! stops at ten points until everything is at rest; what is counted there ([`count`]) must not grow.

mod count;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbox::{Request, Sandbox, Status};
use sandbox_backends::native::{NativeBackend, NativeOptions};
use serde_json::json;

use crate::cases::{Case, Payload, Way, start_backend};
use crate::host::HostFacts;
use crate::table::grid;
use count::{Count, Growth};

const POINTS: usize = 10;

/// How much is executed.
pub(crate) struct Plan {
    pub(crate) executions: usize,
    pub(crate) workers: usize,
    /// One execution in this many is a Python hello.
    pub(crate) python_every: usize,
    /// Where `steady.json` and `steady.txt` go, if anywhere.
    pub(crate) results: Option<PathBuf>,
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

/// Executes, prints what was counted at each point, and ends with 1 if anything grows.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let host = HostFacts::gather("");
    let executors = Executors {
        backend: start_backend(NativeOptions::default().spare)?,
        sandbox: Sandbox::new().context("start the library")?,
    };
    let begun = Instant::now();
    let mut points = Vec::new();
    print(&format!("{}\n\n{}\n", host.lines().join("\n"), Count::HEAD))?;
    for point in 1..=POINTS {
        let done = points.last().map_or(0, |point: &Point| point.executions);
        let until = plan.executions * point / POINTS;
        execute(plan, &executors, done, until)?;
        let count = Count::at_rest()?;
        let point = Point { executions: until, elapsed: begun.elapsed(), count };
        print(&format!("{}\n", point.count.line(point.executions, point.elapsed)))?;
        points.push(point);
    }
    // The first point is where everything has been used once.
    let (first, last) = (&points[0], &points[POINTS - 1]);
    let growth = first.count.growth(&last.count, last.executions - first.executions);
    let verdict = render_growth(&growth);
    print(&verdict)?;
    if let Some(results) = &plan.results {
        record(&host, &points, &growth, &verdict, results)?;
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
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.workers).map(|_| scope.spawn(work)).collect();
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

fn record(
    host: &HostFacts,
    points: &[Point],
    growth: &[Growth],
    verdict: &str,
    directory: &Path,
) -> anyhow::Result<()> {
    let mut text = format!("{}\n\n{}\n", host.lines().join("\n"), Count::HEAD);
    for point in points {
        let _ = writeln!(text, "{}", point.count.line(point.executions, point.elapsed));
    }
    text.push_str(verdict);
    let points = points.iter().map(|point| {
        let mut row = point.count.to_json();
        row["executions"] = json!(point.executions);
        row["seconds"] = json!(point.elapsed.as_secs());
        row
    });
    let json = json!({
        "benchmark": "steady",
        "host": host.to_json(),
        "points": points.collect::<Vec<_>>(),
        "flat": growth.iter().all(Growth::is_flat),
    });
    std::fs::create_dir_all(directory)
        .with_context(|| format!("make the directory {}", directory.display()))?;
    let json = serde_json::to_string_pretty(&json)? + "\n";
    for (name, contents) in [("steady.json", &json), ("steady.txt", &text)] {
        let path = directory.join(name);
        std::fs::write(&path, contents).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).context("print the results")?;
    stdout.flush().context("print the results")
}
