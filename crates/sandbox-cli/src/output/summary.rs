use sandbox::{
    Decision, Isolation, NetworkReport, Report, SkippedFile, Stage, Status, WorkspaceAccess,
    WorkspaceReport,
};

use super::paint::Paint;
use super::units::{format_millis, format_size};
use crate::errors::printable;

/// Maximum number of names to list; further ones are counted.
const MAX_LISTED: usize = 10;

/// The summary of a report: one line, and more for what needs attention.
pub(super) fn summary(report: &Report, paint: Paint) -> String {
    let mut lines = vec![headline(report, paint)];
    // The headline already gives the error of these two.
    let in_headline = matches!(report.status, Status::RuntimeError | Status::Cancelled);
    if let Some(error) = report.error.as_ref().filter(|_| !in_headline) {
        lines.push(format!("  {}", printable(error)));
    }
    if report.stdout_truncated || report.stderr_truncated {
        lines.push("  output truncated at the limit".to_owned());
    }
    if !report.violations.is_empty() {
        let calls = report.violations.iter();
        let calls = calls.map(|call| format!("{} ×{}", printable(&call.syscall), call.count));
        let calls = paint.warning(&format!("denied system calls: {}", list(calls)));
        lines.push(format!("  {calls}"));
    }
    if !report.output_files.is_empty() {
        let files = report.output_files.iter();
        let files =
            files.map(|file| format!("{} ({})", printable(&file.path), format_size(file.size)));
        lines.push(format!("  files: {}", list(files)));
    }
    if !report.skipped_files.is_empty() {
        lines.push(format!("  files not collected: {}", skipped(&report.skipped_files)));
    }
    if let Some(workspace) = &report.workspace {
        lines.extend(describe_workspace(workspace, paint));
    }
    if let Some(network) = &report.network {
        lines.extend(describe_network(network, paint));
    }
    if let Some(reason) = &report.isolation_reason
        && *reason != report.isolation.reason_of_first()
    {
        let line = format!("  isolation {}, {}", report.isolation, printable(reason));
        lines.push(paint.dim(&line));
    }
    if !report.missing.is_empty() {
        let names = report.missing.iter().map(ToString::to_string);
        let names = names.collect::<Vec<_>>().join(", ");
        let why = match report.isolation {
            Isolation::Native => "see sandbox-run doctor",
            _ => "see docs/backends.md",
        };
        let line = format!("  not enforced: {names} ({why})");
        lines.push(paint.dim(&line));
    }
    lines.join("\n") + "\n"
}

/// Files of the workspace that were not saved.
fn describe_workspace(workspace: &WorkspaceReport, paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    if !workspace.saved && workspace.access == WorkspaceAccess::ReadWrite {
        let reason = workspace.reason.as_deref().unwrap_or("unknown reason");
        let line = format!("workspace {} not saved: {}", workspace.name, printable(reason));
        lines.push(format!("  {}", paint.warning(&line)));
    }
    if !workspace.left_out.is_empty() {
        let files = skipped(&workspace.left_out);
        lines.push(format!("  files not saved in the workspace: {files}"));
    }
    lines
}

/// Hosts that the program tried to reach without success. Successful connections were allowed by the user.
fn describe_network(network: &NetworkReport, paint: Paint) -> Option<String> {
    let refused = network.connections.iter().filter(|record| record.decision != Decision::Allowed);
    let hosts = refused.map(|record| {
        let how = if record.decision == Decision::Failed { " (no answer)" } else { "" };
        format!("{}:{}{how}", printable(&record.host), record.port)
    });
    let names = network.dns.iter().filter(|question| question.decision != Decision::Allowed);
    let mut all: Vec<String> =
        hosts.chain(names.map(|question| printable(&question.name))).collect();
    all.sort();
    all.dedup();
    let line = || format!("not reached: {}", list(all.iter().cloned()));
    (!all.is_empty()).then(|| format!("  {}", paint.warning(&line())))
}

fn headline(report: &Report, paint: Paint) -> String {
    let status = status(report);
    let status = match report.status {
        Status::Completed => paint.good(&format!("✓ {status}")),
        Status::Cancelled => paint.warning(&format!("■ {status}")),
        _ => paint.bad(&format!("✗ {status}")),
    };
    let mut figures = Vec::new();
    for stage in &report.stages {
        if stage.name == Stage::Compile && report.stage == Stage::Run {
            let millis = stage.usage.wall_time.as_secs_f64() * 1000.0;
            figures.push(if stage.cached {
                "compilation cached".to_owned()
            } else {
                format!("compiled in {}", format_millis(millis))
            });
        }
    }
    // The figures of the last stage that ran: the run stage, or the compile stage if that failed.
    if let Some(stage) = report.stages.last() {
        let millis = |duration: std::time::Duration| format_millis(duration.as_secs_f64() * 1000.0);
        figures.push(format!("cpu {}", millis(stage.usage.cpu_time())));
        let memory = format_size(stage.usage.memory_peak_kb.saturating_mul(1024));
        figures.push(format!("memory {memory}"));
        let wall = format!(" in {}", millis(stage.usage.wall_time));
        let rest = figures.iter().map(|figure| format!(" · {figure}"));
        return format!("{status}{wall}{}", paint.dim(&rest.collect::<String>()));
    }
    status
}

