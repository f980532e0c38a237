//! Turns stage outcomes into the report. Pure: nothing here touches the host.

use std::time::Duration;

use sandbox_core::{
    Acceptance, CollectRule, Ending, ExecutionId, Isolation, Limits, OutputFile, Protection,
    Report, Stage, StageOutcome, StageReport, Status, TimeKind, Timings, Violation,
    WorkspaceReport, format_duration, signal_name, text_and_base64,
};

/// Artefacts are collected up to the disk limit of the run stage.
const ARTEFACTS_TOO_LARGE: &str = "the artefacts do not fit into the disk limit of the run stage";

/// Facts about an execution that are known before any stage runs.
pub(crate) struct Header {
    pub(crate) id: ExecutionId,
    pub(crate) language: String,
    pub(crate) version: String,
    pub(crate) isolation: Isolation,
    pub(crate) isolation_reason: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) acceptance: Acceptance,
    pub(crate) workspace: Option<WorkspaceReport>,
}

/// A stage that ran, with the rules it ran under.
pub(crate) struct StageResult {
    pub(crate) stage: Stage,
    pub(crate) limits: Limits,
    pub(crate) collect: CollectRule,
    /// Whether the result came from the compile cache.
    pub(crate) cached: bool,
    pub(crate) outcome: StageOutcome,
}

/// Why a stage has no outcome.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Interruption {
    /// Cancelled before the stage began.
    Cancelled,
    /// Internal error.
    Failed(String),
    /// The compiler succeeded and left nothing to run.
    NothingToRun(String),
}

/// Assembles the report of an execution from the stages that ran and the one that could not, if any.
pub(crate) fn assemble(
    header: Header,
    results: &[StageResult],
    interruption: Option<(Stage, Interruption)>,
) -> Report {
    let last = results.last();
    let (stage, status, error) = match (interruption, last) {
        (Some((stage, Interruption::Cancelled)), _) => {
            (stage, Status::Cancelled, Some("cancelled".to_owned()))
        }
        (Some((stage, Interruption::Failed(reason))), _) => (stage, Status::Error, Some(reason)),
        (Some((stage, Interruption::NothingToRun(reason))), _) => {
            (stage, Status::CompileError, Some(reason))
        }
        (None, Some(last)) => (last.stage, last.status(), last.sentence()),
        (None, None) => {
            let reason = "no stage ran".to_owned();
            (Stage::Run, Status::Error, Some(reason))
        }
    };
    // The report shows the output of its own stage: compiler warnings are not program output.
    let shown = last.filter(|last| last.stage == stage);
    let outcome = shown.map(|result| &result.outcome);
    let (stdout, stdout_base64) =
        text_and_base64(outcome.map_or(&[][..], |outcome| &outcome.stdout));
    let (stderr, stderr_base64) =
        text_and_base64(outcome.map_or(&[][..], |outcome| &outcome.stderr));
    let (output, _) = text_and_base64(outcome.map_or(&[][..], |outcome| &outcome.output));
    let ending = outcome.map(|outcome| outcome.ending);
    let run = results.iter().find(|result| result.stage == Stage::Run);
    let run_figures = run.map(|run| run.outcome.usage).unwrap_or_default();
    let memory_used_kb =
        results.iter().map(|result| result.outcome.usage.memory_peak_kb).max().unwrap_or(0);
    let (enforced, missing) = protections(results);
    Report {
        id: header.id,
        status,
        stage,
        success: status == Status::Completed,
        language: header.language,
        version: header.version,
        isolation: header.isolation,
        isolation_reason: header.isolation_reason,
        image: header.image,
        stdout,
        stderr,
        output,
        stdout_base64,
        stderr_base64,
        stdout_truncated: outcome.is_some_and(|outcome| outcome.stdout_truncated),
        stderr_truncated: outcome.is_some_and(|outcome| outcome.stderr_truncated),
        error,
        exit_code: ending.map_or(-1, exit_code),
        signal: ending.and_then(signal),
        execution_time_ms: Timings::millis(run_figures.wall_time),
        cpu_time_ms: Timings::millis(run_figures.cpu_time()),
        memory_used_kb,
        memory_used_mb: memory_used_kb.div_ceil(1024),
        stages: stages(results, status),
        output_files: run
            .map_or_else(Vec::new, |run| run.outcome.files.iter().map(OutputFile::from).collect()),
        skipped_files: run.map_or_else(Vec::new, |run| run.outcome.skipped.clone()),
        workspace: header.workspace,
        network: run.and_then(|run| run.outcome.network.clone()),
        enforced,
        missing,
        violations: violations(results),
        timings_ms: timings(results, header.acceptance.waited),
        created_at: header.acceptance.at,
    }
}

