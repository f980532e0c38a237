//! Executions in an image: its files are the root, its programs the toolchain, and around each image that is used there
//! are walls of its own.

mod root;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox_backends::native::NativeOptions;
use sandbox_core::{BackendError, Isolation, LanguageChoice, Request};
use sandbox_images::{Image, Reference, Store};

use crate::backend::{self, ContainerOptions};
use crate::runtime::Runtime;
use crate::{ExecuteError, Runtimes};

pub(crate) use root::ImageRoot;

/// Images with walls around them at the same time. Each has a few processes that wait.
const MAX_STARTED_IMAGES: usize = 8;

/// The images that requests name.
pub(crate) struct Images {
    /// How walls are built around them; nothing if they are built by a backend of the caller's.
    how: Option<BackendOptions>,
    /// Where they lie; the user's own place unless set up otherwise.
    store: Option<Store>,
    /// Those with walls around them, the one that was asked for last in front.
    started: Mutex<Vec<Arc<ImageRoot>>>,
}

/// How walls are built.
pub(crate) struct BackendOptions {
    pub(crate) isolation: Isolation,
    pub(crate) native: NativeOptions,
    pub(crate) containers: ContainerOptions,
}

impl Images {
    pub(crate) fn new(how: Option<BackendOptions>, store: Option<Store>) -> Self {
        Self { how, store, started: Mutex::default() }
    }

    /// What carries out a request in an image, and the walls around that; nothing if it is not to be carried out in one.
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
            let reason = "packages are installed for the toolchains of this host, and not for those of an image";
            return Err(ExecuteError::Unsupported(reason.to_owned()));
        }
        let root = self.root(image)?;
        let runtime = root.runtime(runtimes, language)?;
        Ok(Some((runtime, root)))
    }

    /// The image with walls around it, built if they do not stand.
    fn root(&self, reference: &str) -> Result<Arc<ImageRoot>, ExecuteError> {
        let Some(how) = &self.how else {
            let reason = "this sandbox has walls that know of no images";
            return Err(ExecuteError::Unsupported(reason.to_owned()));
        };
        let reference: Reference = reference.parse().map_err(sandbox_images::ImageError::from)?;
        let store = self.store.clone().map_or_else(Store::of_user, Ok)?;
        let image = store.resolve(&reference)?;
        // Whoever else asks waits: it may be for the same.
        let mut started = self.lock();
        let known = started.iter().position(|root| root.is(&image));
        let root = match known {
            Some(place) => started.remove(place),
            None => Arc::new(how.build_around(image)?),
        };
        started.insert(0, Arc::clone(&root));
        let kept = started.len().min(MAX_STARTED_IMAGES);
        let left = started.split_off(kept);
        drop(started);
        // They are taken down when nobody uses them any more, which may be now.
        drop(left);
        Ok(root)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<ImageRoot>>> {
        // Nothing is left half changed by a panic.
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BackendOptions {
    fn build_around(&self, image: Image) -> Result<ImageRoot, ExecuteError> {
        let files = Some(image.root.clone());
        let native = NativeOptions {
            image: files.clone(),
            // What makes a runtime wait is made for the toolchains of the host.
            most_warm: 0,
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
