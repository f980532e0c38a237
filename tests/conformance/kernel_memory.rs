//! Ways to have the kernel keep memory that a program's limit does not count.

use sandbox::{Sandbox, Status};
use sandbox_tests::kernel_memory::{
    Growth, MAX_GROWTH_MIB, MEMORY_LIMIT_MIB, OPEN_ROUTES, ROUTES, SOURCE, growth,
};

use crate::table::{c, mib, millis};

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
    for route in OPEN_ROUTES {
        let (Growth { kernel_mib, .. }, status) = take(&sandbox, route);
        println!("{route}: {kernel_mib} MiB with a limit of {MEMORY_LIMIT_MIB} MiB, {status:?}");
    }
}
