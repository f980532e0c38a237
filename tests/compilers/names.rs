//! File names as attacks. Compile commands are shell scripts and compilers take options: a name must
//! reach the compiler as a name, whatever it looks like.

use sandbox::{InvalidRequest, Request, RequestBuilder, Status};
use sandbox_tests::backend::{execute, with_each_backend_if_asked};

use crate::attack::take_turn;

/// What a name could be mistaken for: an option, a file of options, a command, a pattern, two names,
/// an escape sequence, the end of a quotation.
const NAMES: &[&str] = &[
    "-o",
    "--help",
    "-v",
    "-E",
    "-fplugin=evil.so",
    "-wrapper,evil",
    "-Xfuture",
    "-J-version",
    "-",
    "--",
    "@arguments",
    "a b",
    "a;touch evil",
    "$(touch evil)",
    "`touch evil`",
    "a&b",
    "a|b",
    "a>b",
    "a'b",
    "a\"b",
    "a\\nb",
    "a\\",
    "*",
    "[a-z]",
    "?",
    "~",
    "#a",
    "%s",
    "a=b",
    "!a",
    "{entry}",
];

/// Those of them that are tried for the entry file too, where each takes an execution.
const NAMES_OF_ENTRIES: &[&str] =
    &["-o", "@arguments", "a b;c", "$(touch evil)", "a'b\"*", "a\\nb"];

/// A program of as many sources as there are names: the entry file calls a function in each of them,
/// which prints its number.
struct Program {
    language: &'static str,
    entry: &'static str,
    extension: &'static str,
    calls: fn(&str) -> String,
    call: fn(usize) -> String,
    function: fn(usize) -> String,
}

const PROGRAMS: &[Program] = &[
    Program {
        language: "c",
        entry: "main.c",
        extension: "c",
        calls: |calls| format!("int main(void) {{ {calls} }}"),
        call: |number| format!("void f{number}(void); f{number}();"),
        function: |number| {
            format!("#include <stdio.h>\nvoid f{number}(void) {{ puts(\"{number}\"); }}")
        },
    },
    Program {
        language: "cpp",
        entry: "main.cpp",
        extension: "cpp",
        calls: |calls| format!("int main() {{ {calls} }}"),
        call: |number| format!("void f{number}(); f{number}();"),
        function: |number| format!("#include <cstdio>\nvoid f{number}() {{ puts(\"{number}\"); }}"),
    },
    Program {
        language: "java",
        entry: "Main.java",
        extension: "java",
        calls: |calls| {
            format!("class Main {{ public static void main(String[] a) {{ {calls} }} }}")
        },
        call: |number| format!("F{number}.print();"),
        function: |number| {
            format!("class F{number} {{ static void print() {{ System.out.println({number}); }} }}")
        },
    },
    Program {
        language: "go",
        entry: "main.go",
        extension: "go",
        calls: |calls| format!("package main\nfunc main() {{ {calls} }}"),
        call: |number| format!("f{number}(); "),
        function: |number| {
            format!("package main\nimport \"fmt\"\nfunc f{number}() {{ fmt.Println({number}) }}")
        },
    },
];

/// Whether the language's own tools take a file of this name; if they do not, the sandbox is not the reason.
fn is_taken_by(language: &str, name: &str) -> bool {
    match language {
        // The go command refuses what another program could take for an option.
        "go" => !name.starts_with(['-', '@']),
        // For this compiler a backslash is another way to write a slash.
        "typescript" => !name.contains('\\'),
        _ => true,
    }
}

/// Every source is part of the program, whatever its name.
fn check_names_of_sources(language: &str) {
    let _turn = take_turn();
    let program = PROGRAMS.iter().find(|program| program.language == language).unwrap();
    let names: Vec<&str> =
        NAMES.iter().copied().filter(|name| is_taken_by(language, name)).collect();
    let numbers = 0..names.len();
    let calls: String = numbers.clone().map(program.call).collect();
    let expected = numbers.fold(String::new(), |text, number| text + &number.to_string() + "\n");
    with_each_backend_if_asked(|sandbox| {
        let mut request = Request::builder(language)
            .file(program.entry, (program.calls)(&calls))
            // Where a file of arguments or a plugin is looked for, there is one that would do harm.
            .file("arguments", "--help")
            .file("evil.so", "");
        for (number, name) in names.iter().enumerate() {
            let path = format!("{name}.{}", program.extension);
            request = request.file(path, (program.function)(number));
        }
        if let Some(report) = execute("names_of_sources", sandbox, request) {
            assert_eq!((report.status, report.stdout), (Status::Completed, expected.clone()));
        }
    });
}

