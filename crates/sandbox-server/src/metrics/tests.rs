use std::io::Write as _;
use std::process::{Command, Stdio};

use sandbox::{
    ExecutionId, Isolation, Stage, StageFigures, StageReport, Status, Timings, Violation,
};

use super::*;

fn report(stages: Vec<StageReport>) -> Report {
    Report {
        id: ExecutionId::generate(),
        status: Status::Completed,
        stage: Stage::Run,
        success: true,
        language: "c".into(),
        version: "12".into(),
        isolation: Isolation::Native,
        stdout: String::new(),
        stderr: String::new(),
        output: String::new(),
        stdout_base64: None,
        stderr_base64: None,
        stdout_truncated: false,
        stderr_truncated: false,
        error: None,
        exit_code: 0,
        signal: None,
        execution_time_ms: 0.0,
        cpu_time_ms: 0.0,
        memory_used_kb: 0,
        memory_used_mb: 0,
        stages,
        output_files: Vec::new(),
        skipped_files: Vec::new(),
        workspace: None,
        enforced: Vec::new(),
        missing: Vec::new(),
        violations: vec![Violation { syscall: "ptrace".into(), count: 3 }],
        timings_ms: Timings { queue: 0.0, prepare: 1.0, compile: 20.0, run: 4.0, collect: 0.0 },
        created_at: chrono::Utc::now(),
    }
}

fn compiled(cached: bool) -> StageReport {
    StageReport {
        name: Stage::Compile,
        status: Status::Completed,
        exit_code: 0,
        signal: None,
        figures: StageFigures::default(),
        cached,
        output: String::new(),
    }
}

/// Something of everything.
fn busy() -> Metrics {
    let metrics = Metrics::new();
    metrics.accepted("c");
    metrics.finished(&report(vec![compiled(false)]), Duration::from_millis(2));
    metrics.finished(&report(vec![compiled(true)]), Duration::from_millis(2));
    metrics.finished(&report(Vec::new()), Duration::ZERO);
    metrics.rate_limited();
    metrics.queue(7, Duration::from_millis(1500));
    metrics.running(2);
    metrics
}

#[test]
fn what_happened_is_counted() {
    let text = busy().encode();
    for line in [
        r#"sandboxd_accepted_total{language="c"} 1"#,
        r#"sandboxd_executions_total{language="c",isolation="native",status="completed"} 3"#,
        r#"sandboxd_queue_seconds_count{language="c"} 3"#,
        r#"sandboxd_compile_seconds_count{language="c"} 2"#,
        r#"sandboxd_compile_cache_hits_total{language="c"} 1"#,
        r#"sandboxd_compile_cache_misses_total{language="c"} 1"#,
        r#"sandboxd_denied_syscalls_total{syscall="ptrace"} 9"#,
        "sandboxd_rate_limited_total 1",
        "sandboxd_queue_depth 7",
        "sandboxd_queue_age_seconds 1.5",
        "sandboxd_running 2",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn prometheus_own_checker_has_nothing_to_say() {
    let checker = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut checker = match checker {
        Ok(checker) => checker,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            sandbox_tests::skip::skip("metrics by promtool", "there is no promtool here");
            return;
        }
        Err(error) => panic!("promtool cannot be started: {error}"),
    };
    let mut input = checker.stdin.take().expect("its input is a pipe");
    input.write_all(busy().encode().as_bytes()).expect("it reads what it is given");
    drop(input);
    let output = checker.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}
