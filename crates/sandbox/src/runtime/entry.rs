use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sandbox_core::with_causes;
use serde::Serialize;

use super::header::{Header, LazyRecipe};
use super::recipe::{Recipe, Toolchain};
use super::registry::ResolveError;
use super::toolchain::{self, Found, HostPaths, ProbeError, in_image};
use super::version;
use super::{RunProgram, UnpackedImage};

/// A recipe and its toolchains on this host.
#[derive(Debug)]
pub(crate) struct Entry {
    written: LazyRecipe,
    host_paths: Arc<HostPaths>,
    /// Probe results by candidate, valid while the probed files are unchanged.
    probed: Mutex<BTreeMap<usize, Probed>>,
}

/// The result of probing a candidate.
#[derive(Clone, Debug)]
struct Probed {
    results: Arc<Vec<Result<Found, ProbeError>>>,
    at: Instant,
}

/// A missing candidate is searched again after this time, if another one was found.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A candidate that is there but cannot be used is probed again after this time: a probe runs programs, and clients of
/// a server can ask for one with every request.
const UNUSABLE_RECHECK_INTERVAL: Duration = Duration::from_secs(10);

impl Probed {
    fn is_current(&self) -> bool {
        self.results.iter().all(|result| match result {
            Ok(found) => found.is_current(),
            Err(ProbeError::NotFound) => self.at.elapsed() < RECHECK_INTERVAL,
            Err(ProbeError::Unusable(_)) => self.at.elapsed() < UNUSABLE_RECHECK_INTERVAL,
        })
    }
}

/// Toolchains of a language on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuntimeStatus {
    /// The language.
    pub name: String,
    /// Other names for it.
    pub aliases: Vec<String>,
    /// Extensions of its files.
    pub extensions: Vec<String>,
    /// The version that runs by default.
    pub version: Option<String>,
    /// All available versions, the default first.
    pub versions: Vec<String>,
    /// The interpreter or compiler.
    pub program: Option<PathBuf>,
    /// The image that the recipe names, if any. Its toolchain is probed at first use.
    pub image: Option<String>,
    /// Why it cannot be used; `None` if it can.
    pub missing: Option<String>,
    /// How to install it.
    pub install: Option<String>,
    /// Directories with packages installed on the host, which programs can import.
    pub host_packages: Vec<PathBuf>,
}

impl Entry {
    pub(crate) fn new(written: LazyRecipe, host_paths: Arc<HostPaths>) -> Self {
        Self { written, host_paths, probed: Mutex::default() }
    }

    pub(crate) fn header(&self) -> &Header {
        &self.written.header
    }

    pub(crate) fn recipe(&self) -> &Arc<Recipe> {
        self.written.recipe()
    }

    fn toolchain(&self) -> &Toolchain {
        &self.recipe().toolchain
    }

    /// The image that contains its toolchain; `None` for the host.
    pub(crate) fn image(&self) -> Option<&str> {
        self.toolchain().image.as_ref().map(|image| &*image.0)
    }

    /// The toolchain in an image; the error says what was searched.
    pub(crate) fn find_in(
        &self,
        image: UnpackedImage<'_>,
        wanted: Option<&str>,
        run_program: RunProgram<'_>,
    ) -> Result<Found, String> {
        let toolchain = self.toolchain();
        if let Some(need) = toolchain.needs.iter().find(|need| image.find(need).is_none()) {
            return Err(format!("it needs {need}, which is missing"));
        }
        let (mut not_found, mut reasons) = (Vec::new(), Vec::new());
        let candidates = in_image::candidates(&toolchain.programs.0);
        for program in candidates.iter().map(String::as_str) {
            match in_image::probe(image, program, toolchain, run_program) {
                Ok(found) if wanted.is_none_or(|text| version::satisfies(&found.version, text)) => {
                    return Ok(found);
                }
                Ok(found) => reasons.push(format!(
                    "{} is version {}",
                    found.program.display(),
                    found.version
                )),
                Err(ProbeError::Unusable(reason)) => reasons.push(reason),
                Err(ProbeError::NotFound) => not_found.push(program),
            }
        }
        if reasons.is_empty() {
            reasons.push(format!("there is no {}", list_names(&not_found)));
        }
        Err(reasons.join("; "))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.header().names()
    }

    /// The candidates of the recipe with their probe results. Lazy: probes only as far as the caller iterates.
    fn candidates(&self) -> impl Iterator<Item = (&str, Result<Found, ProbeError>)> {
        let programs = self.toolchain().programs.0.iter().enumerate();
        programs.flat_map(|(number, program)| {
            let results = self.probe(number, program).results;
            (0..results.len()).map(move |place| (program.as_str(), results[place].clone()))
        })
    }

