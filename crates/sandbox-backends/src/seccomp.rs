//! The system-call filter for containers that other programs start.

use sandbox_linux::seccomp::{Arch, ContainerFilter, Profile};
use serde_json::Value;

/// The filter of the native backend, for `docker run --security-opt seccomp=FILE`.
pub fn seccomp_for_docker() -> Value {
    Profile::builtin().docker_json(ContainerFilter::Alone)
}

/// The same filter as `linux.seccomp` of an OCI bundle, for the architecture of this program.
pub fn seccomp_for_oci() -> Value {
    Profile::builtin().oci_json(ContainerFilter::Alone, Arch::NATIVE)
}
