//! The map of modules at the end of ARCHITECTURE.md names every module.
//!
//! `make map` writes the map. This test does not compare its sentences, so editing the documentation of a module does not
//! fail it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::crates::all;

#[test]
fn the_map_names_every_module() {
    let architecture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    let architecture = fs::read_to_string(architecture).unwrap();
    let mut mistakes = Vec::new();
    for (name, directory) in all() {
        let section = section(&architecture, &name);
        let modules = modules(&directory.join("src"));
        let missing =
            modules.difference(&section).map(|module| format!("{name}: {module} is missing"));
        let stale =
            section.difference(&modules).map(|module| format!("{name}: {module} does not exist"));
        mistakes.extend(missing.chain(stale));
    }
    assert!(
        mistakes.is_empty(),
        "the map in ARCHITECTURE.md is out of date, run `make map`:\n{}",
        mistakes.join("\n")
    );
}

/// The modules that the map has for a crate, as paths below its `src`.
fn section(architecture: &str, name: &str) -> BTreeSet<String> {
    let heading = format!("### {name}");
    let lines = architecture.lines().skip_while(|line| *line != heading).skip(1);
    let rows =
        lines.take_while(|line| !line.starts_with("### ")).filter(|line| line.starts_with("| `"));
    rows.flat_map(row).collect()
}

/// The modules of one row: a file, or a folder with the files in it.
fn row(row: &str) -> Vec<String> {
    let names: Vec<_> = row.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect();
    let name = names[0].trim_matches('`');
    let files = names.last().unwrap().split(", ").filter(|_| name.ends_with('/'));
    let files = files.map(|file| file.trim_matches('`')).filter(|file| !file.is_empty());
    let files = files.map(|file| format!("{name}{file}.rs"));
    std::iter::once(name.to_owned()).chain(files).collect()
}

/// The modules below a directory, test modules left out. A folder stands for the file that declares its modules, which is its
/// `mod.rs` or lies beside it.
fn modules(source: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut directories = vec![source.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(source).unwrap().to_str().unwrap();
            let file_name = path.file_name().unwrap();
            if file_name == "tests" || file_name == "tests.rs" || file_name == "mod.rs" {
                continue;
            }
            if path.is_dir() {
                let holds_modules =
                    path.join("mod.rs").exists() || path.with_extension("rs").exists();
                if holds_modules {
                    found.insert(format!("{name}/"));
                    directories.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.with_extension("").is_dir()
            {
                found.insert(name.to_owned());
            }
        }
    }
    found
}
