use std::io::Write as _;
use std::process::{Command, Stdio};

use sandbox::WarmPoolStats;
use sandbox::{ExecutionId, Stage, StageReport, StageUsage, Status, Timings, Violation};

use super::*;

fn report(stages: Vec<StageReport>) -> Report {
    let (id, at) = (ExecutionId::generate(), chrono::Utc::now());
    Report {
        stages,
        violations: vec![Violation { syscall: "ptrace".into(), count: 3 }],
        timings_ms: Timings { queue: 0.0, prepare: 1.0, compile: 20.0, run: 4.0, collect: 0.0 },
        ..Report::new(id, Status::Completed, "c", "12", at)
    }
}

fn compiled(cached: bool) -> StageReport {
    StageReport {
        name: Stage::Compile,
        status: Status::Completed,
        exit_code: 0,
        signal: None,
        usage: StageUsage {
            wall_time: Duration::from_millis(1500),
            cpu_user: Duration::from_millis(500),
            cpu_system: Duration::from_millis(250),
            ..StageUsage::default()
        },
        cached,
        start: sandbox::Start::Cold,
        prepare_time: Duration::ZERO,
        collect_time: Duration::ZERO,
        output: String::new(),
    }
}

/// Metrics with a value in every series.
fn sample() -> Metrics {
    let metrics = Metrics::new();
    metrics.accepted("c");
    metrics.finished(&report(vec![compiled(false)]), Some("key_1"), Duration::from_millis(2));
    metrics.finished(&report(vec![compiled(true)]), Some("key_2"), Duration::from_millis(2));
    metrics.finished(&report(Vec::new()), None, Duration::ZERO);
    metrics.rate_limited();
    metrics.callback(CallbackOutcome::Delivered);
    metrics.callback(CallbackOutcome::GivenUp);
    metrics.queue(7, Duration::from_millis(1500));
    metrics.queue_bytes(4096);
    metrics.running(2);
    metrics.answered("GET", "/api/v1/execute/{id}", 200, Duration::from_millis(1));
    metrics.answered("POST", "unknown", 404, Duration::from_millis(1));
    metrics.pool(&PoolStats {
        wanted: 4,
        ready: 3,
        loaded: 1,
        prepared_claims: 10,
        built_claims: 2,
        warm: vec![WarmPoolStats {
            name: "python".to_owned(),
            ready: 2,
            hits: 5,
            misses: 1,
            ..WarmPoolStats::default()
        }],
    });
    metrics.store_size(4096);
    metrics.cached("compiled", 512);
    metrics.swept(Swept { executions: 3, idempotency: 2, audit: 1 });
    metrics
}

#[test]
fn events_are_counted() {
    let text = sample().encode(Reader::Operator);
    for line in [
        r#"sandboxd_accepted_total{language="c"} 1"#,
        r#"sandboxd_warm_hits_total{runtime="python"} 5"#,
        r#"sandboxd_warm_misses_total{runtime="python"} 1"#,
        r#"sandboxd_warm_ready{runtime="python"} 2"#,
        r#"sandboxd_executions_total{language="c",isolation="native",status="completed"} 3"#,
        r#"sandboxd_queue_seconds_count{language="c"} 3"#,
        r#"sandboxd_compile_seconds_count{language="c"} 2"#,
        r#"sandboxd_compile_cache_hits_total{language="c"} 1"#,
        r#"sandboxd_compile_cache_misses_total{language="c"} 1"#,
        r#"sandboxd_denied_syscalls_total{syscall="ptrace"} 9"#,
        "sandboxd_rate_limited_total 1",
        r#"sandboxd_callbacks_total{outcome="delivered"} 1"#,
        r#"sandboxd_callbacks_total{outcome="given_up"} 1"#,
        "sandboxd_queue_depth 7",
        "sandboxd_queue_bytes 4096",
        "sandboxd_queue_age_seconds 1.5",
        "sandboxd_running 2",
        r#"sandboxd_key_executions_total{key="key_1"} 1"#,
        r#"sandboxd_key_executions_total{key="none"} 1"#,
        r#"sandboxd_key_cpu_seconds_total{key="key_1"} 0.75"#,
        r#"sandboxd_key_wall_seconds_total{key="key_1"} 1.5"#,
        r#"sandboxd_http_requests_total{method="POST",route="unknown",status="4xx"} 1"#,
        r#"sandboxd_http_request_seconds_count{route="/api/v1/execute/{id}"} 1"#,
        "sandboxd_pool_wanted 4",
        "sandboxd_pool_ready 3",
        "sandboxd_pool_loaded 1",
        "sandboxd_pool_hits_total 10",
        "sandboxd_pool_misses_total 2",
        "sandboxd_store_bytes 4096",
        r#"sandboxd_cache_bytes{cache="compiled"} 512"#,
        r#"sandboxd_swept_total{kind="execution"} 3"#,
        r#"sandboxd_swept_total{kind="audit"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_revoked_key_loses_its_series() {
    let metrics = sample();
    metrics.keep_keys(|key| key == "key_2");
    let text = metrics.encode(Reader::Operator);
    assert!(!text.contains("key_1"), "{text}");
    assert!(text.contains(r#"sandboxd_key_executions_total{key="key_2"} 1"#), "{text}");
    assert!(text.contains(r#"sandboxd_key_executions_total{key="none"} 1"#), "{text}");
}

#[test]
fn clients_do_not_see_each_other() {
    let text = sample().encode(Reader::Client);
    assert!(!text.contains("key_") && !text.contains("cache_bytes"), "{text}");
    assert!(text.contains("sandboxd_executions_total"), "{text}");
    assert!(text.contains("process_open_fds"), "{text}");
}

#[test]
fn the_documentation_lists_exactly_these_metrics() {
    let page = include_str!("../../../../docs/observability.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows = rows.filter_map(|row| row.split_once("` | "));
    let is_metric = |name: &str| name.starts_with("sandboxd_") || name.starts_with("process_");
    let mut described: Vec<_> = rows
        .filter(|(name, _)| is_metric(name))
        .map(|(name, rest)| format!("{name} {}", rest.split(' ').next().unwrap_or_default()))
        .collect();
    let text = sample().encode(Reader::Operator);
    let mut exported: Vec<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    described.sort_unstable();
    exported.sort_unstable();
    assert_eq!(exported, described);
}

#[test]
fn promtool_accepts_the_metrics() {
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
    input
        .write_all(sample().encode(Reader::Operator).as_bytes())
        .expect("it reads what it is given");
    drop(input);
    let output = checker.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}