/// The status in words, with the exit code or signal.
fn status(report: &Report) -> String {
    let precise = match (report.status, &report.signal) {
        (Status::RuntimeError, Some(signal)) => format!("killed by {}", printable(signal)),
        (Status::RuntimeError, None) => format!("exit code {}", report.exit_code),
        (status, _) => status.name().replace('_', " "),
    };
    match (report.status, report.stage) {
        (Status::Completed | Status::RuntimeError | Status::CompileError, _) | (_, Stage::Run) => {
            precise
        }
        (_, Stage::Compile) => format!("{precise} while compiling"),
    }
}

fn skipped(files: &[SkippedFile]) -> String {
    let reason = |file: &SkippedFile| printable(&file.reason);
    list(files.iter().map(|file| format!("{} ({})", printable(&file.path), reason(file))))
}

fn list(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        names.truncate(MAX_LISTED);
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::fixtures;
    use super::*;
    use sandbox::{ConnectionRecord, FileEncoding, OutputFile, Protection, Transport, Violation};

    #[test]
    fn a_completed_execution_is_one_line_with_its_figures() {
        assert_eq!(
            summary(&fixtures::report(), Paint::none()),
            "✓ completed in 12 ms · cpu 9.1 ms · memory 8.0 MiB\n"
        );
    }

    #[test]
    fn each_refused_host_is_listed_once() {
        let place = |host: &str, decision| ConnectionRecord {
            host: host.to_owned(),
            address: "192.0.2.1".to_owned(),
            port: 80,
            transport: Transport::Tcp,
            decision,
            reason: None,
            count: 1,
            bytes_in: 0,
            bytes_out: 0,
        };
        let mut report = fixtures::report();
        report.network = Some(NetworkReport {
            connections: vec![
                place("a.example", Decision::Allowed),
                place("b.example", Decision::Refused),
                place("c.example", Decision::Failed),
                place("b.example", Decision::Refused),
            ],
            ..NetworkReport::default()
        });
        let text = summary(&report, Paint::none());
        let wanted = "\n  not reached: b.example:80, c.example:80 (no answer)\n";
        assert!(text.ends_with(wanted), "{text}");
    }

    #[test]
    fn colours_are_used_only_if_enabled() {
        let text = summary(&fixtures::report(), Paint::always());
        assert!(text.contains("\u{1b}["), "{text:?}");
    }

    #[test]
    fn a_failure_states_its_reason_and_violations() {
        let mut report = fixtures::report();
        report.status = Status::Timeout;
        report.error = Some("the wall time of 1s ran out".into());
        report.violations = vec![Violation { syscall: "ptrace".into(), count: 2 }];
        report.missing = vec![Protection::Memory, Protection::Pids];
        report.output_files = (0..12)
            .map(|number| OutputFile {
                path: format!("f{number}"),
                size: 5,
                sha256: String::new(),
                encoding: FileEncoding::Utf8,
                content: "hello".into(),
            })
            .collect();
        let text = summary(&report, Paint::none());
        for part in [
            "✗ timeout in 12 ms",
            "\n  the wall time of 1s ran out\n",
            "denied system calls: ptrace ×2",
            "files: f0 (5 B), f1",
            "and 2 more\n",
            "not enforced: memory, pids (see sandbox-run doctor",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }

    #[test]
    fn the_backend_is_named_if_it_was_not_the_first_choice() {
        let mut report = fixtures::report();
        report.isolation_reason = Some("auto: native is first in the order of preference".into());
        assert_eq!(summary(&report, Paint::none()).lines().count(), 1);
        report.isolation = Isolation::Runc;
        report.isolation_reason = Some("auto: native cannot; runc is next".into());
        let text = summary(&report, Paint::none());
        assert!(
            text.ends_with("\n  isolation runc, auto: native cannot; runc is next\n"),
            "{text}"
        );
    }

    #[test]
    fn the_status_has_its_exit_code_or_signal() {
        let mut report = fixtures::report();
        report.status = Status::RuntimeError;
        report.exit_code = 3;
        report.error = Some("exited with code 3".into());
        assert_eq!(status(&report), "exit code 3");
        assert_eq!(summary(&report, Paint::none()).lines().count(), 1);
        report.signal = Some("SIGSEGV".into());
        assert_eq!(status(&report), "killed by SIGSEGV");
        report.status = Status::MemoryLimit;
        report.stage = Stage::Compile;
        assert_eq!(status(&report), "memory limit while compiling");
    }
}
