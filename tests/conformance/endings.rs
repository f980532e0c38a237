//! How programs and compilers end, and what the report says.

use std::fmt::Write as _;

use sandbox::{ExecuteError, Report, Request, Stage};
use sandbox_tests::backend::{Feature, with_each_backend, with_each_backend_that_has};

use crate::table::{bash, c, compile_limits, mib, millis, nothing_more, python};

table! {
    the_answer_is_completed: python("print(6 * 7)") => Completed, |report: &Report| {
        assert_eq!((report.stdout.as_str(), report.stderr.as_str()), ("42\n", ""));
        assert_eq!((report.language.as_str(), report.stages.len()), ("python", 1));
        assert_eq!(report.stage, Stage::Run);
        assert!(report.version.starts_with('3'), "{}", report.version);
        assert!(report.output_files.is_empty() && report.violations.is_empty());
    };
    a_shell_script_is_completed: bash("echo hello") => Completed, |report: &Report| {
        assert_eq!(report.stdout, "hello\n");
    };
    a_compiled_program_has_two_stages: c(HELLO) => Completed, |report: &Report| {
        assert_eq!(report.stdout, "hello\n");
        let stages: Vec<Stage> = report.stages.iter().map(|stage| stage.name).collect();
        assert_eq!(stages, [Stage::Compile, Stage::Run]);
        assert!(report.timings_ms.compile > 0.0 && report.timings_ms.run > 0.0);
    };
    exit_code_three_is_a_runtime_error: bash("exit 3") => RuntimeError, exited_with(3);
    exit_code_255_is_a_runtime_error: bash("exit 255") => RuntimeError, exited_with(255);
    an_uncaught_exception_is_a_runtime_error: python("1 / 0") => RuntimeError, |report: &Report| {
        assert!(report.stderr.contains("ZeroDivisionError"), "{}", report.stderr);
        exited_with(1)(report);
    };
    a_segmentation_fault_is_named: c("int main(void) { *(volatile int *)0 = 1; }")
        => RuntimeError, ended_by("SIGSEGV", 139);
    an_abort_is_named: c("#include <stdlib.h>\nint main(void) { abort(); }")
        => RuntimeError, ended_by("SIGABRT", 134);
    /// Its own SIGKILL is not a limit's.
    a_program_that_kills_itself_reached_no_limit: bash("kill -9 $$")
        => RuntimeError, ended_by("SIGKILL", 137);
    a_program_that_terminates_itself_was_not_cancelled: bash("kill -TERM $$")
        => RuntimeError, ended_by("SIGTERM", 143);
    a_realtime_signal_is_named_by_number: bash("kill -40 $$")
        => RuntimeError, ended_by("SIG40", 168);
    a_broken_pipe_of_its_own_is_its_own: bash("kill -PIPE $$")
        => RuntimeError, ended_by("SIGPIPE", 141);
    the_signal_of_a_child_is_not_the_programs: bash("bash -c 'kill -9 $$'; echo $?")
        => Completed, |report: &Report| assert_eq!(report.stdout, "137\n");
    /// Everything it may signal is its own; what watches over it is not among that.
    killing_everything_in_sight_kills_no_watcher:
        python("import os, signal, time\n\
                if os.fork() == 0: time.sleep(60)\n\
                os.kill(-1, signal.SIGKILL)\nprint('alive', os.wait()[1])")
        => Completed, |report: &Report| assert_eq!(report.stdout, "alive 9\n");
    a_program_that_is_not_there_is_a_runtime_error: bash("no-such-program")
        => RuntimeError, exited_with(127);

    a_syntax_error_is_a_compile_error: c("int main(void) { return }") => CompileError, |report: &Report| {
        assert!(report.stderr.contains("error:"), "{}", report.stderr);
        assert_eq!((report.stage, report.stages.len()), (Stage::Compile, 1));
        assert_eq!((report.exit_code, report.exit_code_for_shell()), (1, 65));
        assert!(report.execution_time_ms.abs() < f64::EPSILON);
    };
    an_undefined_function_is_a_compile_error:
        c("int nowhere(void); int main(void) { return nowhere(); }")
        => CompileError, |report: &Report| {
            assert!(report.stderr.contains("undefined reference"), "{}", report.stderr);
        };
    warnings_of_a_compiler_do_not_stand_among_the_programs_output:
        c("#warning careful\nint main(void) { return 0; }")
        => Completed, |report: &Report| assert_eq!(report.output, "");
    a_compiler_that_takes_too_long_is_a_timeout:
        c(ENDLESS_INCLUDES).compile_limits(compile_limits(|limits| limits.with_wall_time(millis(700))))
        => Timeout, in_compile("wall time limit of 700ms");
    a_compiler_that_computes_too_long_is_a_timeout:
        c(ENDLESS_INCLUDES).compile_limits(compile_limits(|limits| limits.with_cpu_time(millis(400))))
        => Timeout, in_compile("CPU time limit of 400ms");
    a_compiler_that_wants_too_much_memory_reaches_its_limit:
        c(&exploding_macro()).compile_limits(compile_limits(|limits| limits.with_memory(mib(64))))
        => MemoryLimit, in_compile("memory limit of 64M");
    a_compiler_that_talks_too_much_reaches_its_limit:
        c(&"#warning talk\n".repeat(2000))
            .compile_limits(compile_limits(|limits| limits.with_output(sandbox::ByteSize::kib(8))))
        => OutputLimit, |report: &Report| {
            in_compile("8K of output")(report);
            assert_eq!(report.stderr.len(), 8192);
            assert!(report.stderr_truncated);
        };
    the_compile_stage_does_not_use_up_the_run_stages_limits:
        c(HELLO).limits(limits!(with_memory(mib(8)), with_cpu_time(millis(500)), with_disk(mib(1))))
        => Completed, nothing_more;
}

