//! How a row of the table is written and checked.

use sandbox::{ByteSize, Limits, Report, Request, RequestBuilder, Stage, Status};
use sandbox_tests::backend::{Feature, execute, with_each_backend_that_has};

/// Rows: `name: request => Status, check;`. The check is a function of the report. A row `name [Feature]: …` is for backends
/// that have the feature.
macro_rules! table {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident $([$($needed:ident),+])?: $request:expr => $status:ident, $check:expr;
    )+) => {$(
        $(#[doc = $doc])*
        #[test]
        fn $name() {
            let needed = &[$($(sandbox_tests::backend::Feature::$needed),+)?];
            let status = sandbox::Status::$status;
            $crate::table::check(stringify!($name), needed, || $request, status, $check);
        }
    )+};
}

/// Carries out one row under every backend that has what it needs.
pub(crate) fn check(
    name: &str,
    needed: &[Feature],
    request: impl Fn() -> RequestBuilder,
    status: Status,
    check: impl Fn(&Report),
) {
    with_each_backend_that_has(needed, |sandbox| {
        if let Some(report) = execute(name, sandbox, request()) {
            assert_eq!(report.status, status, "{:?}", report.error);
            assert_consistent(&report);
            check(&report);
        }
    });
}

/// What holds for every report, whatever was asked: the table of statuses in the contract.
pub(crate) fn assert_consistent(report: &Report) {
    assert_eq!(report.success, report.status == Status::Completed);
    assert_eq!(report.error.is_none(), report.success, "{:?}", report.error);
    let shell = report.exit_code_for_shell();
    let code = report.exit_code;
    match report.status {
        Status::Completed => assert_eq!((code, shell), (0, 0)),
        Status::RuntimeError => {
            assert_eq!(code == -1, report.signal.is_some());
            assert_ne!(shell, 0);
        }
        Status::CompileError => assert_eq!(shell, 65),
        Status::Timeout => assert_eq!((code, shell), (-1, 124)),
        Status::MemoryLimit => assert_eq!((code, shell), (-1, 137)),
        Status::OutputLimit => assert_eq!((code, shell), (-1, 153)),
        Status::Cancelled => assert_eq!((code, shell), (-1, 130)),
        Status::Error => assert_eq!((code, shell), (-1, 125)),
        Status::Queued | Status::Running => panic!("a report is of an execution that ended"),
    }
    if let Some(last) = report.stages.last() {
        assert_eq!((last.name, last.status), (report.stage, report.status));
        assert_eq!(last.exit_code, report.exit_code);
        assert_eq!(last.signal, report.signal);
    }
    let streams = report.stdout.len() + report.stderr.len();
    let is_text = report.stdout_base64.is_none() && report.stderr_base64.is_none();
    if is_text {
        assert_eq!(report.output.len(), streams, "output is both streams");
    }
}

/// `line` of each number, one after the other.
pub(crate) fn lines(numbers: std::ops::Range<usize>, line: impl Fn(usize) -> String) -> String {
    numbers.map(line).collect::<Vec<_>>().concat()
}

/// A check for rows that only want the status.
pub(crate) fn nothing_more(_: &Report) {}

pub(crate) fn python(code: &str) -> RequestBuilder {
    Request::builder("python").code(code)
}

pub(crate) fn bash(code: &str) -> RequestBuilder {
    Request::builder("bash").code(code)
}

pub(crate) fn c(code: &str) -> RequestBuilder {
    Request::builder("c").code(code)
}

/// Limits of the run stage with one of them set, by its setter.
macro_rules! limits {
    ($($setter:ident($value:expr)),+ $(,)?) => {
        sandbox::Limits::run()$(.$setter($value).expect("the limit is a possible one"))+
    };
}

pub(crate) const fn mib(count: u64) -> ByteSize {
    ByteSize::mib(count)
}

pub(crate) const fn millis(count: u64) -> std::time::Duration {
    std::time::Duration::from_millis(count)
}

/// Limits of a compile stage that is expected to reach one of them.
pub(crate) fn compile_limits(
    set: impl FnOnce(Limits) -> Result<Limits, sandbox::InvalidLimit>,
) -> Limits {
    set(Limits::compile()).expect("the limit is a possible one")
}

/// The execution ended in its run stage and says so in these words.
pub(crate) fn ended_saying(words: &'static str) -> impl Fn(&Report) {
    move |report| {
        assert_eq!(report.stage, Stage::Run);
        let error = report.error.as_deref().unwrap_or_default();
        assert!(error.contains(words), "'{error}' does not say '{words}'");
    }
}
