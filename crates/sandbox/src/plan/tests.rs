use super::*;
use crate::ExecuteError;
use crate::runtime::tests::{of_text, unprobed as built_in};
use sandbox_core::CollectedFile;
use sandbox_core::{Protection, RequestBuilder, Volume};
use std::io::Read;
use std::time::Duration;

/// A language with a compile stage, as plain as one can be.
const C: &str = r#"
name = "c"
extensions = ["c"]
entry = "main.c"
[toolchain]
programs = ["/usr/bin/the-c"]
version = { args = [] }
[compile]
command = ["{program}", "-o", "program", "{sources}", "-lm"]
artefacts = ["program"]
[run]
command = ["./program"]
[hello]
code = ""
expected = ""
"#;

fn unprobed(language: &str) -> Runtime {
    if language == "c" { of_text(C) } else { built_in(language) }
}

fn check(runtime: &Runtime, request: &Request) -> Result<(), ExecuteError> {
    super::check(runtime, request).map_err(ExecuteError::from)
}

fn build(builder: RequestBuilder) -> Request {
    builder.build().unwrap()
}

fn paths(plan: &StagePlan) -> Vec<&str> {
    plan.sandbox.all_files().map(|file| file.path.as_str()).collect()
}

#[test]
fn code_text_becomes_the_entry_file() {
    let request = build(Request::builder("python").code("1").file("data.txt", "x"));
    let runtime = unprobed("python");
    assert!(compile(&runtime, &request, StageContext::default()).is_none());
    let plan = run(&runtime, &request, Arc::default(), StageContext::default());
    assert_eq!(plan.process.command, ["/usr/bin/the-python", "main.py"]);
    assert_eq!(paths(&plan), ["main.py", "data.txt"]);
    assert_eq!(plan.sandbox.files[0].contents, b"1");
    assert_eq!(plan.process.env["PYTHONUNBUFFERED"], "1");
    assert_eq!(plan.process.env["PATH"], "/usr/local/bin:/usr/bin:/bin");
    assert_eq!(plan.process.env["HOME"], "/tmp");
}

#[test]
fn the_memory_of_a_request_is_that_of_its_largest_stage() {
    let asked = |mib| Limits::run().with_memory(ByteSize::mib(mib)).unwrap();
    let request = |mib| build(Request::builder("c").code("1").limits(asked(mib)));
    assert_eq!(memory(&unprobed("python"), &request(100)), ByteSize::mib(100));
    assert_eq!(memory(&unprobed("c"), &request(100)), Limits::compile().memory());
    assert_eq!(memory(&unprobed("c"), &request(4096)), ByteSize::mib(4096));
}

#[test]
fn without_code_text_the_first_file_is_the_entry() {
    let builder = Request::builder("python").file("app/start.py", "").file("a.py", "");
    let request = build(builder.args(["-x", "y"]).env("LANG", "C").env("MINE", "{entry}"));
    let plan = run(&unprobed("python"), &request, Arc::default(), StageContext::default());
    assert_eq!(plan.process.command, ["/usr/bin/the-python", "app/start.py", "-x", "y"]);
    assert_eq!(
        (plan.process.env["LANG"].as_str(), plan.process.env["MINE"].as_str()),
        ("C", "{entry}")
    );
}

#[test]
fn every_source_is_compiled_and_headers_are_only_there() {
    let builder = Request::builder("c").code("").file("lib/a.c", "").file("a.h", "");
    let request = build(builder.file("-o.c", "").file("@x.c", ""));
    let plan = compile(&unprobed("c"), &request, StageContext::default()).unwrap();
    let sources = ["main.c", "lib/a.c", "./-o.c", "./@x.c"];
    let told =
        plan.process.command.windows(sources.len()).filter(|words| *words == sources).count();
    assert_eq!(told, 1, "{:?}", plan.process.command);
    assert_eq!(paths(&plan), ["main.c", "lib/a.c", "a.h", "-o.c", "@x.c"]);
    assert!(plan.collect.globs[0].matches("program"));
}

#[test]
fn a_compiler_gets_nothing_that_is_meant_for_the_program() {
    let volume: Volume = "/srv:/data".parse().unwrap();
    let builder = Request::builder("c").code("").stdin("in").env("A", "b").args(["x"]);
    let builder = builder.network(NetworkPolicy::Localhost).volume(volume).workdir("sub");
    let builder = builder.usage_interval(Duration::from_millis(10));
    let request = build(builder.allow_missing(Protection::Landlock).collect("*"));
    let plan = compile(&unprobed("c"), &request, StageContext::default()).unwrap();
    assert_eq!((plan.stage, plan.process.directory.as_str()), (Stage::Compile, ""));
    assert!(matches!(plan.process.stdin, Stdin::Empty));
    assert_eq!(plan.sandbox.network, NetworkPolicy::None);
    assert!(plan.sandbox.volumes.is_empty() && !plan.process.env.contains_key("A"));
    assert_eq!(plan.sandbox.limits, Limits::compile());
    assert!(plan.usage_interval.is_none());
    let plan = run(&unprobed("c"), &request, Arc::default(), StageContext::default());
    assert!(matches!(&plan.process.stdin, Stdin::Bytes(bytes) if bytes == b"in"));
    assert_eq!(plan.sandbox.network, NetworkPolicy::Localhost);
    assert_eq!(plan.process.env["A"].as_str(), "b");
    assert_eq!(plan.sandbox.limits, Limits::run());
    assert!(plan.sandbox.allow_missing.contains(&Protection::Landlock));
    assert_eq!(plan.collect.total, Limits::run().output());
}

