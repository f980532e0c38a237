//! The same things in each of the eight main languages: a row of the table is a language, a column a
//! thing, and `programs/<language>/<thing>.<extension>` is the program that does it.

use std::time::Duration;

use sandbox::{ByteSize, Limits, Report, Request, RequestBuilder, Stage, Status};
use sandbox_tests::backend::with_native_and_another;

use crate::program::{execute, folder};

/// A language as this table needs to know it.
struct Language {
    name: &'static str,
    /// How the program of a thing is called.
    file: fn(&str) -> String,
    /// How a compiler, or an interpreter, tells line 3 of a file.
    line_three: fn(&str) -> String,
    /// Less would not hold the interpreter itself.
    memory: ByteSize,
}

macro_rules! matrix {
    ($($language:ident: $file:expr, $line_three:expr, $memory:literal => $($thing:ident)+;)+) => {$(
        mod $language {
            const LANGUAGE: super::Language = super::Language {
                name: stringify!($language),
                file: $file,
                line_three: $line_three,
                memory: sandbox::ByteSize::mib($memory),
            };
            $(#[test]
            fn $thing() {
                super::$thing(&LANGUAGE);
            })+
        }
    )+};
}

matrix! {
    python: |thing| format!("{thing}.py"), |file| format!("{file}\", line 3"), 64
        => hello stdin args environment files uncaught exit_three syntax_error
           busy hungry chatty unicode;
    javascript: |thing| format!("{thing}.js"), |file| format!("{file}:3"), 128
        => hello stdin args environment files uncaught exit_three syntax_error
           busy hungry chatty unicode;
    typescript: |thing| format!("{thing}.ts"), |file| format!("{file}(3,"), 128
        => hello stdin args environment files uncaught exit_three compile_error
           busy hungry chatty unicode;
    go: |thing| format!("{thing}.go"), |file| format!("{file}:3:"), 64
        => hello stdin args environment files uncaught exit_three compile_error
           busy hungry chatty unicode;
    rust: |thing| format!("{thing}.rs"), |file| format!("{file}:3:"), 64
        => hello stdin args environment files uncaught exit_three compile_error warning
           busy hungry chatty unicode;
    java: super::class_file, |file| format!("{file}:3:"), 128
        => hello stdin args environment files uncaught exit_three compile_error warning
           busy hungry chatty unicode;
    c: |thing| format!("{thing}.c"), |file| format!("{file}:3:"), 64
        => hello stdin args environment files uncaught exit_three compile_error warning
           busy hungry chatty unicode;
    cpp: |thing| format!("{thing}.cpp"), |file| format!("{file}:3:"), 64
        => hello stdin args environment files uncaught exit_three compile_error warning
           busy hungry chatty unicode;
}

/// A public class is called like its file: `exit_three` is in `ExitThree.java`.
fn class_file(thing: &str) -> String {
    let capitalised = thing.split('_').map(|word| word[..1].to_uppercase() + &word[1..]);
    capitalised.collect::<String>() + ".java"
}

/// Runs the program of a thing.
fn check(
    language: &Language,
    thing: &str,
    complete: impl Fn(RequestBuilder) -> RequestBuilder,
    status: Status,
    check: impl Fn(&Report),
) {
    let name = (language.file)(thing);
    let path = folder("languages/programs").join(language.name).join(&name);
    let code = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    with_native_and_another(&format!("{}/{name}", language.name), 3, |sandbox| {
        let request = Request::builder(language.name).file(&name, code.clone());
        let report = execute(sandbox, complete(request));
        assert_eq!(report.status, status, "{:?}\n{}", report.error, report.stderr);
        check(&report);
    });
}

fn hello(language: &Language) {
    check(
        language,
        "hello",
        |request| request,
        Status::Completed,
        |report| {
            assert_eq!((report.stdout.as_str(), report.stderr.as_str()), ("hello, world\n", ""));
        },
    );
}

fn stdin(language: &Language) {
    let numbers = |request: RequestBuilder| request.stdin(b"3\n-4\n1000000007\n".to_vec());
    check(language, "stdin", numbers, Status::Completed, |report| {
        assert_eq!(report.stdout, "1000000006\n");
    });
}

fn args(language: &Language) {
    let args = ["one", "two words", "", "--flag=ü", "*"];
    check(
        language,
        "args",
        |request| request.args(args),
        Status::Completed,
        |report| {
            assert_eq!(report.stdout, args.join("|") + "\n");
        },
    );
}

