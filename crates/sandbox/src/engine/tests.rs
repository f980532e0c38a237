use super::*;
use crate::scripted::{Scripted, exited};
use crate::{Refusal, StageReport};
use sandbox_core::{
    CollectedFile, Ending, Event, EventKind, MissingProtection, Protection, StageOutcome, Status,
    StreamKind, UsageSample,
};
use std::sync::Mutex;

fn execute(engine: &Engine, language: &str) -> (Vec<Event>, Result<Report, ExecuteError>) {
    execute_under(engine, language, &CancelToken::new())
}

fn execute_under(
    engine: &Engine,
    language: &str,
    cancel: &CancelToken,
) -> (Vec<Event>, Result<Report, ExecuteError>) {
    let request = Request::builder(language).code("text").build().unwrap();
    let mut heard = Vec::new();
    let mut listener = |event: &Event| heard.push(event.clone());
    let job = engine.accept(request).unwrap();
    let report = engine.execute(&job, &mut Events::new(Some(&mut listener)), cancel);
    (heard, report)
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.kind.name()).collect()
}

fn leaving(path: &str) -> StageOutcome {
    StageOutcome {
        files: vec![CollectedFile {
            path: path.to_owned(),
            contents: b"machine code".to_vec(),
            executable: true,
        }],
        ..exited(0)
    }
}

#[test]
fn a_script_has_one_stage_and_its_events_are_numbered() {
    let sample =
        UsageSample { cpu_ms: 1, memory_kb: 2, processes: 3, io_read_bytes: 4, io_write_bytes: 5 };
    let scripted = Scripted::new().then(move |plan, observer, _| {
        assert_eq!(plan.sandbox.files[0].contents, b"text");
        observer.output(StreamKind::Stdout, "a€".as_bytes());
        observer.usage(sample);
        observer.output(StreamKind::Stderr, b"\xe2");
        Ok(exited(0))
    });
    let (events, report) = execute(&scripted.engine(Vec::new()), "script");
    let report = report.unwrap();
    assert_eq!((report.status, report.stages.len()), (Status::Completed, 1));
    assert_eq!((report.language.as_str(), report.version.as_str()), ("script", "7.8"));
    assert_eq!(names(&events), ["queued", "stage", "stdout", "usage", "stderr", "report"]);
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6]);
    let EventKind::Report(told) = &events[5].kind else {
        panic!("the last event is not the report");
    };
    assert_eq!(told.id, report.id);
}

#[test]
fn artefacts_are_handed_to_the_run_stage_and_not_to_the_report() {
    let scripted = Scripted::new().then_ends(leaving("out")).then(|plan, _, _| {
        let out = plan.sandbox.artefacts.files.last().unwrap();
        assert_eq!((out.path.as_str(), out.executable), ("out", true));
        assert_eq!(out.contents, b"machine code");
        assert_eq!(plan.process.command, ["./out"]);
        Ok(exited(3))
    });
    let (events, report) = execute(&scripted.engine(Vec::new()), "made");
    let report = report.unwrap();
    assert_eq!((report.status, report.stage), (Status::RuntimeError, Stage::Run));
    assert_eq!(report.stages.len(), 2);
    assert!(report.output_files.is_empty());
    assert_eq!(names(&events), ["queued", "stage", "stage", "report"]);
}

#[test]
fn a_failed_compile_stage_is_the_last_stage() {
    for (ending, status) in
        [(Ending::Exited(1), Status::CompileError), (Ending::OutOfMemory, Status::MemoryLimit)]
    {
        let scripted = Scripted::new().then_ends(StageOutcome {
            stderr: b"main.made:1: no".to_vec(),
            ..StageOutcome::new(ending)
        });
        let played = scripted.played();
        let (_, report) = execute(&scripted.engine(Vec::new()), "made");
        let report = report.unwrap();
        assert_eq!((report.status, report.stage), (status, Stage::Compile));
        assert_eq!(report.stderr, "main.made:1: no");
        assert_eq!(*played.lock().unwrap(), [Stage::Compile]);
    }
}

#[test]
fn a_compiler_that_leaves_no_artefact_is_a_compile_error() {
    let skipped = vec![SkippedFile { path: "out".into(), reason: "it is a symbolic link".into() }];
    for (skipped, error) in [
        (Vec::new(), "compiling left nothing to run"),
        (skipped, "compiling left 'out', and it is a symbolic link"),
    ] {
        let left = StageOutcome { skipped, ..exited(0) };
        let scripted = Scripted::new().then_ends(left);
        let (_, report) = execute(&scripted.engine(Vec::new()), "made");
        let report = report.unwrap();
        assert_eq!((report.status, report.stage), (Status::CompileError, Stage::Compile));
        assert_eq!(report.error.as_deref(), Some(error));
    }
}

