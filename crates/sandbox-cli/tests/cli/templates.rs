//! Errors in a filled-in template refer to lines of the code.

use std::path::Path;
use std::process::Command;

use crate::support::{BINARY, CommandOutput, call_with_long_timeout};

/// A template with code on its lines 4 and following, and mistakes on line 2 of the code.
struct Case {
    language: &'static str,
    template: &'static str,
    /// Code that does not compile, and the expected error.
    compile: (&'static str, &'static str),
    /// Code that fails at run time, and the expected error.
    run: (&'static str, &'static str),
}

fn check(case: &Case) {
    let place = tempfile::tempdir().unwrap();
    let template = place.path().join("template");
    std::fs::write(&template, case.template).unwrap();
    let run = |code: &str, format: &str| {
        let template = template.to_str().unwrap();
        let line = ["-l", case.language, "--template", template, "--format", format, "-c", code];
        call_with_long_timeout(&line)
    };
    for (code, expected) in [case.compile, case.run] {
        let answer = run(code, "text");
        assert!(answer.stderr.contains(expected), "no {expected:?} in {answer:?}");
        assert_ne!(answer.code, Some(0), "{answer:?}");
        let report = run(code, "json").json();
        let words = format!("{}{}", report["stdout"], report["stderr"]);
        let expected_in_json = serde_json::to_string(expected).unwrap();
        assert!(
            words.contains(expected_in_json.trim_matches('"')),
            "no {expected:?} in {report:#}"
        );
        let output = report["output"].as_str().unwrap();
        assert!(output.contains(expected), "no {expected:?} in {output}");
        let events = run(code, "ndjson");
        assert!(output_of_events(&events).contains(expected), "no {expected:?} in {events:?}");
    }
}

/// What the output events say, one after the other.
fn output_of_events(answer: &CommandOutput) -> String {
    let events = answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap());
    let data =
        events.filter_map(|event: serde_json::Value| Some(event["data"].as_str()?.to_owned()));
    data.collect()
}

#[test]
fn python() {
    check(&Case {
        language: "python",
        template: "import sys\n\ndef run():\n    {{ code | indent(4) }}\n\nrun()\n",
        compile: ("x = 1\ny = (", "main.py\", line 2\n"),
        run: ("x = 1\ny = x / 0", "main.py\", line 2, in run"),
    });
}

#[test]
fn javascript() {
    check(&Case {
        language: "javascript",
        template: "'use strict';\n\n\n{{ code }}\n\nrun();\n",
        compile: ("function run() {\n  let = ;\n}", "main.js:2\n"),
        run: ("function run() {\n  throw new Error('x');\n}", "main.js:2:9"),
    });
}

#[test]
fn typescript() {
    check(&Case {
        language: "typescript",
        template: "// 1\n// 2\n// 3\n{{ code }}\n\nrun();\n",
        compile: ("function run(): void {\n  const x: number = 'x';\n}", "main.ts(2,9): error"),
        run: ("function run(): void {\n  throw new Error('x');\n}", "main.ts:2:9"),
    });
}

#[test]
fn go() {
    check(&Case {
        language: "go",
        template: "package main\n\n\n{{ code }}\n\nfunc main() { run() }\n",
        compile: ("func run() {\n\tx := 1\n}", "main.go:2:2: declared and not used"),
        run: ("func run() {\n\tpanic(1)\n}", "main.go:2\n"),
    });
}

#[test]
fn rust() {
    check(&Case {
        language: "rust",
        template: "// 1\n// 2\n// 3\n{{ code }}\n\nfn main() { run() }\n",
        compile: ("fn run() {\n    x\n}", " --> main.rs:2:5\n  |\n2 |     x\n"),
        run: ("fn run() {\n    panic!()\n}", "main.rs:2:5:"),
    });
}

#[test]
fn java() {
    check(&Case {
        language: "java",
        template: "// 1\n\nclass Main {\n    {{ code | indent(4) }}\n\n    public static void \
                   main(String[] args) { run(); }\n}\n",
        compile: ("static void run() {\n    int x = \"x\";\n}", "Main.java:2: error"),
        run: ("static void run() {\n    throw new RuntimeException();\n}", "Main.run(Main.java:2)"),
    });
}

#[test]
fn c() {
    check(&Case {
        language: "c",
        template: "#include <assert.h>\n\n\n{{ code }}\n\nint main(void) { run(); }\n",
        compile: ("void run(void) {\n    y;\n}", "main.c:2:5: error: ‘y’ undeclared"),
        run: ("void run(void) {\n    assert(0);\n}", "main.c:2: run: Assertion"),
    });
}

#[test]
fn cpp() {
    check(&Case {
        language: "cpp",
        template: "#include <cassert>\n\n\n{{ code }}\n\nint main() { run(); }\n",
        compile: ("void run() {\n    y;\n}", "main.cpp:2:5: error: ‘y’ was not declared"),
        run: ("void run() {\n    assert(false);\n}", "main.cpp:2: void run(): Assertion"),
    });
}

