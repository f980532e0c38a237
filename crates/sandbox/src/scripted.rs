//! A backend with scripted stages, for tests of what the engine does before, between and after the stages. It isolates
//! nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use sandbox_core::{
    Backend, BackendError, CancelToken, Capabilities, Ending, Isolation, Observer, Stage,
    StageOutcome, StagePlan,
};

use crate::engine::Engine;
use crate::image::Images;
use crate::volumes::VolumePlaces;
use crate::{Hooks, Runtimes};

type StageFn = Box<
    dyn FnOnce(&StagePlan, &mut dyn Observer, &CancelToken) -> Result<StageOutcome, BackendError>
        + Send,
>;

/// Runs one scripted closure for each stage.
pub(crate) struct Scripted {
    capabilities: Capabilities,
    acts: Mutex<VecDeque<StageFn>>,
    played: Arc<Mutex<Vec<Stage>>>,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        Self {
            capabilities: Capabilities::default(),
            acts: Mutex::default(),
            played: Arc::default(),
        }
    }

    pub(crate) fn then(
        self,
        act: impl FnOnce(
            &StagePlan,
            &mut dyn Observer,
            &CancelToken,
        ) -> Result<StageOutcome, BackendError>
        + Send
        + 'static,
    ) -> Self {
        self.acts.lock().unwrap().push_back(Box::new(act));
        self
    }

    pub(crate) fn then_ends(self, outcome: StageOutcome) -> Self {
        self.then(move |_, _, _| Ok(outcome))
    }

    /// The stages that have started so far.
    pub(crate) fn played(&self) -> Arc<Mutex<Vec<Stage>>> {
        Arc::clone(&self.played)
    }

    /// An engine with two languages that only need a shell: `script`, and `made`, whose compile stage leaves `out`.
    pub(crate) fn engine(self, hooks: Vec<Box<dyn Hooks>>) -> Engine {
        Engine {
            backend: Box::new(self),
            runtimes: Arc::new(runtimes()),
            hooks,
            store: Err("there is no store in this test".to_owned()),
            workspaces: None,
            volume_places: VolumePlaces::default(),
            images: Images::new(None, None),
            uses_compile_cache: false,
        }
    }
}

fn runtimes() -> Runtimes {
    let directory = tempfile::tempdir().unwrap();
    for (name, stages) in [
        ("script", "[run]\ncommand = ['{program}', '{entry}']"),
        (
            "made",
            "[compile]\ncommand = ['{program}', '{sources}']\nartefacts = ['out']\n\
             [run]\ncommand = ['./out']",
        ),
    ] {
        let recipe = format!(
            "name = '{name}'\nextensions = ['{name}']\nentry = 'main.{name}'\n\
             [toolchain]\nprograms = ['/bin/sh']\nversion = {{ args = ['-c', 'echo 7.8'] }}\n\
             {stages}\n[hello]\ncode = ''\nexpected = ''\n"
        );
        let place = directory.path().join(name);
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("runtime.toml"), recipe).unwrap();
    }
    Runtimes::load(Some(directory.path())).unwrap()
}

impl Backend for Scripted {
    fn isolation(&self) -> Isolation {
        Isolation::Native
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn run(
        &self,
        plan: &StagePlan,
        observer: &mut dyn Observer,
        cancel: &CancelToken,
    ) -> Result<StageOutcome, BackendError> {
        self.played.lock().unwrap().push(plan.stage);
        let act = self.acts.lock().unwrap().pop_front();
        act.expect("the test has no closure for this stage")(plan, observer, cancel)
    }
}

pub(crate) fn exited(code: i32) -> StageOutcome {
    StageOutcome::new(Ending::Exited(code))
}
