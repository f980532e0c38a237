//! One test for each attack, each program of the corpus and each language, so that a failure names it
//! and they run side by side. There is no list to keep: what lies in the folders is what is tested.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "this is how cargo talks to a build script")]
fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let attacks = here.join("../attacks").canonicalize()?;
    fs::write(out.join("attacks.rs"), tests(&attacks, "super::pair", is_attack)?)?;
    let corpus = here.join("corpus");
    fs::write(out.join("corpus.rs"), tests(&corpus, "super::case", |_| true)?)?;
    let runtimes = here.join("../runtimes").canonicalize()?;
    fs::write(out.join("hello.rs"), hellos(&runtimes)?)
}

/// A test for each folder with a recipe in it.
fn hellos(runtimes: &Path) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", runtimes.display());
    let mut tests = String::new();
    for language in names(runtimes)? {
        if runtimes.join(&language).join("runtime.toml").is_file() {
            let test = identifier(&language);
            let _ = writeln!(tests, "#[test]\nfn {test}() {{ says_hello(\"{language}\") }}");
        }
    }
    Ok(tests)
}

/// A module for each folder, and in it a test for each thing in that folder, which calls `function` with
/// both names.
fn tests(root: &Path, function: &str, is_test: impl Fn(&str) -> bool) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", root.display());
    let mut tests = String::new();
    for folder in names(root)? {
        if !root.join(&folder).is_dir() {
            continue;
        }
        let _ = writeln!(tests, "mod {} {{", identifier(&folder));
        for file in names(&root.join(&folder))?.into_iter().filter(|file| is_test(file)) {
            let name = file.rsplit_once('.').map_or(file.as_str(), |(name, _)| name);
            let _ = writeln!(
                tests,
                "    #[test]\n    fn {}() {{ {function}(\"{folder}\", \"{name}\") }}",
                identifier(name)
            );
        }
        tests.push_str("}\n");
    }
    Ok(tests)
}

/// A name that begins like this belongs to another attack.
fn is_attack(file: &str) -> bool {
    !file.starts_with('_')
}

fn identifier(name: &str) -> String {
    name.replace('-', "_")
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