#[test]
fn errors_in_the_template_have_its_lines() {
    let place = tempfile::tempdir().unwrap();
    let template = place.path().join("t.c.j2");
    let text = "#include <stdio.h>\n{{ code }}\nint main(void) {\n    return missing;\n}\n";
    std::fs::write(&template, text).unwrap();
    let answer = call_with_long_timeout(&[
        "--template",
        template.to_str().unwrap(),
        "-c",
        "int x;\nint y;\nint z;",
    ]);
    assert_eq!(answer.code, Some(65), "{answer:?}");
    let expected =
        "template:4:12: error: ‘missing’ undeclared (first use in this function)\n    4 |";
    assert!(answer.stderr.contains(expected), "{answer:?}");
}

#[test]
fn cached_warnings_have_lines_of_the_code_too() {
    let place = tempfile::tempdir().unwrap();
    let template = place.path().join("t.c.j2");
    std::fs::write(&template, "\n\n{{ code }}\nint main(void) {}\n").unwrap();
    // Never compiled before: the name is another one each time.
    let name = place.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
    let code = format!("void {name}(void) {{\n#warning here\n}}\n");
    let run = || {
        let line = ["--template", template.to_str().unwrap(), "-c", &code, "--json"];
        let report = call_with_long_timeout(&line).json();
        assert_eq!(report["status"], "completed", "{report:#}");
        report["stages"][0].clone()
    };
    let (first, second) = (run(), run());
    assert_eq!((&first["cached"], &second["cached"]), (&false.into(), &true.into()));
    assert!(first["output"].as_str().unwrap().contains("main.c:2:2: warning"), "{first:#}");
    assert_eq!(first["output"], second["output"]);
}

#[test]
fn standard_output_of_the_program_is_unchanged() {
    let place = tempfile::tempdir().unwrap();
    let template = place.path().join("t.py.j2");
    std::fs::write(&template, "\n\n{{ code }}\n").unwrap();
    let code =
        "import sys\nprint('main.py:4', file=sys.stdout)\nprint('main.py:4', file=sys.stderr)";
    let answer =
        call_with_long_timeout(&["-q", "--template", template.to_str().unwrap(), "-c", code]);
    assert_eq!(answer.stdout, "main.py:4\n");
    assert_eq!(answer.stderr, "main.py:2\n");
}

/// Runs the command that the example's first line tells, for the code that passes and the one that fails.
fn check_example(language: &str, harness: &str, code: [&str; 2], expected: &str) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/templates");
    let harness = std::fs::read_to_string(examples.join(language).join(harness)).unwrap();
    let first_line = harness.lines().next().unwrap();
    let (_, command) = first_line.split_once("sandbox-run ").unwrap();
    let run = |command: &str| -> CommandOutput {
        let output = Command::new("/bin/sh")
            .args(["-c", &format!("{BINARY} {command}")])
            .current_dir(&examples)
            .output();
        output.unwrap().into()
    };
    let passed = run(command);
    assert_eq!((passed.code, passed.stdout.as_str()), (Some(0), "sum of digits: 5 of 5 right\n"));
    let failed = run(&command.replace(code[0], code[1]));
    assert!(failed.code.is_some_and(|code| code != 0), "{failed:?}");
    assert!(failed.stderr.contains(expected), "no {expected:?} in {failed:?}");
}

macro_rules! examples {
    ($($name:ident: $language:literal, $harness:literal, $passes:literal, $raises:literal, $expected:literal;)*) => {
        $(#[test]
        fn $name() {
            check_example($language, $harness, [$passes, $raises], $expected);
        })*
    };
}

#[rustfmt::skip]
examples! {
    example_in_python: "python", "harness.py.j2", "passes.py", "raises.py", "raises.py\", line 2, in digit_sum";
    example_in_javascript: "javascript", "harness.js.j2", "passes.js", "raises.js", "raises.js:2:12";
    example_in_typescript: "typescript", "harness.ts.j2", "passes.ts", "raises.ts", "raises.ts:2:9";
    example_in_go: "go", "harness.go.j2", "passes.go", "raises.go", "raises.go:3";
    example_in_rust: "rust", "harness.rs.j2", "passes.rs", "raises.rs", "raises.rs:2:22";
    example_in_java: "java", "Harness.java.j2", "Passes.java", "Raises.java", "Raises.java:2)";
    example_in_c: "c", "harness.c.j2", "passes.c", "raises.c", "raises.c:2: digit_sum: Assertion";
    example_in_cpp: "cpp", "harness.cpp.j2", "passes.cpp", "raises.cpp", "raises.cpp:2: int digit_sum(int): Assertion";
}