/// The stage reports. A compiler that succeeded but left nothing to run counts as failed.
fn stages(results: &[StageResult], status: Status) -> Vec<StageReport> {
    let mut stages: Vec<StageReport> = results.iter().map(StageResult::report).collect();
    if let (Status::CompileError, Some(last)) = (status, stages.last_mut()) {
        last.status = status;
    }
    stages
}

impl StageResult {
    /// The stage in the report.
    pub(crate) fn report(&self) -> StageReport {
        StageReport {
            name: self.stage,
            status: self.status(),
            exit_code: exit_code(self.outcome.ending),
            signal: signal(self.outcome.ending),
            usage: self.outcome.usage,
            cached: self.cached,
            start: self.outcome.start,
            prepare_time: self.outcome.prepare_time,
            collect_time: self.outcome.collect_time,
            output: match self.stage {
                Stage::Compile => String::from_utf8_lossy(&self.outcome.output).into_owned(),
                Stage::Run => String::new(),
            },
        }
    }

    /// Whether the next stage may run.
    pub(crate) fn succeeded(&self) -> bool {
        self.outcome.ending == Ending::Exited(0)
    }

    fn status(&self) -> Status {
        match (self.outcome.ending, self.stage) {
            (Ending::Exited(0), _) => Status::Completed,
            (Ending::Exited(_) | Ending::Signaled(_), Stage::Compile) => Status::CompileError,
            (Ending::Exited(_) | Ending::Signaled(_), Stage::Run) => Status::RuntimeError,
            (Ending::TimedOut(_), _) => Status::Timeout,
            (Ending::OutOfMemory, _) => Status::MemoryLimit,
            (Ending::TooMuchOutput | Ending::TooManyFiles | Ending::TooMuchForWorkspace, _) => {
                Status::OutputLimit
            }
            (Ending::Cancelled, _) => Status::Cancelled,
        }
    }

    /// Why the stage did not succeed, as one sentence.
    fn sentence(&self) -> Option<String> {
        let limits = &self.limits;
        let sentence = match self.outcome.ending {
            Ending::Exited(0) => return None,
            Ending::Exited(code) => format!("exited with code {code}"),
            Ending::Signaled(number) => format!("ended by signal {}", signal_name(number)),
            Ending::TimedOut(TimeKind::Wall) => {
                format!("wall time limit of {} reached", format_duration(limits.wall_time()))
            }
            Ending::TimedOut(TimeKind::Cpu) => match limits.cpu_time() {
                Some(time) => format!("CPU time limit of {} reached", format_duration(time)),
                None => "CPU time limit reached".to_owned(),
            },
            Ending::OutOfMemory => format!("memory limit of {} reached", limits.memory()),
            Ending::TooMuchOutput => format!("more than {} of output", limits.output()),
            Ending::TooManyFiles if self.stage == Stage::Compile => {
                return Some(ARTEFACTS_TOO_LARGE.to_owned());
            }
            Ending::TooManyFiles => format!(
                "more than {} or {} files to collect",
                self.collect.total, self.collect.count
            ),
            Ending::TooMuchForWorkspace => {
                let workspace = self.outcome.workspace.as_ref();
                let reason = workspace.and_then(|workspace| workspace.refusal.as_deref());
                format!("the workspace is not kept: {}", reason.unwrap_or_default())
            }
            Ending::Cancelled => "cancelled".to_owned(),
        };
        Some(match self.stage {
            Stage::Compile => format!("{sentence} while compiling"),
            Stage::Run => sentence,
        })
    }