fn environment(language: &Language) {
    let greeting = |request: RequestBuilder| request.env("GREETING", "hello, $USER grüß dich");
    check(language, "environment", greeting, Status::Completed, |report| {
        assert_eq!(report.stdout, "hello, $USER grüß dich\n");
    });
}

fn files(language: &Language) {
    let numbers =
        |request: RequestBuilder| request.file("in/numbers.txt", "20\n22\n").collect("**/*.txt");
    check(language, "files", numbers, Status::Completed, |report| {
        assert_eq!(output_files(report), [("sum.txt", "42\n")]);
    });
}

fn uncaught(language: &Language) {
    check(
        language,
        "uncaught",
        |request| request,
        Status::RuntimeError,
        |report| {
            assert_eq!(report.stdout, "before\n");
            assert!(report.stderr.contains("out of stock"), "{}", report.stderr);
            assert_eq!(report.stage, Stage::Run);
        },
    );
}

fn exit_three(language: &Language) {
    check(
        language,
        "exit_three",
        |request| request,
        Status::RuntimeError,
        |report| {
            assert_eq!((report.exit_code, report.stdout.as_str()), (3, "before\n"));
            assert_eq!((report.signal.as_deref(), report.stderr.as_str()), (None, ""));
        },
    );
}

/// A compile error names the file as the user wrote it, and no path of the sandbox.
fn compile_error(language: &Language) {
    check(
        language,
        "broken",
        |request| request,
        Status::CompileError,
        |report| {
            assert_eq!((report.stage, report.stages.len()), (Stage::Compile, 1));
            assert!(report.stderr.contains(&line_three_of(language)), "{}", report.stderr);
            for ours in ["/work", "/tmp", "/opt"] {
                assert!(!report.stderr.contains(ours), "{}", report.stderr);
            }
        },
    );
}

/// Without a compile stage it is the run stage that finds out.
fn syntax_error(language: &Language) {
    check(
        language,
        "broken",
        |request| request,
        Status::RuntimeError,
        |report| {
            assert_eq!((report.stage, report.exit_code), (Stage::Run, 1));
            assert!(report.stderr.contains(&line_three_of(language)), "{}", report.stderr);
            assert!(report.stderr.contains("SyntaxError"), "{}", report.stderr);
        },
    );
}

fn line_three_of(language: &Language) -> String {
    (language.line_three)(&(language.file)("broken"))
}

/// What a compiler warns of is kept apart from what the program prints.
fn warning(language: &Language) {
    check(
        language,
        "warning",
        |request| request,
        Status::Completed,
        |report| {
            assert_eq!((report.stdout.as_str(), report.stderr.as_str()), ("hello, world\n", ""));
            let compile = &report.stages[0];
            assert_eq!(compile.name, Stage::Compile);
            assert!(compile.output.contains("warning"), "{}", compile.output);
            assert!(compile.output.contains("forgotten_value"), "{}", compile.output);
        },
    );
}

fn busy(language: &Language) {
    let one_second = Limits::run().with_wall_time(Duration::from_secs(1)).unwrap();
    let limited = |request: RequestBuilder| request.limits(one_second.clone());
    check(language, "busy", limited, Status::Timeout, |report| {
        assert_eq!(report.stage, Stage::Run);
        assert_eq!(report.error.as_deref(), Some("wall time limit of 1s reached"));
    });
}

fn hungry(language: &Language) {
    let limits = Limits::run().with_memory(language.memory).unwrap();
    let limited = |request: RequestBuilder| request.limits(limits.clone());
    check(language, "hungry", limited, Status::MemoryLimit, |report| {
        assert_eq!(report.stage, Stage::Run);
    });
}

fn chatty(language: &Language) {
    let limits = Limits::run().with_output(ByteSize::kib(64)).unwrap();
    let limited = |request: RequestBuilder| request.limits(limits.clone());
    check(language, "chatty", limited, Status::OutputLimit, |report| {
        assert_eq!((report.stage, report.stdout.len()), (Stage::Run, 64 << 10));
        assert!(report.stdout_truncated && report.stdout.starts_with("again and again\n"));
    });
}

fn unicode(language: &Language) {
    let line = "naïve 日本語 🚀\n";
    let given = |request: RequestBuilder| request.stdin(line.as_bytes().to_vec()).collect("*.txt");
    check(language, "unicode", given, Status::Completed, |report| {
        assert_eq!(report.stdout, format!("grüße, 世界\n{line}"));
        assert_eq!(output_files(report), [("ü-文.txt", line)]);
    });
}

fn output_files(report: &Report) -> Vec<(&str, &str)> {
    let files = report.output_files.iter();
    files.map(|file| (file.path.as_str(), file.content.as_str())).collect()
}
