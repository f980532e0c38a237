use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::header::{Header, Written};
use super::recipe::{Recipe, Toolchain};
use super::registry::ResolveError;
use super::toolchain::{self, Absent, Found, Places};
use super::version;

/// A recipe and what this host has for it.
#[derive(Debug)]
pub(crate) struct Entry {
    written: Written,
    places: Arc<Places>,
    /// What candidates of the recipe answered, for as long as they are the programs that did.
    probed: Mutex<BTreeMap<usize, Arc<Probed>>>,
}

/// What became of a candidate.
type Probed = Vec<Result<Found, Absent>>;

/// What is there for a language on this host.
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
    /// Every version there is, the default first.
    pub versions: Vec<String>,
    /// The interpreter or compiler.
    pub program: Option<PathBuf>,
    /// Why it cannot be used, if it cannot.
    pub missing: Option<String>,
    /// How to get it.
    pub install: Option<String>,
}

impl Entry {
    pub(crate) fn new(written: Written, places: Arc<Places>) -> Self {
        Self { written, places, probed: Mutex::default() }
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

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.header().names()
    }

    /// Each candidate of the recipe with what became of it, looked at only as far as the caller goes.
    fn candidates(&self) -> impl Iterator<Item = (&str, Result<Found, Absent>)> {
        let programs = self.toolchain().programs.0.iter().enumerate();
        programs.flat_map(|(number, program)| {
            let probed = self.probe(number, program);
            (0..probed.len()).map(move |place| (program.as_str(), probed[place].clone()))
        })
    }

    /// What became of a candidate, asked again if it is another program by now or was not there.
    fn probe(&self, number: usize, program: &str) -> Arc<Probed> {
        let lock = || self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |probed: &Arc<Probed>| {
            probed.iter().all(|result| result.as_ref().is_ok_and(Found::is_current))
        };
        if let Some(known) = lock().get(&number).filter(|known| holds(known)) {
            return Arc::clone(known);
        }
        let probed = Arc::new(toolchain::probe(program, self.toolchain(), &self.places));
        lock().insert(number, Arc::clone(&probed));
        probed
    }

    fn all(&self) -> impl Iterator<Item = Found> {
        self.candidates().filter_map(|(_, result)| result.ok())
    }

    /// The default, unless something else that it needs is missing.
    pub(crate) fn first(&self) -> Option<Found> {
        if self.missing_needs().next().is_some() {
            return None;
        }
        self.all().next()
    }

    /// Programs that the toolchain cannot do without, and that are not there.
    fn missing_needs(&self) -> impl Iterator<Item = &str> {
        let needs = self.toolchain().needs.iter();
        needs.filter(|need| !toolchain::is_there(need, &self.places)).map(String::as_str)
    }

    pub(crate) fn version(&self, wanted: &str) -> Result<Found, ResolveError> {
        if self.missing_needs().next().is_some() {
            return Err(self.toolchain_missing());
        }
        let mut others = Vec::new();
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
            return format!("it needs {}, which is not there", needs.join(" and "));
        }
        let mut not_found = Vec::new();
        let mut reasons = Vec::new();
        for (program, result) in self.candidates() {
            match result {
                Err(Absent::Unusable(reason)) if !reasons.contains(&reason) => reasons.push(reason),
                Err(Absent::NotFound) => not_found.push(program),
                _ => {}
            }
        }
        if reasons.is_empty() {
            format!("there is no {}", spoken(&not_found))
        } else {
            reasons.join("; ")
        }
    }

    pub(crate) fn status(&self) -> RuntimeStatus {
        let found = self.first();
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
            missing: found.is_none().then(|| self.why_missing()),
            install: self.toolchain().install.clone(),
        }
    }
}

/// The names of a few candidates; a recipe may have more than anyone wants to read.
fn spoken(candidates: &[&str]) -> String {
    const MOST: usize = 3;
    let named = candidates.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    if candidates.len() > MOST { format!("{named}, …") } else { named }
}