#[test]
fn an_internal_error_is_a_report_with_all_its_causes() {
    let missing = MissingProtection {
        protection: Protection::Memory,
        reason: "there is no cgroup".into(),
        remedy: "delegate one".into(),
    };
    let failed = BackendError::Failed {
        step: "cannot mount /proc".into(),
        cause: Box::new(std::io::Error::other("not permitted")),
    };
    for (error, sentence) in [
        (failed, "cannot mount /proc: not permitted"),
        (
            BackendError::CannotEnforce(missing),
            "this host cannot enforce 'memory': there is no cgroup; delegate one; \
             or allow it to be missing (--allow-missing memory)",
        ),
    ] {
        let scripted = Scripted::new().then(move |_, _, _| Err(error));
        let (events, report) = execute(&scripted.engine(Vec::new()), "script");
        let report = report.unwrap();
        assert_eq!((report.status, report.exit_code), (Status::Error, -1));
        assert_eq!(report.error.as_deref(), Some(sentence));
        assert_eq!(names(&events), ["queued", "stage", "report"]);
    }
}

#[test]
fn a_refusal_of_the_backend_refuses_the_request() {
    let refused = |_: &StagePlan, _: &mut dyn sandbox_core::Observer, _: &CancelToken| {
        Err(BackendError::Refused("there is no /srv/x".into()))
    };
    let engine = Scripted::new().then(refused).engine(Vec::new());
    let (_, report) = execute(&engine, "script");
    assert!(
        matches!(report, Err(ExecuteError::Unsupported(reason)) if reason == "there is no /srv/x")
    );
}

#[test]
fn a_token_cancelled_between_the_stages_stops_the_second() {
    let cancel = CancelToken::new();
    let token = cancel.clone();
    let scripted = Scripted::new().then(move |_, _, _| {
        token.cancel();
        Ok(leaving("out"))
    });
    let played = scripted.played();
    let (events, report) = execute_under(&scripted.engine(Vec::new()), "made", &cancel);
    let report = report.unwrap();
    assert_eq!((report.status, report.stage), (Status::Cancelled, Stage::Run));
    assert_eq!(*played.lock().unwrap(), [Stage::Compile]);
    assert_eq!(names(&events), ["queued", "stage", "report"]);
}

/// Records the calls of hooks, and refuses one of them.
struct RecordingHooks {
    lines: Arc<Mutex<Vec<String>>>,
    refuses: &'static str,
}

impl RecordingHooks {
    fn note(&self, line: String) -> Result<(), Refusal> {
        let refused = line == self.refuses;
        self.lines.lock().unwrap().push(line);
        if refused {
            return Err(Refusal::new("not today"));
        }
        Ok(())
    }
}

impl Hooks for RecordingHooks {
    fn on_request(&self, request: &Request) -> Result<(), Refusal> {
        self.note(format!("request {}", request.language()))
    }

    fn before_stage(&self, _: ExecutionId, plan: &StagePlan) -> Result<(), Refusal> {
        self.note(format!("before {}", plan.stage))
    }

    fn after_stage(&self, _: ExecutionId, stage: &StageReport) {
        let _ = self.note(format!("after {} {}", stage.name, stage.status));
    }

    fn on_report(&self, report: &Report) {
        let _ = self.note(format!("report {}", report.status));
    }
}

fn watched(scripted: Scripted, refuses: &'static str) -> (Engine, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::default();
    let hooks = RecordingHooks { lines: Arc::clone(&lines), refuses };
    (scripted.engine(vec![Box::new(hooks)]), lines)
}

#[test]
fn hooks_see_every_step_in_order() {
    let scripted = Scripted::new().then_ends(leaving("out")).then_ends(exited(1));
    let (engine, lines) = watched(scripted, "nothing");
    execute(&engine, "made").1.unwrap();
    assert_eq!(
        *lines.lock().unwrap(),
        [
            "request made",
            "before compile",
            "after compile completed",
            "before run",
            "after run runtime_error",
            "report runtime_error",
        ]
    );
}

#[test]
fn a_hook_can_refuse_a_request_and_a_stage() {
    let (engine, _) = watched(Scripted::new(), "request script");
    let request = Request::builder("script").code("").build().unwrap();
    let refused = engine.accept(request).err().unwrap();
    assert_eq!(refused.to_string(), "refused: not today");

    let scripted = Scripted::new().then_ends(leaving("out"));
    let played = scripted.played();
    let (engine, lines) = watched(scripted, "before run");
    let (_, report) = execute(&engine, "made");
    assert!(matches!(report, Err(ExecuteError::Refused(_))));
    assert_eq!(*played.lock().unwrap(), [Stage::Compile]);
    assert_eq!(lines.lock().unwrap().last().unwrap(), "before run");
}
