//! Ways to have the kernel keep memory that a program's limit does not count, under cgroups of version 2.

use std::collections::BTreeSet;
use std::time::Duration;

use sandbox::{Backend, Ending, Limits, Protection, StageOutcome};
use sandbox_backends::native::{NativeBackend, NativeOptions, Spare};
use sandbox_tests::kernel_memory::{
    Growth, MAX_GROWTH_MIB, MEMORY_LIMIT_MIB, ROUTES, growth, usage,
};
use sandbox_tests::wait::wait_for;

use crate::outcome::Outcome;
use crate::plans::{limits, mib, plan, possible, run, text};

/// Compiled on the host, because the guest has no compiler.
const PROGRAM: &str = "/usr/bin/kernel_memory";
/// For how many seconds each process of the program takes memory.
const SECONDS: &str = "3";
/// Enough to use up every file, in a guest on a busy host too.
const LONG: &str = "50";
/// What an ended sandbox may leave in the kernel's caches, in KiB.
const MAX_REMAINDER_KIB: u64 = 8 << 10;
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn no_route_leads_past_the_memory_limit(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_memory(mib(MEMORY_LIMIT_MIB)))?;
    // Once, so that later ones find the kernel's caches filled.
    run(backend, &plan(&[PROGRAM, "nothing", SECONDS], limits.clone()))?;
    let (by_itself, _) = take(backend, "nothing", limits.clone(), SECONDS)?;
    ensure!(by_itself.kernel_mib < MAX_GROWTH_MIB / 4, "a sandbox by itself takes {by_itself:?}");
    // Bounded by the number of message queues, which old kernels let nobody limit inside.
    let unbounded = |route: &str| {
        let missing = &backend.capabilities().missing;
        route == "message_pages"
            && missing.iter().any(|missing| missing.protection == Protection::IpcLimits)
    };
    let mut over = Vec::new();
    for route in ROUTES {
        let (growth, _) = take(backend, route, limits.clone(), SECONDS)?;
        if growth.kernel_mib > MAX_GROWTH_MIB && !unbounded(route) {
            over.push(*route);
        }
    }
    ensure!(
        over.is_empty(),
        "the kernel's memory grew by more than {MAX_GROWTH_MIB} MiB: {over:?}"
    );
    Ok(())
}

/// Runs the program and prints what it took. What earlier ones held is released before that.
#[expect(clippy::print_stdout, reason = "this is a program that reports to a terminal")]
fn take(
    backend: &NativeBackend,
    route: &str,
    limits: Limits,
    seconds: &str,
) -> Result<(Growth, StageOutcome), String> {
    let before = usage();
    let (growth, outcome) = growth(|| run(backend, &plan(&[PROGRAM, route, seconds], limits)));
    let outcome = outcome?;
    let Growth { kernel_mib, used_mib } = growth;
    let (ending, told) = (outcome.ending, text(&outcome.stdout));
    println!(
        "        {route}: {kernel_mib} MiB of the kernel's, {used_mib} MiB in all; {ending:?}; {told}"
    );
    let as_expected = matches!(ending, Ending::Exited(0) | Ending::OutOfMemory);
    ensure!(as_expected, "{route}: {ending:?}: {}", text(&outcome.stderr));
    // Else the next one begins with memory that it could take without any growth. What is not free says less: the
    // kernel keeps free pages for each CPU.
    let remainder = || usage().kernel_kib.saturating_sub(before.kernel_kib);
    let is_released = || (remainder() <= MAX_REMAINDER_KIB).then_some(());
    let released = wait_for(RELEASE_TIMEOUT, is_released);
    ensure!(released.is_some(), "{route}: {} KiB are not released", remainder());
    Ok((growth, outcome))
}

/// Otherwise nothing shows that the other case could fail.
pub(crate) fn without_a_filter_a_route_leads_past_the_memory_limit(_: &NativeBackend) -> Outcome {
    let options = NativeOptions {
        without: BTreeSet::from([Protection::Seccomp]),
        spare: Spare::Keep(0),
        ..NativeOptions::default()
    };
    let unfiltered =
        NativeBackend::start(&options).map_err(|error| sandbox::with_causes(&error))?;
    ensure!(!unfiltered.capabilities().missing.is_empty(), "the filter is still there");
    // The number of files follows from the disk limit: the lists of all of them are 112 MiB.
    let limits = possible(limits().with_memory(mib(MEMORY_LIMIT_MIB)))?;
    let limits = possible(possible(limits.with_disk(mib(7)))?.with_pids(10))?;
    let (growth, _) = take(&unfiltered, "default_lists", limits, LONG)?;
    let is_seen = growth.kernel_mib > MAX_GROWTH_MIB;
    ensure!(is_seen, "default_lists grew by {growth:?} only");
    Ok(())
}
