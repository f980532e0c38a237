//! The top-level modules of a crate have no dependency cycle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::crates::all;
use crate::graph::Graph;
use crate::source::{self, Path, Source};

/// Dependencies that still close a cycle: crate, from, to. Without them no cycle may be left, and an entry that closes none
/// fails the test too, so this list only gets shorter.
const ALLOWED: &[(&str, &str, &str)] = &[];

/// Items that the crate root defines itself. The root declares every module, so a module that uses such an item is in a
/// cycle: move the item to a module of its own.
const ROOT: &str = "(crate root)";

#[test]
fn modules_have_no_dependency_cycle() {
    let mut mistakes = Vec::new();
    for (name, directory) in all() {
        let allowed: Vec<_> = ALLOWED.iter().filter(|(owner, ..)| *owner == name).collect();
        let whole = graph(&files(&directory.join("src")));
        let without = |kept: Option<usize>| {
            let left_out = allowed.iter().enumerate().filter(|(place, _)| Some(*place) != kept);
            left_out.fold(whole.clone(), |graph, (_, (_, from, to))| graph.without(from, to))
        };
        for (place, (_, from, to)) in allowed.iter().enumerate() {
            if !whole.has(from, to) || without(Some(place)).cycle().is_none() {
                mistakes.push(format!(
                    "{name}: {from} -> {to} closes no cycle: remove it from ALLOWED"
                ));
            }
        }
        let graph = without(None);
        if let Some(cycle) = graph.cycle() {
            mistakes.push(format!("{name}: modules in a cycle:\n{}", graph.describe(&cycle)));
        }
    }
    for (owner, from, to) in ALLOWED {
        if !all().contains_key(*owner) {
            mistakes.push(format!(
                "{owner}: {from} -> {to} names no crate of the workspace: remove it from ALLOWED"
            ));
        }
    }
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
}

/// The source files of a crate: module path, file name, text.
fn files(src: &std::path::Path) -> Vec<(Path, String, String)> {
    let mut found = Vec::new();
    let mut directories = vec![src.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let file = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
                let mut module: Path =
                    file.trim_end_matches(".rs").split('/').map(ToOwned::to_owned).collect();
                let is_root = matches!(file.as_str(), "lib.rs" | "main.rs");
                if is_root || module.last().is_some_and(|name| name == "mod") {
                    module.pop();
                }
                found.push((module, file, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// The dependencies between top-level modules.
fn graph(files: &[(Path, String, String)]) -> Graph {
    let sources: Vec<(&Path, &str, Source)> = files
        .iter()
        .map(|(module, file, text)| (module, file.as_str(), source::read(module, text)))
        .collect();
    let tests: BTreeSet<&Path> =
        sources.iter().flat_map(|(.., source)| &source.test_modules).collect();
    let is_test =
        |module: &Path| (1..=module.len()).any(|end| tests.contains(&module[..end].to_vec()));
    let top: BTreeSet<&str> =
        sources.iter().filter_map(|(module, ..)| module.first().map(String::as_str)).collect();
    let mut root = Source::default();
    for (.., source) in sources.iter().filter(|(module, ..)| module.is_empty()) {
        root.imports.extend(source.imports.iter().cloned());
        root.items.extend(source.items.iter().cloned());
    }
    let imports: BTreeMap<&str, &str> = root
        .imports
        .iter()
        .filter_map(|(path, name)| {
            let mut parts = path.iter().map(String::as_str);
            let module = parts.find(|part| !matches!(*part, "crate" | "self"))?;
            assert!(
                name != "*" || !top.contains(module),
                "re-export the items of {module} by name: a glob hides where they come from"
            );
            Some((name.as_str(), module))
        })
        .filter(|(_, module)| top.contains(module))
        .collect();
    let mut graph = Graph::default();
    for (module, file, source) in &sources {
        let Some(from) = module.first().filter(|_| !is_test(module)) else { continue };
        graph.add(ROOT, from, "lib.rs");
        for name in source.paths.iter().filter_map(|path| path.first()) {
            let to = match name.as_str() {
                name if top.contains(name) => name,
                name if imports.contains_key(name) => imports[name],
                name if root.items.contains(name) => ROOT,
                // An item of another crate.
                _ => continue,
            };
            if to != from {
                graph.add(from, to, file);
            }
        }
    }
    graph
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(files: &[(&str, &str)]) -> Option<Vec<String>> {
        let module = |file: &str| {
            let name = file.trim_end_matches(".rs");
            let name = name.trim_end_matches("lib").trim_end_matches("/mod");
            name.split('/').filter(|part| !part.is_empty()).map(ToOwned::to_owned).collect()
        };
        let files: Vec<_> = files
            .iter()
            .map(|(file, text)| (module(file), (*file).to_owned(), (*text).to_owned()))
            .collect();
        graph(&files).cycle()
    }

    #[test]
    fn a_cycle_through_a_re_export_is_found() {
        let lib = ("lib.rs", "mod a;\nmod b;\npub use b::Thing as Other;");
        let a = ("a/inner.rs", "use crate::Other;");
        assert_eq!(cycle(&[lib, a, ("b.rs", "fn f() {}")]), None);
        let b = ("b.rs", "fn f() { super::a::g() }");
        assert_eq!(cycle(&[lib, a, b]).unwrap(), ["a", "b", "a"]);
    }

    #[test]
    fn a_module_that_uses_an_item_of_the_root_is_in_a_cycle() {
        let lib = ("lib.rs", "mod a;\npub struct Thing;");
        assert_eq!(cycle(&[lib, ("a.rs", "use crate::Thing;")]).unwrap(), [ROOT, "a", ROOT]);
        assert_eq!(cycle(&[lib, ("a.rs", "use std::fmt; struct Thing;")]), None);
    }

    #[test]
    fn test_modules_are_ignored() {
        let lib = ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod fake;");
        let a = ("a/mod.rs", "#[cfg(test)]\nmod tests;");
        let tests = ("a/tests.rs", "use crate::b;");
        let fake = ("fake.rs", "use crate::a;");
        assert_eq!(cycle(&[lib, a, tests, fake, ("b.rs", "use crate::a;")]), None);
    }
}
