//! Everything that is compared, started once and shared by all parts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use sandbox::{ExecutionId, Hooks, Refusal, Request, Sandbox, Stage, StagePlan};
use sandbox_backends::native::{NativeBackend, NativeOptions, Spare};
use sandbox_tests::cache;
use tempfile::TempDir;

use super::peers::Peers;
use super::runner::Runner;
use super::warm;
use crate::cases::start_backend;
use crate::interrupt::OnInterrupt;

/// Path of the compiled program in all recipes.
const ARTEFACT: &str = ".program/program";

pub(super) struct Setup {
    pub(super) warm: Sandbox,
    pub(super) cold: Sandbox,
    pub(super) prepared: NativeBackend,
    pub(super) unprepared: NativeBackend,
    pub(super) peers: Peers,
    /// Starts the programs outside our sandbox.
    pub(super) outside: Runner,
    /// The store, kept for the next benchmark: building the layer of Go alone takes longer than a quick
    /// run may.
    store: PathBuf,
    _on_interrupt: OnInterrupt,
    /// Last, so that it is removed when nothing uses it any more.
    place: TempDir,
}

impl Setup {
    pub(super) fn start(with_peers: bool) -> anyhow::Result<Self> {
        let place = tempfile::Builder::new().prefix("sandbox-run-bench").tempdir()?;
        let on_interrupt = OnInterrupt::remove(place.path());
        let store = cache::bench_store().unwrap_or_else(|| place.path().join("store"));
        let peers = place.path().join("peers");
        std::fs::create_dir(&peers)?;
        Ok(Self {
            // First, so that it inherits little.
            outside: Runner::start()?,
            warm: warm::library(true, &store)?,
            cold: warm::library(false, &store)?,
            prepared: start_backend(NativeOptions::default().spare)?,
            unprepared: start_backend(Spare::Keep(0))?,
            peers: if with_peers { Peers::find(&peers) } else { Peers::none() },
            store,
            _on_interrupt: on_interrupt,
            place,
        })
    }

    /// Creates a directory for files of one subject.
    pub(super) fn directory(&self, name: &str) -> anyhow::Result<PathBuf> {
        let directory = self.place.path().join(name);
        std::fs::create_dir_all(&directory)?;
        Ok(directory)
    }

    /// The hello of a language, whose main class has the name of its file.
    pub(super) fn hello(&self, language: &str) -> anyhow::Result<String> {
        let hello = self.warm.runtimes().hello(language).context("the recipe has a hello")?;
        Ok(hello.code.replace("public class Hello", "public class Main"))
    }

    /// Compiles a program as the library does, which remembers it, and puts the very same binary on disk.
    pub(super) fn artefact(&self, language: &'static str, code: &str) -> anyhow::Result<PathBuf> {
        let taken = Taken::default();
        let sandbox = Sandbox::builder()
            .store_directory(self.store.clone())
            .spare_slots(1)
            .hooks(taken.clone())
            .build()?;
        let report = sandbox.execute(Request::builder(language).code(code).build()?)?;
        ensure!(report.success, "{language}: {:?}: {}", report.error, report.output);
        let program = self.directory(language)?.join("program");
        taken.write(&program).with_context(|| format!("what was compiled from {language}"))?;
        Ok(program)
    }

    /// Stops the peers; the error names those that did not stop.
    pub(super) fn stop(self) -> anyhow::Result<()> {
        self.peers.stop()
    }
}

/// Copies the compiled program before the run stage.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<Option<Vec<u8>>>>);

impl Hooks for Taken {
    fn before_stage(&self, _: ExecutionId, plan: &StagePlan) -> Result<(), Refusal> {
        if plan.stage == Stage::Run {
            let artefact = plan.sandbox.all_files().find(|file| file.path.as_str() == ARTEFACT);
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
                artefact.map(|file| file.contents.clone());
        }
        Ok(())
    }
}

impl Taken {
    fn write(&self, program: &Path) -> anyhow::Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let contents = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        std::fs::write(program, contents.context("there is no artefact")?)?;
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755))?;
        Ok(())
    }
}
