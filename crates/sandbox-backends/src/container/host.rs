//! Requirements of containers on the host.

use sandbox_core::BackendError;
use sandbox_linux::agent::AGENT;
use sandbox_linux::cgroup::Hierarchy;
use sandbox_linux::ids;

/// Returns the host's cgroups if it can run containers; otherwise what it lacks, as a message for
/// people.
pub(crate) fn check_host(backend: &str) -> Result<Hierarchy, BackendError> {
    let refused = |reason: &str| Err(BackendError::Refused(reason.to_owned()));
    if AGENT.is_empty() {
        return refused(
            "this build has no agent for containers: build it where there is a static C library \
             (libc.a), for the machine it is built on, or use --isolation native",
        );
    }
    if !ids::are_available() {
        return refused(&format!(
            "{backend} needs root here: run as root, or use --isolation native"
        ));
    }
    let hierarchy = Hierarchy::detect();
    let enforces = hierarchy.enforces();
    if !(enforces.memory && enforces.pids && enforces.cpu_quota && enforces.cpu_accounting) {
        return refused(&format!(
            "{backend} needs cgroups with memory, pids and cpu: use --isolation native"
        ));
    }
    Ok(hierarchy)
}
