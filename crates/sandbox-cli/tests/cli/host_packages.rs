//! Packages that are installed on the host: visible by default, hidden on request.

use std::path::Path;

use crate::support::{CommandOutput, call, skip};

/// Where Debian installs packages for its own Python.
const PLACE: &str = "/usr/lib/python3/dist-packages";

/// A module that the host's own Python has from a package.
fn module() -> Option<String> {
    let entries = std::fs::read_dir(PLACE).ok()?.flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut modules: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".py").map(ToOwned::to_owned)).collect();
    modules.sort();
    modules.into_iter().next()
}

/// Whether the module can be found, in every way of a program that looks for it.
fn look_for(module: &str, args: &[&str]) -> CommandOutput {
    let code = format!(
        "import importlib.util, os
print(importlib.util.find_spec('{module}') is not None, os.path.exists('{PLACE}/{module}.py'))"
    );
    call(&[&["-q", "-l", "python", "-c", &code], args].concat())
}

#[test]
fn they_are_found_by_default_and_hidden_on_demand() {
    let Some(module) = module() else {
        skip("the host's Python has no package of its own");
        return;
    };
    let found = look_for(&module, &[]);
    assert_eq!(found.stdout, "True True\n", "{found:?}");
    for isolation in ["native", "runc", "gvisor"] {
        let hidden = look_for(&module, &["--no-host-packages", "--isolation", isolation]);
        assert_eq!(hidden.stdout, "False False\n", "{isolation}: {hidden:?}");
    }
}

#[test]
fn every_language_that_can_hide_them_works_without() {
    let languages = call(&["runtimes", "--json"]).json();
    let mut tried = 0;
    for language in languages.as_array().unwrap() {
        let has_some = !language["host_packages"].as_array().unwrap().is_empty();
        if language["available"] != true || !has_some {
            continue;
        }
        let name = language["language"].as_str().unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtimes").join(name);
        let mut files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        let hello = files.find(|path| path.file_stem().is_some_and(|stem| stem == "hello"));
        let hello = hello.expect("each has a hello");
        let args = ["-q", "-l", name, "--no-host-packages", hello.to_str().unwrap()];
        let answer = call(&args);
        assert_eq!((answer.code, &*answer.stdout), (Some(0), "Hello, World!\n"), "{answer:?}");
        tried += 1;
    }
    assert!(tried > 0, "{languages}");
}

#[test]
fn a_language_that_cannot_hide_them_says_so() {
    let answer = call(&["-l", "bash", "-c", "true", "--no-host-packages"]);
    answer.is_refused_with(&["--no-host-packages", "bash"]);
}

#[test]
fn a_language_is_shown_with_where_they_are() {
    let shown = call(&["runtimes", "show", "py"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.stdout.starts_with("language       python\n"), "{shown:?}");
    if Path::new(PLACE).is_dir() {
        for part in [PLACE, "visible to programs by default", "--no-host-packages"] {
            assert!(shown.stdout.contains(part), "no {part}: {shown:?}");
        }
    }
    let json = call(&["runtimes", "show", "python", "--json"]).json();
    assert_eq!(json["language"], "python");
    assert!(json["host_packages"].is_array(), "{json}");
    call(&["runtimes", "show", "pyhton"]).is_refused_with(&["'pyhton'", "sandbox-run runtimes"]);
}
