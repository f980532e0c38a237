//! The other half of the attacks on the host: without the protection that stops them, they succeed.
//! Without this, an attack could fail because it is misspelt.

use std::path::Path;

use sandbox::{Protection, Report, Request, RequestBuilder, Sandbox, SandboxBuilder};
use sandbox_tests::backend::execute;

use crate::attack::take_turn;
use crate::host::Host;
use crate::java::add_library_with_processor;

/// Attempts an attack on the host in a sandbox with a hole in it.
fn attempt_with_hole(
    hole: impl Fn(&Host, &str) -> SandboxBuilder,
    language: &str,
    add: impl Fn(&Host, RequestBuilder) -> RequestBuilder,
    succeeded: impl Fn(&Host, &Report) -> bool,
) {
    let _turn = take_turn();
    let host = Host::new();
    let sandbox = hole(&host, language).without_compile_cache().build().unwrap();
    let request = add(&host, Request::builder(language));
    let Some(report) = execute("breach", &sandbox, request) else { return };
    assert!(succeeded(&host, &report), "the attack fails by itself");
}

/// The recipe of the language, which shows the secret as if it were part of the toolchain.
fn showing_the_secret(host: &Host, language: &str) -> SandboxBuilder {
    let place = host.place().join("recipes").join(language);
    std::fs::create_dir_all(&place).unwrap();
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtimes").join(language);
    for file in std::fs::read_dir(original).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), place.join(file.file_name())).unwrap();
    }
    let recipe = place.join("runtime.toml");
    let text = std::fs::read_to_string(&recipe).unwrap();
    let secret = host.place().display();
    let text = if text.contains("shows = [") {
        text.replace("shows = [", &format!("shows = [\"{secret}\", "))
    } else {
        text.replace("[toolchain]\n", &format!("[toolchain]\nshows = [\"{secret}\"]\n"))
    };
    std::fs::write(recipe, text).unwrap();
    Sandbox::builder().runtimes_directory(host.place().join("recipes"))
}

fn in_the_hosts_network(_: &Host, _: &str) -> SandboxBuilder {
    Sandbox::builder().without(Protection::NetNamespace)
}

/// Rows: attacks that tell the secret of the host once it is there.
macro_rules! told_where_it_is_shown {
    ($($name:ident: $source:expr;)+) => {$(
        #[test]
        fn $name() {
            let (language, _) = $source.split_once('/').unwrap();
            let add = |host: &Host, request| host.add(request, $source);
            attempt_with_hole(showing_the_secret, language, add, Host::is_told_by);
        }
    )+};
}

told_where_it_is_shown! {
    a_c_compiler_tells_what_it_includes: "c/include-canary.c";
    an_assembler_copies_what_it_is_told: "c/incbin-canary.c";
    a_cpp_compiler_tells_what_it_includes: "cpp/include-canary.cpp";
    a_rust_compiler_includes_what_is_there: "rust/include-canary.rs";
    a_build_script_reads_what_is_there: "rust/build-script-reads";
    a_macro_reads_what_is_there: "rust/macro-reads";
    the_go_command_takes_modules_from_anywhere: "go/replace-canary";
    the_typescript_compiler_quotes_what_it_imports: "typescript/import-canary.ts";
}

#[test]
fn a_processor_reads_what_is_there() {
    attempt_with_hole(showing_the_secret, "java", add_library_with_processor, Host::is_told_by);
}

#[test]
fn a_build_script_in_the_hosts_network_calls_its_servers() {
    let add = |host: &Host, request| host.add(request, "rust/build-script-network");
    attempt_with_hole(in_the_hosts_network, "rust", add, |host, _| host.was_called());
}
