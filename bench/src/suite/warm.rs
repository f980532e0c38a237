//! What the library keeps ready ahead of requests. Everything that depends on how it is configured is here.

use std::path::Path;

use anyhow::{Context, ensure};
use sandbox::{Request, Sandbox, WarmPoolStats};

use super::contender::HELLO;

/// The library starts more runtimes ahead when requests find none. This many waves of concurrent requests
/// must be enough to reach the target.
const WAVES: usize = 20;

/// The library, with what it compiles in a directory of our own. Without `warm` it prepares sandboxes, but starts no
/// runtime before there is a program for it.
pub(super) fn library(warm: bool, store: &Path) -> anyhow::Result<Sandbox> {
    let builder = Sandbox::builder().store_directory(store.to_owned());
    builder.warm(warm).build().context("start the library")
}

/// How the runtimes that a library starts ahead were used, a line for each kind.
pub(super) fn used(sandbox: &Sandbox) -> Vec<String> {
    let line = |figures: WarmPoolStats| {
        let WarmPoolStats { name, wanted, hits, misses, failure, .. } = figures;
        let failure = failure.map_or(String::new(), |why| format!(", last failure: {why}"));
        format!("{name}: {hits} found one waiting, {misses} did not; {wanted} kept{failure}")
    };
    sandbox.pool().map_or(Vec::new(), |pool| pool.warm.into_iter().map(line).collect())
}

/// A library that keeps `count` warm Pythons.
pub(super) fn keep_warm_pythons(count: usize) -> anyhow::Result<WarmPythons> {
    let sandbox = Sandbox::builder().max_warm(count).build().context("start the library")?;
    let pythons = WarmPythons { sandbox };
    let wanted = || pythons.sum(|figures| figures.wanted);
    for _ in 0..WAVES {
        if wanted() < count {
            pythons.ask(count)?;
        }
    }
    ensure!(
        wanted() >= count,
        "the library keeps {} Pythons, not {count}: {:?}",
        wanted(),
        used(&pythons.sandbox)
    );
    Ok(pythons)
}

/// Warm Pythons that are kept.
pub(super) struct WarmPythons {
    sandbox: Sandbox,
}

impl WarmPythons {
    /// How many are ready.
    pub(super) fn ready(&self) -> usize {
        self.sum(|figures| figures.ready)
    }

    fn sum(&self, take: fn(&WarmPoolStats) -> usize) -> usize {
        self.sandbox.pool().map_or(0, |pool| pool.warm.iter().map(take).sum())
    }

    /// Executes `count` programs at once.
    fn ask(&self, count: usize) -> anyhow::Result<()> {
        let start = || {
            let request = Request::builder("python").code("print('Hello, World!')").build()?;
            anyhow::Ok(self.sandbox.start(request)?)
        };
        let executions: Vec<_> = (0..count).map(|_| start()).collect::<Result<_, _>>()?;
        for execution in executions {
            let report = execution.wait()?;
            ensure!(report.stdout == HELLO, "Python hello: {report:?}");
        }
        Ok(())
    }
}
