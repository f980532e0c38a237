//! Judges an attack by its report.

use std::borrow::Cow;

use sandbox_core::{Report, Status};

use super::header::{Breach, Expectation, Header};
use super::result::Outcome;

/// The outcome and its explanation.
pub(super) type Verdict = (Outcome, String);

/// Judges a run with every protection enabled. `reports` are those of all programs of the attack; the last one decides.
pub(super) fn protected(header: &Header, reports: &[Report], secrets: &[String]) -> Verdict {
    for report in reports {
        if let Some(leak) = leak(report, secrets) {
            return (Outcome::Breached, leak);
        }
    }
    let Some(report) = reports.last() else {
        return (Outcome::Unclear, "nothing ran".into());
    };
    if let Some(line) = line(report, "BREACH") {
        return (Outcome::Breached, line.to_owned());
    }
    if let Some(only) = &header.only_collected
        && let Some(extra) = report.output_files.iter().find(|file| !only.contains(&file.path))
    {
        let words = format!("the file {} was collected", extra.path.escape_debug());
        return (Outcome::Breached, words);
    }
    // An internal error can have any cause: it is reported below, and not attributed to the attack.
    if let Breach::Status(status) = header.breach
        && report.status == status
        && status != Status::Error
    {
        return (Outcome::Breached, in_words(report));
    }
    match as_expected(header, report).and_then(|words| told(header, report).map(|()| words)) {
        Ok(words) => (Outcome::Contained, words),
        Err(words) => (Outcome::Unclear, words),
    }
}

/// Judges a run with the attack's own protections disabled.
pub(super) fn without(header: &Header, report: &Report, host_secret: &str) -> Verdict {
    let shown = |text: &str| texts(report).any(|shown| shown.contains(text));
    let succeeded = match &header.breach {
        Breach::Says => report.status == Status::Completed && line(report, "BREACH").is_some(),
        Breach::Status(status) => report.status == *status,
        Breach::Shows(text) => shown(text),
        Breach::ShowsHostSecret => shown(host_secret),
    };
    let words = line(report, "BREACH").map_or_else(|| in_words(report), ToOwned::to_owned);
    if succeeded {
        return (Outcome::Breached, words);
    }
    match as_expected(header, report) {
        Ok(words) => (Outcome::Contained, words),
        Err(words) => (Outcome::Unclear, words),
    }
}

/// Whether the run had the result that the header expects with every protection enabled; the reason either way.
fn as_expected(header: &Header, report: &Report) -> Result<String, String> {
    let status = match header.expect {
        Expectation::Held => Status::Completed,
        Expectation::Status(status) => status,
    };
    if report.status != status {
        return Err(format!("not {status}, but {}", in_words(report)));
    }
    if let Some(only) = &header.only_collected
        && report.output_files.len() != only.len()
    {
        return Err(format!("{} was not collected", only.join(" or ")));
    }
    match header.expect {
        Expectation::Held => match line(report, "HELD") {
            Some(line) => Ok(line.trim_start_matches("HELD").trim().to_owned()),
            None => Err("the program did not say that it was held".into()),
        },
        Expectation::Status(Status::CompileError) => {
            // What the compiler says tells more than the code it ends with.
            let complaint =
                report.output.lines().find(|line| line.to_lowercase().contains("error"));
            Ok(complaint.or(report.error.as_deref()).unwrap_or_default().to_owned())
        }
        Expectation::Status(_) => Ok(report.error.clone().unwrap_or_default()),
    }
}

/// Whether the report names the calls that the filter refused.
fn told(header: &Header, report: &Report) -> Result<(), String> {
    let told = |call: &String| report.violations.iter().any(|it| it.syscall == *call);
    match header.violations.iter().find(|call| !told(call)) {
        Some(call) => Err(format!("the report does not tell of {call}")),
        None => Ok(()),
    }
}

/// Finds content that must never be in a report, whatever the attack.
fn leak(report: &Report, secrets: &[String]) -> Option<String> {
    let told = texts(report).any(|text| secrets.iter().any(|secret| text.contains(secret)));
    if told {
        return Some("a secret of the host is in the report".into());
    }
    let strange = |path: &str| {
        path.starts_with('/')
            || path.split('/').any(|name| name == "..")
            || path.chars().any(char::is_control)
    };
    let mut paths = report.output_files.iter().map(|file| &file.path);
    let path = paths.find(|path| strange(path))?;
    let path = path.escape_debug();
    Some(format!("a file was collected under the name {path}"))
}

/// All texts in a report that a program can influence.
fn texts(report: &Report) -> impl Iterator<Item = &str> {
    let streams = [
        Some(report.stdout.as_str()),
        Some(&report.stderr),
        Some(&report.output),
        report.error.as_deref(),
    ];
    let stages = report.stages.iter().map(|stage| stage.output.as_str());
    let files = report.output_files.iter();
    let files = files.flat_map(|file| [file.path.as_str(), &file.content]);
    let skipped = report.skipped_files.iter();
    let skipped = skipped.flat_map(|file| [file.path.as_str(), &file.reason]);
    let streams = streams.into_iter().flatten();
    streams.chain(stages).chain(files).chain(skipped)
}

