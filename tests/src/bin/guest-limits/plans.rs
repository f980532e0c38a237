//! Plans for the backend, and carrying them out.

use std::collections::BTreeMap;
use std::time::Duration;

use sandbox::{
    Backend, ByteSize, CancelToken, Ending, Limits, Observer, ProcessSpec, SandboxSpec, Stage,
    StageOutcome, StagePlan, StreamKind, UsageSample,
};
use sandbox_backends::native::NativeBackend;

use crate::outcome::Outcome;

pub(crate) const SHELL: &str = "/usr/bin/bash";
/// Emulated processors are slow, and the machine that emulates them may be busy.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Keeps the samples, and may cancel at the first word.
#[derive(Default)]
pub(crate) struct Ear {
    pub(crate) samples: Vec<UsageSample>,
    pub(crate) cancel_when_heard: Option<CancelToken>,
}

impl Observer for Ear {
    fn output(&mut self, _: StreamKind, _: &[u8]) {
        if let Some(token) = &self.cancel_when_heard {
            token.cancel();
        }
    }

    fn usage(&mut self, sample: UsageSample) {
        self.samples.push(sample);
    }
}

pub(crate) fn limits() -> Limits {
    Limits::run().with_wall_time(TEST_TIMEOUT).expect("a minute is possible")
}

pub(crate) fn plan(command: &[&str], limits: Limits) -> StagePlan {
    let path = ("PATH".to_owned(), "/usr/bin".to_owned());
    let command = command.iter().map(ToString::to_string).collect();
    let process = ProcessSpec::new(command, BTreeMap::from([path]));
    StagePlan::new(Stage::Run, SandboxSpec::new(limits), process)
}

pub(crate) fn run(backend: &NativeBackend, plan: &StagePlan) -> Result<StageOutcome, String> {
    run_heard(backend, plan, &mut Ear::default(), &CancelToken::new())
}

pub(crate) fn run_heard(
    backend: &NativeBackend,
    plan: &StagePlan,
    ear: &mut Ear,
    cancel: &CancelToken,
) -> Result<StageOutcome, String> {
    let outcome = backend.run(plan, ear, cancel);
    outcome.map_err(|error| sandbox::with_causes(&error))
}

pub(crate) fn bash(
    backend: &NativeBackend,
    script: &str,
    limits: Limits,
) -> Result<StageOutcome, String> {
    run(backend, &plan(&[SHELL, "-c", script], limits))
}

pub(crate) fn own_payload(
    backend: &NativeBackend,
    arguments: &[&str],
    limits: Limits,
) -> Result<StageOutcome, String> {
    let program = own_path()?;
    let mut command = vec![program.as_str(), "payload"];
    command.extend(arguments);
    run(backend, &plan(&command, limits))
}

/// This program lies below `/usr`, which every sandbox shows.
pub(crate) fn own_path() -> Result<String, String> {
    let path = std::env::current_exe().map_err(|error| error.to_string())?;
    let text = path.to_string_lossy().into_owned();
    ensure!(text.starts_with("/usr/"), "{text} cannot be seen inside: copy it below /usr");
    Ok(text)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

pub(crate) fn expect_ending(outcome: &StageOutcome, ending: Ending) -> Outcome {
    ensure!(
        outcome.ending == ending,
        "it ended as {:?} where {ending:?} was right; it said: {} {}",
        outcome.ending,
        text(&outcome.stdout),
        text(&outcome.stderr)
    );
    Ok(())
}

pub(crate) fn mib(count: u64) -> ByteSize {
    ByteSize::mib(count)
}

pub(crate) fn possible<E: std::fmt::Display>(limits: Result<Limits, E>) -> Result<Limits, String> {
    limits.map_err(|error| error.to_string())
}
