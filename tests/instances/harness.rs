//! Instances of each backend that has them, and short ways to run something in one.

use std::time::Duration;

use sandbox::{
    Backend, CancelToken, Ending, Instance, Limits, Observer, Process, ProcessLimits,
    ProcessOutcome, ProcessSpec, SandboxSpec, StreamKind, UsageSample,
};
use sandbox_tests::backend::is_selected;
use sandbox_tests::instances::BACKENDS;
pub(crate) use sandbox_tests::instances::{bash, native_without, python};

/// Longer than any process of these tests runs unless something is wrong.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Silent;

impl Observer for Silent {
    fn output(&mut self, _: StreamKind, _: &[u8]) {}
    fn usage(&mut self, _: UsageSample) {}
}

/// Cancels when the process writes for the first time.
pub(crate) struct CancelAtOutput(pub(crate) CancelToken);

impl Observer for CancelAtOutput {
    fn output(&mut self, _: StreamKind, _: &[u8]) {
        self.0.cancel();
    }
    fn usage(&mut self, _: UsageSample) {}
}

/// Runs a test with each backend.
#[expect(clippy::print_stdout, reason = "shown only when a test fails")]
pub(crate) fn with_each_backend(test: impl Fn(&dyn Backend)) {
    for (name, start) in BACKENDS.iter().filter(|(name, _)| is_selected(name)) {
        println!("backend: {name}");
        test(start().as_ref());
    }
}

pub(crate) fn spec() -> SandboxSpec {
    SandboxSpec::new(Limits::run())
}

pub(crate) fn create<'a>(backend: &'a dyn Backend, spec: SandboxSpec) -> Box<dyn Instance + 'a> {
    backend.create(spec, &CancelToken::new()).expect("the instance is created")
}

/// Runs a test with an instance of each backend.
pub(crate) fn with_instance(test: impl Fn(&dyn Instance)) {
    with_each_backend(|backend| test(create(backend, spec()).as_ref()));
}

/// Runs a test with an instance of the native backend.
pub(crate) fn with_native_instance(test: impl FnOnce(&dyn Instance)) {
    test(create(&native_without(&[]), spec()).as_ref());
}

pub(crate) fn limits() -> ProcessLimits {
    ProcessLimits { wall_time: Some(TEST_TIMEOUT), cpu_time: None, output_bytes: 1 << 20 }
}

pub(crate) fn start(instance: &dyn Instance, spec: ProcessSpec) -> Box<dyn Process + '_> {
    instance.start(spec, limits()).expect("the process is started")
}

pub(crate) fn wait(process: &dyn Process) -> ProcessOutcome {
    process.wait(&mut Silent, &CancelToken::new()).expect("the process is supervised")
}

pub(crate) fn run(instance: &dyn Instance, spec: ProcessSpec) -> ProcessOutcome {
    wait(start(instance, spec).as_ref())
}

/// What a process that has to succeed writes.
pub(crate) fn output(instance: &dyn Instance, spec: ProcessSpec) -> String {
    let outcome = run(instance, spec);
    assert_eq!(outcome.ending, Ending::Exited(0), "{outcome:?}");
    String::from_utf8(outcome.stdout).expect("the output is text")
}