fn line<'a>(report: &'a Report, word: &str) -> Option<&'a str> {
    let mut lines = report.stdout.lines().chain(report.stderr.lines());
    lines.find(|line| line.split(' ').next() == Some(word))
}

/// How a run ended, for diagnosis.
fn in_words(report: &Report) -> String {
    const ENOUGH: usize = 300;
    let output: Cow<'_, str> = match report.output.char_indices().nth_back(ENOUGH) {
        Some((start, _)) => format!("…{}", &report.output[start..]).into(),
        None => report.output.trim().into(),
    };
    let error = report.error.as_deref().unwrap_or("no error");
    match &*output {
        "" => format!("{} ({error})", report.status),
        output => format!("{} ({error}), having said: {output}", report.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use crate::events::Events;
    use crate::scripted::{Scripted, exited};
    use sandbox_core::{CancelToken, CollectedFile, Ending, StageOutcome, Violation};

    const PLAIN: &str = "# title: T\n# how: H\n# without: seccomp\n";

    fn header(rest: &str) -> Header {
        Header::parse("escape/x.py", &format!("{PLAIN}{rest}")).unwrap()
    }

    fn report(outcome: StageOutcome) -> Report {
        let engine = Scripted::new().then_ends(outcome).engine(Vec::new());
        let request = Request::builder("script").code("").build().unwrap();
        let job = engine.accept(request).unwrap();
        let report = engine.execute(&job, &mut Events::new(None), &CancelToken::new());
        report.unwrap()
    }

    fn saying(text: &str) -> StageOutcome {
        StageOutcome { stdout: text.into(), output: text.into(), ..exited(0) }
    }

    fn judged(rest: &str, outcome: StageOutcome) -> Outcome {
        protected(&header(rest), &[report(outcome)], &["s3cret".into()]).0
    }

    #[test]
    fn a_program_that_says_held_was_contained_and_one_that_says_breach_was_not() {
        let held = "# expect: held\n";
        for (text, outcome) in [
            ("x\nHELD no such file\n", Outcome::Contained),
            ("BREACH everything\n", Outcome::Breached),
            ("HELD\nBREACH\n", Outcome::Breached),
            ("HELDBACK\n", Outcome::Unclear),
            ("", Outcome::Unclear),
            ("HELD s3cret\n", Outcome::Breached),
        ] {
            assert_eq!(judged(held, saying(text)), outcome, "{text:?}");
        }
    }

    #[test]
    fn a_status_is_judged_as_the_header_says() {
        let limit = "# expect: timeout\n# breach: completed\n";
        let late =
            StageOutcome { ending: Ending::TimedOut(sandbox_core::TimeKind::Wall), ..exited(0) };
        assert_eq!(judged(limit, late), Outcome::Contained);
        assert_eq!(judged(limit, exited(0)), Outcome::Breached);
        assert_eq!(judged(limit, exited(1)), Outcome::Unclear);
    }

    #[test]
    fn a_denied_call_must_be_in_the_report() {
        let named = "# expect: held\n# violations: ptrace\n";
        assert_eq!(judged(named, saying("HELD x")), Outcome::Unclear);
        let violations = vec![Violation { syscall: "ptrace".into(), count: 1 }];
        let told = StageOutcome { violations, ..saying("HELD x") };
        assert_eq!(judged(named, told), Outcome::Contained);
    }

    #[test]
    fn files_that_should_not_come_out_are_a_breach() {
        let only = "# expect: held\n# collect: out/*\n# only-collected: out/honest.txt\n";
        let leaving = |paths: &[&str], contents: &str| StageOutcome {
            files: paths
                .iter()
                .map(|path| CollectedFile {
                    path: (*path).to_owned(),
                    contents: contents.into(),
                    executable: false,
                })
                .collect(),
            ..saying("HELD x")
        };
        let honest = "out/honest.txt";
        for (paths, contents, outcome) in [
            (&[honest][..], "", Outcome::Contained),
            (&[], "", Outcome::Unclear),
            (&[honest, "out/other"], "", Outcome::Breached),
            (&[honest], "s3cret", Outcome::Breached),
        ] {
            assert_eq!(judged(only, leaving(paths, contents)), outcome, "{paths:?}");
        }
        let any = "# expect: held\n# collect: **\n";
        for path in ["/etc/x", "../x", "a\nb"] {
            assert_eq!(judged(any, leaving(&[path], "")), Outcome::Breached);
        }
    }

    #[test]
    fn without_the_wall_the_same_program_must_succeed() {
        let judge =
            |rest: &str, text: &str| without(&header(rest), &report(saying(text)), "host-secret").0;
        assert_eq!(judge("# expect: held\n", "BREACH it"), Outcome::Breached);
        assert_eq!(judge("# expect: held\n", "HELD it"), Outcome::Contained);
        assert_eq!(judge("# expect: held\n", "nothing"), Outcome::Unclear);
        let shows = "# expect: compile_error\n# breach: shows-host-secret\n";
        assert_eq!(judge(shows, "1: host-secret"), Outcome::Breached);
        assert_eq!(judge(shows, "1: no such file"), Outcome::Unclear);
    }
}