    /// The probe result of a candidate. Probes again if the file changed or was missing.
    fn probe(&self, number: usize, program: &str) -> Probed {
        if let Some(known) = self.known().get(&number).filter(|known| known.is_current()) {
            return known.clone();
        }
        let results = Arc::new(toolchain::probe(program, self.toolchain(), &self.host_paths));
        let probed = Probed { results, at: Instant::now() };
        self.known().insert(number, probed.clone());
        probed
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<usize, Probed>> {
        self.probed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the results of missing candidates, so that they are searched again.
    fn forget_absent(&self) {
        let is_absent = |result: &Result<_, _>| matches!(result, Err(ProbeError::NotFound));
        self.known().retain(|_, probed| !probed.results.iter().any(is_absent));
    }

    fn all(&self) -> impl Iterator<Item = Found> {
        self.candidates().filter_map(|(_, result)| result.ok())
    }

    /// The default toolchain; `None` if it or a program that it needs is missing.
    pub(crate) fn default_toolchain(&self) -> Option<Found> {
        if self.missing_needs().next().is_some() {
            return None;
        }
        self.all().next().or_else(|| {
            self.forget_absent();
            self.all().next()
        })
    }

    /// Required programs that are missing.
    fn missing_needs(&self) -> impl Iterator<Item = &str> {
        let needs = self.toolchain().needs.iter();
        needs.filter(|need| !toolchain::exists(need, &self.host_paths)).map(String::as_str)
    }

    pub(crate) fn version(&self, wanted: &str) -> Result<Found, ResolveError> {
        if self.missing_needs().next().is_some() {
            return Err(self.toolchain_missing());
        }
        let mut others = Vec::new();
        // It may have been installed since the last search.
        self.forget_absent();
        for found in self.all() {
            if version::satisfies(&found.version, wanted) {
                return Ok(found);
            }
            if !others.contains(&found.version) {
                others.push(found.version);
            }
        }
        if others.is_empty() {
            return Err(self.toolchain_missing());
        }
        Err(ResolveError::VersionMissing {
            language: self.header().name.clone(),
            wanted: wanted.to_owned(),
            found: others,
        })
    }

    pub(crate) fn toolchain_missing(&self) -> ResolveError {
        ResolveError::ToolchainMissing {
            language: self.header().name.clone(),
            reason: self.why_missing(),
            install: self.toolchain().install.clone(),
        }
    }

    fn why_missing(&self) -> String {
        let needs: Vec<&str> = self.missing_needs().collect();
        if !needs.is_empty() {
            return format!("it needs {}, which is missing", needs.join(" and "));
        }
        let mut not_found = Vec::new();
        let mut reasons = Vec::new();
        for (program, result) in self.candidates() {
            match result {
                Err(ProbeError::Unusable(reason)) if !reasons.contains(&reason) => {
                    reasons.push(reason);
                }
                Err(ProbeError::NotFound) => not_found.push(program),
                _ => {}
            }
        }
        if reasons.is_empty() {
            format!("there is no {}", list_names(&not_found))
        } else {
            reasons.join("; ")
        }
    }

    pub(crate) fn status(&self) -> RuntimeStatus {
        if let Some(image) = self.image() {
            return self.status_in(image);
        }
        self.forget_absent();
        let found = self.default_toolchain();
        let found = found.as_ref();
        let mut versions: Vec<String> = Vec::new();
        for found in self.all() {
            if !versions.contains(&found.version) {
                versions.push(found.version);
            }
        }
        RuntimeStatus {
            name: self.header().name.clone(),
            aliases: self.header().aliases.clone(),
            extensions: self.header().extensions.clone(),
            version: found.map(|found| found.version.clone()),
            versions,
            program: found.map(|found| found.program.clone()),
            image: None,
            missing: found.is_none().then(|| self.why_missing()),
            install: self.toolchain().install.clone(),
            host_packages: found.map_or_else(Vec::new, |found| {
                let patterns = &self.written.recipe().host_packages;
                toolchain::directories(patterns, &found.root)
            }),
        }
    }

    /// The status of a language in an image, without starting anything in it.
    fn status_in(&self, image: &str) -> RuntimeStatus {
        let found = image.parse().map_err(sandbox_images::ImageError::from);
        let found = found.and_then(|image| sandbox_images::Store::of_user()?.find(&image));
        RuntimeStatus {
            name: self.header().name.clone(),
            aliases: self.header().aliases.clone(),
            extensions: self.header().extensions.clone(),
            version: None,
            versions: Vec::new(),
            program: None,
            image: Some(image.to_owned()),
            missing: found.err().map(|error| with_causes(&error)),
            install: Some(format!("sandbox-run images pull {image}")),
            host_packages: Vec::new(),
        }
    }
}

/// The first few candidates, for error messages.
fn list_names(candidates: &[&str]) -> String {
    const MAX_NAMED: usize = 3;
    let named = candidates.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    if candidates.len() > MAX_NAMED { format!("{named}, …") } else { named }
}
