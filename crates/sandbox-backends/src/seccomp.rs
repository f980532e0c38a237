//! The system-call filter for containers that somebody else builds and runs.

use sandbox_linux::seccomp::{Arch, ContainerFilter, Profile};
use serde_json::Value;

/// The filter of the native walls, as `docker run --security-opt seccomp=FILE` takes it.
pub fn seccomp_for_docker() -> Value {
    Profile::builtin().docker_json(ContainerFilter::Alone)
}

/// The same as `linux.seccomp` of an OCI bundle, for the architecture of this program.
pub fn seccomp_for_oci() -> Value {
    Profile::builtin().oci_json(ContainerFilter::Alone, Arch::NATIVE)
}