#[test]
fn artefacts_join_the_files_and_keep_their_mode() {
    let request = build(Request::builder("c").code("").file("program", "old"));
    let artefact =
        CollectedFile { path: "program".into(), contents: b"new".to_vec(), executable: true };
    let artefacts = Arc::new(Artefacts::new(None, vec![artefact]));
    let plan = run(&unprobed("c"), &request, artefacts, StageContext::default());
    assert_eq!(plan.process.command, ["./program"]);
    assert_eq!(paths(&plan), ["main.c", "program"]);
    let files: Vec<&InputFile> = plan.sandbox.all_files().collect();
    assert_eq!(files[1].contents, b"new");
    assert!(files[1].executable && !files[0].executable);
}

#[test]
fn the_entry_is_found_from_another_directory() {
    let command = |language: &str, file: &str, directory: &str| {
        let builder = Request::builder(language).file(file, "").workdir(directory);
        let plan =
            run(&unprobed(language), &build(builder), Arc::default(), StageContext::default());
        assert_eq!(plan.process.directory, directory);
        plan.process.command.last().unwrap().clone()
    };
    assert_eq!(command("python", "main.py", "sub/deep"), "../../main.py");
    assert_eq!(command("python", "sub/main.py", "sub"), "main.py");
    assert_eq!(command("python", "sub/a/main.py", "sub/b"), "../a/main.py");
    assert_eq!(command("python", "sub", "sub"), "../sub");
    assert_eq!(command("c", "main.c", "sub"), "/work/program");
}

#[test]
fn a_file_cannot_have_the_name_of_the_code_text() {
    let runtime = unprobed("python");
    for path in ["main.py", "main.py/x"] {
        let request = build(Request::builder("python").code("1").file(path, ""));
        assert!(
            matches!(
                check(&runtime, &request),
                Err(ExecuteError::Request(InvalidRequest::SamePath(_)))
            ),
            "{path}"
        );
    }
    let request = build(Request::builder("python").code("1").file("main.pyx", ""));
    assert!(check(&runtime, &request).is_ok());
    let request = build(Request::builder("python").file("main.py", ""));
    assert!(check(&runtime, &request).is_ok());
}

#[test]
fn files_that_do_not_fit_the_disk_are_refused() {
    let disk = |kib| Limits::run().with_disk(ByteSize::kib(kib)).unwrap();
    let builder = || Request::builder("python").file("a", vec![0; 65_537]);
    let runtime = unprobed("python");
    let error = check(&runtime, &build(builder().limits(disk(64)))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the files are 65537 bytes together, over the disk limit of 64K of the run stage"
    );
    assert!(check(&runtime, &build(builder().limits(disk(68)))).is_ok());
    let builder = Request::builder("c").file("a.c", vec![0; 65_537]);
    let error = check(&unprobed("c"), &build(builder.compile_limits(disk(64)))).unwrap_err();
    assert!(error.to_string().ends_with("of the compile stage"), "{error}");
    let many = (0..65)
        .fold(Request::builder("python"), |builder, number| builder.file(number.to_string(), ""));
    let error = check(&runtime, &build(many.limits(disk(64)))).unwrap_err();
    assert!(error.to_string().starts_with("65 files are more than the 64"), "{error}");
}

#[test]
fn artefacts_must_leave_room_for_the_files_of_the_run_stage() {
    let limits = Limits::run().with_disk(ByteSize::kib(64)).unwrap();
    let builder = Request::builder("c").file("a.c", vec![b' '; 1024]);
    let plan =
        compile(&unprobed("c"), &build(builder.limits(limits)), StageContext::default()).unwrap();
    assert_eq!(plan.collect.total, ByteSize::kib(63));
}

#[test]
fn nothing_to_compile_is_told_before_a_compiler_starts() {
    let request = build(Request::builder("c").file("only.h", ""));
    assert_eq!(
        check(&unprobed("c"), &request).unwrap_err().to_string(),
        "nothing to compile: c needs a file with the extension .c"
    );
}

#[test]
fn a_reader_moves_into_the_run_stage() {
    let stdin = Stdin::from_reader(&b"typed"[..]);
    let request = build(Request::builder("python").code("").stdin(stdin));
    let plan = run(&unprobed("python"), &request, Arc::default(), StageContext::default());
    let Stdin::Reader(reader) = plan.process.stdin else {
        panic!("the reader was lost");
    };
    let mut text = String::new();
    let mut reader = reader.into_inner().unwrap().unwrap();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "typed");
}