const HELLO: &str = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }";

/// The file includes itself twice on each of thirty levels: a thousand million inclusions.
const ENDLESS_INCLUDES: &str = "#if __INCLUDE_LEVEL__ < 30\n#include __FILE__\n#include __FILE__\n\
                                #endif\n#if __INCLUDE_LEVEL__ == 0\nint main(void) {}\n#endif";

/// Thirty macros that each expand to the one before twice.
fn exploding_macro() -> String {
    let mut code = "#define m0 x +\n".to_owned();
    for level in 1..=30 {
        let below = level - 1;
        writeln!(code, "#define m{level} m{below} m{below}").expect("text takes text");
    }
    code + "int main(void) { int x = 1; return m30 0; }"
}

fn exited_with(code: i32) -> impl Fn(&Report) {
    move |report| {
        assert_eq!((report.exit_code, report.signal.as_deref()), (code, None));
        assert_eq!(i32::from(report.exit_code_for_shell()), code);
        assert_eq!(report.error, Some(format!("exited with code {code}")));
    }
}

fn ended_by(signal: &'static str, shell: u8) -> impl Fn(&Report) {
    move |report| {
        assert_eq!((report.exit_code, report.signal.as_deref()), (-1, Some(signal)));
        assert_eq!(report.exit_code_for_shell(), shell);
        assert!(report.error.as_deref().unwrap_or_default().contains(signal));
    }
}

fn in_compile(words: &'static str) -> impl Fn(&Report) {
    move |report| {
        assert_eq!((report.stage, report.stages.len()), (Stage::Compile, 1));
        assert_eq!(report.stages[0].status, report.status);
        let error = report.error.as_deref().unwrap_or_default();
        assert!(error.contains(words) && error.contains("compiling"), "{error}");
    }
}

#[test]
fn a_language_that_nobody_knows_is_a_bad_request() {
    with_each_backend(|sandbox| {
        let request = Request::builder("klingon").code("nuqneH").build().unwrap();
        let error = sandbox.execute(request).unwrap_err();
        assert!(matches!(error, ExecuteError::Language(_)));
        assert!(error.to_string().contains("klingon"), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    });
}

#[test]
fn a_volume_that_is_not_there_is_a_bad_request_and_never_a_run() {
    with_each_backend_that_has(&[Feature::Volumes], |sandbox| {
        let request = python("print(1)").volume("/no/such/place:/data".parse().unwrap());
        match sandbox.execute(request.build().unwrap()) {
            Err(ExecuteError::Volume(refusal)) => {
                assert!(refusal.to_string().contains("/no/such/place"), "{refusal}");
            }
            other => panic!("{other:?}"),
        }
    });
}
