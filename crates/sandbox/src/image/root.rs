//! An image with its backend.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sandbox_core::{Backend, CancelToken, Ending, LanguageChoice, with_causes};
use sandbox_images::Image;

use crate::layers::DiscardOutput;
use crate::plan;
use crate::runtime::{Runtime, RuntimeImage, UnpackedImage};
use crate::{ResolveError, Runtimes};

/// `PATH` of an image that sets none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An image, its backend, and the toolchains found in it.
pub(crate) struct ImageRoot {
    backend: Box<dyn Backend>,
    used: Arc<RuntimeImage>,
    runtimes: Mutex<BTreeMap<String, Runtime>>,
    /// Keeps the image in the store while the backend uses it.
    image: Image,
}

impl ImageRoot {
    pub(crate) fn new(image: Image, backend: Box<dyn Backend>) -> Self {
        let mut variables: BTreeMap<String, String> =
            image.config.environment.iter().cloned().collect();
        variables.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_PATH.to_owned());
        // The reference can contain the digest already.
        let name = image.reference.to_string();
        let name = if name.contains('@') { name } else { format!("{name}@{}", image.digest) };
        let used = Arc::new(RuntimeImage { name, variables });
        Self { backend, used, runtimes: Mutex::default(), image }
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Whether this is the same image under the same name.
    pub(crate) fn is(&self, image: &Image) -> bool {
        // Reports name the reference, so the same content under another name is a different image.
        self.image.digest == image.digest && self.image.reference == image.reference
    }

    /// The runtime of a language in this image. Probes its toolchain once.
    pub(crate) fn runtime(
        &self,
        runtimes: &Runtimes,
        language: &LanguageChoice,
    ) -> Result<Runtime, ResolveError> {
        let known = || self.runtimes.lock().unwrap_or_else(PoisonError::into_inner);
        let key = language.to_string();
        if let Some(runtime) = known().get(&key) {
            return Ok(runtime.clone());
        }
        let digest = self.image.digest.to_string();
        let unpacked = UnpackedImage {
            root: &self.image.root,
            digest: &digest,
            path: &self.used.variables["PATH"],
            version_cache: runtimes.version_cache(),
        };
        let run_program = |program: &Path, args: &[String]| self.run(program, args);
        let runtime = runtimes.resolve_in(language, unpacked, &self.used, &run_program)?;
        known().insert(key, runtime.clone());
        Ok(runtime)
    }

    /// Runs a program of the image in a sandbox, and returns what it printed to both streams.
    fn run(&self, program: &Path, args: &[String]) -> Result<String, String> {
        let plan = plan::query(program, args, &self.used.variables);
        let result = self.backend.run(&plan, &mut DiscardOutput, &CancelToken::new());
        let outcome = result.map_err(|error| with_causes(&error))?;
        if outcome.ending != Ending::Exited(0) {
            return Err(format!("its version query ended with {:?}", outcome.ending));
        }
        Ok(String::from_utf8_lossy(&outcome.output).into_owned())
    }
}
