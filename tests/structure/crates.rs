//! Crates depend on each other only as the map allows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// Every crate with the crates that it may depend on. A row lists only crates of earlier rows, so there is no cycle.
const MAP: &[(&str, &[&str])] = &[
    ("sandbox-core", &[]),
    ("sandbox-api", &[]),
    ("sandbox-client", &["sandbox-core", "sandbox-api"]),
    ("sandbox-protocol", &[]),
    ("sandbox-agent", &["sandbox-protocol"]),
    ("sandbox-zygote", &["sandbox-protocol"]),
    ("sandbox-images", &["sandbox-core"]),
    ("sandbox-store", &["sandbox-core"]),
    ("sandbox-linux", &["sandbox-core", "sandbox-protocol"]),
    ("sandbox-backends", &["sandbox-core", "sandbox-protocol", "sandbox-linux"]),
    ("sandbox", &["sandbox-core", "sandbox-images", "sandbox-backends"]),
    ("sandbox-scheduler", &["sandbox", "sandbox-store"]),
    ("sandbox-server", &["sandbox", "sandbox-api", "sandbox-store", "sandbox-scheduler"]),
    ("sandbox-cli", &["sandbox", "sandbox-api", "sandbox-client", "sandbox-images"]),
];

/// The crates of the workspace by name, with their directories.
pub(crate) fn all() -> BTreeMap<String, PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let entries = fs::read_dir(directory).unwrap();
    let directories = entries.map(|entry| entry.unwrap().path());
    directories
        .filter(|directory| directory.join("Cargo.toml").is_file())
        .map(|directory| (package_name(&directory), directory))
        .collect()
}

fn manifest(directory: &Path) -> Table {
    fs::read_to_string(directory.join("Cargo.toml")).unwrap().parse().unwrap()
}

fn package_name(directory: &Path) -> String {
    manifest(directory)["package"]["name"].as_str().unwrap().to_owned()
}

/// The package names in all dependency tables of a manifest, including those for builds and tests.
fn dependencies(manifest: &Table) -> BTreeSet<String> {
    let mut tables = vec![manifest];
    let targets = manifest.get("target").and_then(|targets| targets.as_table());
    tables.extend(targets.into_iter().flatten().filter_map(|(_, target)| target.as_table()));
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let lists = tables.into_iter().flat_map(|table| kinds.map(|kind| table.get(kind)));
    let entries = lists.flatten().filter_map(|list| list.as_table()).flatten();
    // A dependency can be renamed.
    let own_name = |entry: &toml::Value| Some(entry.get("package")?.as_str()?.to_owned());
    entries.map(|(name, entry)| own_name(entry).unwrap_or_else(|| name.clone())).collect()
}

#[test]
fn crates_depend_on_each_other_only_as_the_map_allows() {
    let crates = all();
    let known: BTreeSet<&str> = MAP.iter().map(|(name, _)| *name).collect();
    let there: BTreeSet<&str> = crates.keys().map(String::as_str).collect();
    assert_eq!(known, there, "the map must list exactly the crates of the workspace");
    let mut above = BTreeSet::new();
    for (name, may) in MAP {
        for other in *may {
            assert!(
                above.contains(other),
                "the map lists {other} for {name}, but {other} does not come before it"
            );
        }
        above.insert(*name);
        let used = dependencies(&manifest(&crates[*name]));
        let used: Vec<_> = used.iter().filter(|other| there.contains(other.as_str())).collect();
        let forbidden: Vec<_> =
            used.iter().filter(|other| !may.contains(&other.as_str())).collect();
        assert!(forbidden.is_empty(), "{name} must not depend on {forbidden:?}");
    }
}

#[test]
fn dependencies_are_read_from_every_table() {
    let text = "[dependencies]\na.workspace = true\nx = { package = 'b', path = '.' }\n\
                [dev-dependencies]\nc = '1'\n[target.'cfg(unix)'.build-dependencies]\nd = '1'\n";
    assert_eq!(Vec::from_iter(dependencies(&text.parse().unwrap())), ["a", "b", "c", "d"]);
}
