//! Starts the backend of an isolation.

use sandbox_backends::docker::{DockerBackend, DockerOptions};
use sandbox_backends::native::{NativeBackend, NativeOptions};
use sandbox_backends::oci::{OciBackend, OciOptions};
use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Instance, Isolation, MissingProtection,
    Observer, PoolStats, SandboxSpec, StageOutcome, StagePlan,
};

/// Settings of the backends that run containers.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContainerOptions {
    pub(crate) docker: DockerOptions,
    pub(crate) oci: OciOptions,
}

/// Starts the backend of this isolation.
pub(crate) fn start(
    isolation: Isolation,
    native: &NativeOptions,
    containers: &ContainerOptions,
) -> Result<Box<dyn Backend>, BackendError> {
    let waits = native.waits;
    let ContainerOptions { docker, oci } = containers;
    Ok(match isolation {
        Isolation::Native => Box::new(NativeBackend::start(native)?),
        Isolation::Docker => Box::new(Blocking { backend: DockerBackend::start(docker)?, waits }),
        Isolation::Runc => Box::new(Blocking { backend: OciBackend::runc(oci)?, waits }),
        Isolation::Gvisor => Box::new(Blocking { backend: OciBackend::gvisor(oci)?, waits }),
        other => {
            return Err(BackendError::Refused(format!("{other} is not part of this build")));
        }
    })
}

/// A backend that blocks the calling thread for a whole stage. It runs each stage inside the function that the caller
/// provides for blocking calls, such as `tokio::task::block_in_place`.
struct Blocking<B> {
    backend: B,
    waits: fn(&mut dyn FnMut()),
}

impl<B: Backend> Backend for Blocking<B> {
    fn isolation(&self) -> Isolation {
        self.backend.isolation()
    }

    fn capabilities(&self) -> &Capabilities {
        self.backend.capabilities()
    }

    fn lacks_here(&self) -> &[MissingProtection] {
        self.backend.lacks_here()
    }

    fn pool(&self) -> Option<PoolStats> {
        self.backend.pool()
    }

    fn starts_runtimes_ahead(&self) -> bool {
        self.backend.starts_runtimes_ahead()
    }

    fn create(
        &self,
        spec: SandboxSpec,
        cancel: &CancelToken,
    ) -> Result<Box<dyn Instance + '_>, BackendError> {
        let (mut spec, mut created) = (Some(spec), None);
        (self.waits)(&mut || {
            created = spec.take().map(|spec| self.backend.create(spec, cancel));
        });
        created.expect("the function calls what it is given")
    }

    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        let mut outcome = None;
        (self.waits)(&mut || outcome = Some(self.backend.run(plan, observer, cancel)));
        outcome.expect("the function calls what it is given")
    }
}