    fn wants(&self, protection: Protection) -> bool {
        protection != Protection::CpuTime || self.limits.cpu_time().is_some()
    }

    fn has(&self, protection: Protection) -> bool {
        self.outcome.enforced.contains(&protection)
    }
}

fn exit_code(ending: Ending) -> i32 {
    match ending {
        Ending::Exited(code) => code,
        _ => -1,
    }
}

fn signal(ending: Ending) -> Option<String> {
    match ending {
        Ending::Signaled(number) => Some(signal_name(number)),
        _ => None,
    }
}

/// Protections enforced in every stage that needs them, and protections missing in at least one such stage.
fn protections(results: &[StageResult]) -> (Vec<Protection>, Vec<Protection>) {
    let lacks =
        |result: &StageResult, protection| result.wants(protection) && !result.has(protection);
    let all = || Protection::ALL.iter().copied();
    // A stage from the cache ran nothing, so it needed no protection.
    let results = || results.iter().filter(|result| !result.cached);
    let missing: Vec<Protection> =
        all().filter(|protection| results().any(|result| lacks(result, *protection))).collect();
    let enforced = all()
        .filter(|protection| results().any(|result| result.has(*protection)))
        .filter(|protection| !missing.contains(protection))
        .collect();
    (enforced, missing)
}

fn violations(results: &[StageResult]) -> Vec<Violation> {
    let mut together: Vec<Violation> = Vec::new();
    for violation in results.iter().flat_map(|result| &result.outcome.violations) {
        match together.iter_mut().find(|known| known.syscall == violation.syscall) {
            Some(known) => known.count += violation.count,
            None => together.push(violation.clone()),
        }
    }
    together
}

