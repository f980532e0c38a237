//! A report for tests to modify.

use std::time::Duration;

use chrono::DateTime;
use sandbox::{ExecutionId, Isolation, Report, Stage, StageReport, StageUsage, Status, Timings};

pub(crate) fn report() -> Report {
    Report {
        id: ExecutionId::generate(),
        status: Status::Completed,
        stage: Stage::Run,
        success: true,
        language: "python".into(),
        version: "3.11.2".into(),
        isolation: Isolation::Native,
        isolation_reason: None,
        image: None,
        stdout: "hello\n".into(),
        stderr: String::new(),
        output: "hello\n".into(),
        stdout_base64: None,
        stderr_base64: None,
        stdout_truncated: false,
        stderr_truncated: false,
        error: None,
        exit_code: 0,
        signal: None,
        execution_time_ms: 11.8,
        cpu_time_ms: 9.1,
        memory_used_kb: 8192,
        memory_used_mb: 8,
        stages: vec![StageReport {
            name: Stage::Run,
            status: Status::Completed,
            exit_code: 0,
            signal: None,
            usage: StageUsage {
                wall_time: Duration::from_micros(11_800),
                cpu_user: Duration::from_millis(7),
                cpu_system: Duration::from_micros(2100),
                memory_peak_kb: 8192,
                ..StageUsage::default()
            },
            cached: false,
            start: sandbox::Start::Cold,
            prepare_time: Duration::ZERO,
            collect_time: Duration::ZERO,
            output: String::new(),
        }],
        output_files: Vec::new(),
        skipped_files: Vec::new(),
        workspace: None,
        network: None,
        enforced: Vec::new(),
        missing: Vec::new(),
        violations: Vec::new(),
        timings_ms: Timings::default(),
        created_at: DateTime::default(),
    }
}
