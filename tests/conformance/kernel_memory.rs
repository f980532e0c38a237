//! Ways to have the kernel keep memory that a program's limit does not count.

use std::time::Duration;

use sandbox::{Sandbox, Status};
use sandbox_tests::kernel_memory::{
    Growth, MAX_GROWTH_MIB, MEMORY_LIMIT_MIB, OPEN_ROUTES, ROUTES, SOURCE, growth, usage,
};

use sandbox_tests::wait::wait_for;

use crate::table::{c, mib, millis};

/// What an ended sandbox may leave in the kernel's caches.
const MAX_REMAINDER_KIB: u64 = 8 << 10;
const RELEASE_TIMEOUT: Duration = Duration::from_secs(20);

fn take(sandbox: &Sandbox, route: &str) -> (Growth, Status) {
    let limits = limits!(with_memory(mib(MEMORY_LIMIT_MIB)), with_wall_time(millis(20_000)));
    let request = c(SOURCE).args([route]).limits(limits).build().unwrap();
    growth(|| sandbox.execute(request).unwrap().status)
}

#[test]
fn no_kernel_memory_leaks_past_the_limit_by_any_known_route() {
    let sandbox = Sandbox::new().unwrap();
    // Once, so that it is compiled.
    let (by_itself, status) = take(&sandbox, "nothing");
    assert_eq!(status, Status::Completed);
    let mut over = Vec::new();
    for route in ROUTES {
        let (Growth { kernel_mib, .. }, status) = take(&sandbox, route);
        assert!(matches!(status, Status::Completed | Status::MemoryLimit), "{route}: {status:?}");
        if kernel_mib > MAX_GROWTH_MIB {
            let by_itself = by_itself.kernel_mib;
            over.push(format!("{route}: {kernel_mib} MiB, {by_itself} MiB by itself, {status:?}"));
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}

#[test]
#[ignore = "prints figures for SECURITY.md, and asserts nothing"]
#[expect(clippy::print_stdout, reason = "its output is what it is for")]
fn routes_that_may_exceed_the_bound_are_measured() {
    let sandbox = Sandbox::new().unwrap();
    take(&sandbox, "nothing");
    let before = usage().kernel_kib;
    for route in OPEN_ROUTES {
        // The kernel releases what an ended sandbox held a moment later.
        let is_released = || (usage().kernel_kib < before + MAX_REMAINDER_KIB).then_some(());
        let _ = wait_for(RELEASE_TIMEOUT, is_released);
        let (Growth { kernel_mib, .. }, status) = take(&sandbox, route);
        println!("{route}: {kernel_mib} MiB with a limit of {MEMORY_LIMIT_MIB} MiB, {status:?}");
    }
}