fn timings(results: &[StageResult], waited: Duration) -> Timings {
    let wall = |stage| {
        let result = results.iter().find(|result| result.stage == stage);
        Timings::millis(
            result.map_or_else(Default::default, |result| result.outcome.usage.wall_time),
        )
    };
    let outcomes = || results.iter().map(|result| &result.outcome);
    Timings {
        queue: Timings::millis(waited),
        prepare: Timings::millis(outcomes().map(|outcome| outcome.prepare_time).sum()),
        compile: wall(Stage::Compile),
        run: wall(Stage::Run),
        collect: Timings::millis(outcomes().map(|outcome| outcome.collect_time).sum()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::exited;
    use sandbox_core::{ByteSize, CollectedFile, FileEncoding, SkippedFile, StageUsage};
    use std::time::Duration;

    fn header() -> Header {
        Header {
            id: ExecutionId::generate(),
            language: "toy".into(),
            version: "1.2.3".into(),
            isolation: Isolation::Native,
            isolation_reason: None,
            image: None,
            acceptance: Acceptance { at: chrono::Utc::now(), waited: Duration::ZERO },
            workspace: None,
        }
    }

    fn limits() -> Limits {
        let limits = Limits::run().with_memory(ByteSize::mib(64)).unwrap();
        let limits = limits.with_wall_time(Duration::from_secs(1)).unwrap();
        limits.with_cpu_time(Duration::from_secs(2)).unwrap()
    }

    fn result(stage: Stage, outcome: StageOutcome) -> StageResult {
        StageResult {
            cached: false,
            stage,
            limits: limits(),
            collect: CollectRule { total: ByteSize::mib(8), count: 1000, ..CollectRule::nothing() },
            outcome,
        }
    }

    #[test]
    fn every_ending_has_its_status_code_signal_and_error() {
        use Ending::{
            Cancelled, Exited, OutOfMemory, Signaled, TimedOut, TooManyFiles, TooMuchOutput,
        };
        #[rustfmt::skip]
        let table = [
            (Exited(0), Status::Completed, 0, None, None),
            (Exited(3), Status::RuntimeError, 3, None, Some("exited with code 3")),
            (Signaled(11), Status::RuntimeError, -1, Some("SIGSEGV"), Some("ended by signal SIGSEGV")),
            (TimedOut(TimeKind::Wall), Status::Timeout, -1, None, Some("wall time limit of 1s reached")),
            (TimedOut(TimeKind::Cpu), Status::Timeout, -1, None, Some("CPU time limit of 2s reached")),
            (OutOfMemory, Status::MemoryLimit, -1, None, Some("memory limit of 64M reached")),
            (TooMuchOutput, Status::OutputLimit, -1, None, Some("more than 1M of output")),
            (TooManyFiles, Status::OutputLimit, -1, None, Some("more than 8M or 1000 files to collect")),
            (Cancelled, Status::Cancelled, -1, None, Some("cancelled")),
        ];
        for (ending, status, code, signal, sentence) in table {
            let report = assemble(header(), &[result(Stage::Run, StageOutcome::new(ending))], None);
            assert_eq!((report.status, report.stage), (status, Stage::Run), "{ending:?}");
            assert_eq!(report.success, status == Status::Completed, "{ending:?}");
            assert_eq!((report.exit_code, report.signal.as_deref()), (code, signal), "{ending:?}");
            assert_eq!(report.error.as_deref(), sentence, "{ending:?}");
            let stage = &report.stages[0];
            assert_eq!((stage.status, stage.exit_code), (status, code), "{ending:?}");
            assert_eq!(stage.signal.as_deref(), signal, "{ending:?}");

            let report =
                assemble(header(), &[result(Stage::Compile, StageOutcome::new(ending))], None);
            let compile_status = match status {
                Status::RuntimeError => Status::CompileError,
                other => other,
            };
            assert_eq!(
                (report.status, report.stage),
                (compile_status, Stage::Compile),
                "{ending:?}"
            );
            let told = match ending {
                TooManyFiles => Some(ARTEFACTS_TOO_LARGE.to_owned()),
                _ => sentence.map(|sentence| format!("{sentence} while compiling")),
            };
            assert_eq!(report.error, told, "{ending:?}");
        }
    }

    #[test]
    fn compiler_output_is_shown_only_if_compiling_was_the_last_stage() {
        let compiler = |code| StageOutcome {
            stderr: b"a word".to_vec(),
            output: b"a word".to_vec(),
            ..exited(code)
        };
        let refused = assemble(header(), &[result(Stage::Compile, compiler(1))], None);
        assert_eq!((refused.stderr.as_str(), refused.output.as_str()), ("a word", "a word"));
        let stages = [
            result(Stage::Compile, compiler(0)),
            result(Stage::Run, StageOutcome { stdout: b"hi".to_vec(), ..exited(0) }),
        ];
        let report = assemble(header(), &stages, None);
        assert_eq!((report.stdout.as_str(), report.stderr.as_str()), ("hi", ""));
        let failed = Some((Stage::Run, Interruption::Failed("no room".into())));
        let report = assemble(header(), &stages[..1], failed);
        assert_eq!((report.status, report.exit_code), (Status::Error, -1));
        assert_eq!((report.stderr.as_str(), report.error.as_deref()), ("", Some("no room")));
        assert_eq!(report.stages.len(), 1);
    }

    #[test]
    fn figures_come_from_the_stages_they_belong_to() {
        let figures = |millis, memory_peak_kb| StageUsage {
            wall_time: Duration::from_millis(millis),
            cpu_user: Duration::from_millis(millis / 2),
            cpu_system: Duration::from_millis(1),
            memory_peak_kb,
            ..StageUsage::default()
        };
        let with = |usage| StageOutcome {
            usage,
            prepare_time: Duration::from_millis(3),
            collect_time: Duration::from_micros(1500),
            violations: vec![Violation { syscall: "ptrace".into(), count: 2 }],
            ..exited(0)
        };
        let compile = result(Stage::Compile, with(figures(100, 5000)));
        let stages = [compile, result(Stage::Run, with(figures(20, 3000)))];
        let report = assemble(header(), &stages, None);
        let close = |left: f64, right: f64| assert!((left - right).abs() < 1e-9, "{left} {right}");
        close(report.execution_time_ms, 20.0);
        close(report.cpu_time_ms, 11.0);
        assert_eq!((report.memory_used_kb, report.memory_used_mb), (5000, 5));
        close(report.timings_ms.prepare, 6.0);
        close(report.timings_ms.compile, 100.0);
        close(report.timings_ms.run, 20.0);
        close(report.timings_ms.collect, 3.0);
        assert_eq!(report.violations, [Violation { syscall: "ptrace".into(), count: 4 }]);
        let report = assemble(header(), &stages[..1], None);
        close(report.execution_time_ms, 0.0);
        close(report.cpu_time_ms, 0.0);
    }

    #[test]
    fn a_protection_counts_only_if_every_stage_that_wants_it_has_it() {
        let everything = || Protection::ALL.iter().rev().copied();
        let enforcing = |without: &[Protection]| StageOutcome {
            enforced: everything().filter(|protection| !without.contains(protection)).collect(),
            ..exited(0)
        };
        let mut compile =
            result(Stage::Compile, enforcing(&[Protection::CpuTime, Protection::Landlock]));
        compile.limits = Limits::compile();
        let run = result(Stage::Run, enforcing(&[Protection::Cpu]));
        let report = assemble(header(), &[compile, run], None);
        // The compile stage has no CPU time limit, so it cannot miss one.
        assert_eq!(report.missing, [Protection::Landlock, Protection::Cpu]);
        assert!(report.enforced.is_sorted() && report.enforced.contains(&Protection::CpuTime));
        assert_eq!(report.enforced.len(), Protection::ALL.len() - 2);
    }

    #[test]
    fn a_stage_without_a_cpu_time_limit_does_not_miss_one() {
        let mut run = result(Stage::Run, exited(0));
        run.limits = Limits::run();
        let report = assemble(header(), &[run], None);
        assert!(!report.missing.contains(&Protection::CpuTime));
        assert_eq!(report.missing.len(), Protection::ALL.len() - 1);
    }

    #[test]
    fn files_and_bytes_are_carried_over() {
        let run = StageOutcome {
            stdout: b"\xff".to_vec(),
            stdout_truncated: true,
            files: vec![CollectedFile {
                path: "out.txt".into(),
                contents: b"hello".to_vec(),
                executable: false,
            }],
            skipped: vec![SkippedFile { path: "link".into(), reason: "a link".into() }],
            ..exited(0)
        };
        let report = assemble(header(), &[result(Stage::Run, run)], None);
        assert_eq!(report.stdout_base64.as_deref(), Some("/w=="));
        assert!(report.stdout_truncated && !report.stderr_truncated);
        assert_eq!(report.output_files[0].encoding, FileEncoding::Utf8);
        assert_eq!(report.output_files[0].content, "hello");
        assert_eq!(report.skipped_files.len(), 1);
    }

    #[test]
    fn an_execution_cancelled_before_it_began_has_no_stages() {
        let interruption = Some((Stage::Run, Interruption::Cancelled));
        let report = assemble(header(), &[], interruption);
        assert_eq!((report.status, report.exit_code), (Status::Cancelled, -1));
        assert!(report.stages.is_empty() && report.enforced.is_empty());
        assert!(report.missing.is_empty());
    }

    #[test]
    fn the_json_form_has_every_documented_field() {
        let report = assemble(header(), &[result(Stage::Run, exited(0))], None);
        let json = serde_json::to_value(&report).unwrap();
        #[rustfmt::skip]
        let fields = [
            "id", "status", "stage", "success", "language", "version", "isolation", "stdout",
            "stderr", "output", "stdout_truncated", "stderr_truncated", "error", "exit_code",
            "signal", "execution_time_ms", "cpu_time_ms", "memory_used_kb", "memory_used_mb",
            "stages", "output_files", "enforced", "violations", "timings_ms", "created_at",
        ];
        for field in fields {
            assert!(json.get(field).is_some(), "{field} is not in {json}");
        }
        assert_eq!(json["status"], "completed");
        assert_eq!(json["error"], serde_json::Value::Null);
        for field in ["name", "status", "exit_code", "wall_time_ms", "io_read_bytes", "cached"] {
            assert!(json["stages"][0].get(field).is_some(), "{field} is not in {json}");
        }
    }
}