#[test]
fn the_sources_of_a_c_program_may_have_any_name() {
    check_names_of_sources("c");
}

#[test]
fn the_sources_of_a_cpp_program_may_have_any_name() {
    check_names_of_sources("cpp");
}

#[test]
fn the_sources_of_a_java_program_may_have_any_name() {
    check_names_of_sources("java");
}

#[test]
fn the_sources_of_a_go_program_may_have_any_name() {
    check_names_of_sources("go");
}

#[test]
fn a_go_source_that_is_called_like_an_option_is_refused_and_not_taken_for_one() {
    let _turn = take_turn();
    with_each_backend_if_asked(|sandbox| {
        // What the compiler would do if it took them for options: print its version, write elsewhere,
        // read more arguments.
        for name in ["-V", "-o=x", "-cpuprofile=x", "@arguments"] {
            let request = entry_called("go", name).file("arguments.go", "package main\n");
            let Some(report) = execute("go_options", sandbox, request) else { return };
            assert_eq!(report.status, Status::CompileError, "{name}");
            assert!(report.stderr.contains("invalid input file name"), "{name}: {}", report.stderr);
        }
    });
}

/// A program in one file, which has this name.
fn entry_called(language: &str, name: &str) -> RequestBuilder {
    let (extension, code) = match language {
        "c" => ("c", "int puts(const char *); int main(void) { puts(\"entry\"); }"),
        "cpp" => ("cpp", "#include <cstdio>\nint main() { std::puts(\"entry\"); }"),
        "go" => ("go", "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"entry\") }"),
        "java" => (
            "java",
            "class A { public static void main(String[] a) { System.out.println(\"entry\"); } }",
        ),
        "rust" => ("rs", "#![crate_name = \"entry\"]\nfn main() { println!(\"entry\"); }"),
        "typescript" => ("ts", "console.log(\"entry\");"),
        "javascript" => ("js", "console.log(\"entry\");"),
        "python" => ("py", "print(\"entry\")"),
        language => panic!("there is no program in {language}"),
    };
    Request::builder(language).file(format!("{name}.{extension}"), code)
}

/// The program runs from an entry file of each of the names.
fn check_names_of_entry(language: &str) {
    let _turn = take_turn();
    with_each_backend_if_asked(|sandbox| {
        let mut wrong = Vec::new();
        for name in NAMES_OF_ENTRIES.iter().filter(|name| is_taken_by(language, name)) {
            let Some(report) = execute("names_of_entry", sandbox, entry_called(language, name))
            else {
                return;
            };
            if report.status != Status::Completed || report.stdout != "entry\n" {
                wrong.push(format!("{name}: {}: {}", report.status, report.output));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

/// Rows: a test for each language.
macro_rules! entry_names {
    ($($name:ident: $language:expr;)+) => {$(
        #[test]
        fn $name() {
            check_names_of_entry($language);
        }
    )+};
}

entry_names! {
    a_c_program_may_have_any_name: "c";
    a_cpp_program_may_have_any_name: "cpp";
    a_go_program_may_have_any_name: "go";
    a_java_program_may_have_any_name: "java";
    a_rust_program_may_have_any_name: "rust";
    a_typescript_program_may_have_any_name: "typescript";
    a_javascript_program_may_have_any_name: "javascript";
    a_python_program_may_have_any_name: "python";
}

#[test]
fn names_with_control_characters_are_refused_before_a_compiler_sees_them() {
    for name in ["a\nb.c", "a\0.c", "a\u{1b}[2J.c", "a\tb.c", "../a.c", "/etc/a.c"] {
        let request = Request::builder("c").file(name, "int main;").build();
        assert!(matches!(request, Err(InvalidRequest::Path(_))), "{name:?}: {request:?}");
    }
}
