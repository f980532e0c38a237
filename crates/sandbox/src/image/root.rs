//! One image with walls around it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sandbox_core::{Backend, CancelToken, Ending, LanguageChoice, with_causes};
use sandbox_images::Image;

use crate::layers::DiscardOutput;
use crate::plan;
use crate::runtime::{Runtime, RuntimeImage, UnpackedImage};
use crate::{ResolveError, Runtimes};

/// Where programs are looked for in an image that does not say.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An image, what builds walls around it, and what is known of its toolchains.
pub(crate) struct ImageRoot {
    backend: Box<dyn Backend>,
    used: Arc<RuntimeImage>,
    runtimes: Mutex<BTreeMap<String, Runtime>>,
    /// It stays in the store while there are walls around it.
    image: Image,
}

impl ImageRoot {
    pub(crate) fn new(image: Image, backend: Box<dyn Backend>) -> Self {
        let mut variables: BTreeMap<String, String> =
            image.config.environment.iter().cloned().collect();
        variables.entry("PATH".to_owned()).or_insert_with(|| USUAL_PATH.to_owned());
        // A name with a digest says it already.
        let name = image.reference.to_string();
        let name = if name.contains('@') { name } else { format!("{name}@{}", image.digest) };
        let used = Arc::new(RuntimeImage { name, variables });
        Self { backend, used, runtimes: Mutex::default(), image }
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    /// Whether it is this image.
    pub(crate) fn is(&self, image: &Image) -> bool {
        // The same content under another name is told as another.
        self.image.digest == image.digest && self.image.reference == image.reference
    }

    /// A language as the image has it. Its toolchain is asked once.
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
        let run_program = |program: &Path, args: &[String]| self.ask(program, args);
        let runtime = runtimes.resolve_in(language, unpacked, &self.used, &run_program)?;
        known().insert(key, runtime.clone());
        Ok(runtime)
    }

    /// Starts one of its programs in a sandbox, and gives what it printed on either stream.
    fn ask(&self, program: &Path, args: &[String]) -> Result<String, String> {
        let plan = plan::query(program, args, &self.used.variables);
        let answered = self.backend.run(&plan, &mut DiscardOutput, &CancelToken::new());
        let outcome = answered.map_err(|error| with_causes(&error))?;
        if outcome.ending != Ending::Exited(0) {
            return Err(format!("asked for its version, it ended with {:?}", outcome.ending));
        }
        Ok(String::from_utf8_lossy(&outcome.output).into_owned())
    }
}
