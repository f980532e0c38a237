//! Executions in an image: its files are the root, its programs the toolchain. Each image in use has a backend of its own.

mod root;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox_backends::native::NativeOptions;
use sandbox_core::{BackendError, Isolation, LanguageChoice, Request};
use sandbox_images::{Image, Reference, Store};

use crate::backend::{self, ContainerOptions};
use crate::runtime::Runtime;
use crate::{ExecuteError, Runtimes};

pub(crate) use root::ImageRoot;

/// Maximum number of images with a running backend. Each backend has a few idle processes.
const MAX_STARTED_IMAGES: usize = 8;

/// The images that requests name.
pub(crate) struct Images {
    /// How to start backends; `None` if the caller supplied a backend.
    options: Option<BackendOptions>,
    /// The image store; `None` for the user's own.
    store: Option<Store>,
    /// Images with a running backend, most recently used first.
    started: Mutex<Vec<Arc<ImageRoot>>>,
}

/// How to start the backend of an image.
pub(crate) struct BackendOptions {
    pub(crate) isolation: Isolation,
    pub(crate) native: NativeOptions,
    pub(crate) containers: ContainerOptions,
}

impl Images {
    pub(crate) fn new(options: Option<BackendOptions>, store: Option<Store>) -> Self {
        Self { options, store, started: Mutex::default() }
    }

    /// The runtime and image for a request; `None` if the request does not use an image.
    pub(crate) fn runtime(
        &self,
        request: &Request,
        runtimes: &Runtimes,
    ) -> Result<Option<(Runtime, Arc<ImageRoot>)>, ExecuteError> {
        let language: &LanguageChoice = request.language();
        let Some(image) = request.image().or_else(|| runtimes.image_of(language.name())) else {
            return Ok(None);
        };
        if !request.packages().is_empty() || request.environment().is_some() {
            let reason = "packages are not supported in an image: they are installed for the toolchains of the host";
            return Err(ExecuteError::Unsupported(reason.to_owned()));
        }
        let root = self.root(image)?;
        let runtime = root.runtime(runtimes, language)?;
        Ok(Some((runtime, root)))
    }

    /// The image with its backend. Starts the backend if needed.
    fn root(&self, reference: &str) -> Result<Arc<ImageRoot>, ExecuteError> {
        let Some(options) = &self.options else {
            let reason =
                "this sandbox does not support images: it uses a backend supplied by the caller";
            return Err(ExecuteError::Unsupported(reason.to_owned()));
        };
        let reference: Reference = reference.parse().map_err(sandbox_images::ImageError::from)?;
        let store = self.store.clone().map_or_else(Store::of_user, Ok)?;
        let image = store.resolve(&reference)?;
        // Other threads wait for the lock: they may need the same image.
        let mut started = self.lock();
        let known = started.iter().position(|root| root.is(&image));
        let root = match known {
            Some(place) => started.remove(place),
            None => Arc::new(options.start(image)?),
        };
        started.insert(0, Arc::clone(&root));
        let kept = started.len().min(MAX_STARTED_IMAGES);
        let unused = started.split_off(kept);
        drop(started);
        // A backend stops when its last user drops it, which can be here.
        drop(unused);
        Ok(root)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ImageRoot>>> {
        // No panic leaves the list half changed.
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BackendOptions {
    fn start(&self, image: Image) -> Result<ImageRoot, ExecuteError> {
        let files = Some(image.root.clone());
        let native = NativeOptions {
            image: files.clone(),
            // Warm runtimes need preparation that exists only for toolchains of the host.
            max_warm: 0,
            ..self.native.clone()
        };
        let mut containers = self.containers.clone();
        containers.docker.image.clone_from(&files);
        containers.oci.image = files;
        match backend::start(self.isolation, &native, &containers) {
            Ok(backend) => Ok(ImageRoot::new(image, backend)),
            Err(BackendError::Refused(reason)) => Err(ExecuteError::Unsupported(reason)),
            Err(error) => Err(ExecuteError::ImageBackend(error)),
        }
    }
}
