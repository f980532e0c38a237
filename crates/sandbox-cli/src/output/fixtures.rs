//! A report for tests to modify.

use std::time::Duration;

use chrono::DateTime;
use sandbox::{ExecutionId, Report, Stage, StageReport, StageUsage, Status};

pub(crate) fn report() -> Report {
    let (id, at) = (ExecutionId::generate(), DateTime::default());
    Report {
        stdout: "hello\n".into(),
        output: "hello\n".into(),
        exit_code: 0,
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
        ..Report::new(id, Status::Completed, "python", "3.11.2", at)
    }
}
