//! Cargo: crates for Rust. They are vendored, and compiled together with the program.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sandbox_core::{CollectedFile, PackageSpec};
use serde::Deserialize;
use toml::Value;

use super::LockedPackage;
use super::PackageError;
use super::host_variables::{self, HostVariables};
use super::manager::{LOCK_FILE, ManagerSpec, Resolution, Settings};

pub(super) const SPEC: ManagerSpec = ManagerSpec {
    name: "cargo",
    example: "rand, rand@0.9 or serde[derive]@1",
    tools: &["{root}/bin/cargo", "/usr/bin/cargo"],
    missing: "apt-get install cargo",
    hosts: &[("index.crates.io", 443), ("static.crates.io", 443)],
    pass_on: &["SSL_CERT_FILE", "SSL_CERT_DIR", "CARGO_HTTP_CAINFO"],
    fetch: include_str!("scripts/cargo-fetch.sh"),
    install: include_str!("scripts/cargo-install.sh"),
};

/// `name`, `name@1.2`, `name[feature,feature]@1`: what a line of `[dependencies]` can express.
pub(super) fn is_spec(text: &str) -> bool {
    parts(text).is_some()
}

/// Name, features and version.
fn parts(text: &str) -> Option<(&str, Vec<&str>, &str)> {
    let is_word = |word: &str| {
        let is_usual = |letter: char| letter.is_ascii_alphanumeric() || "_-+.".contains(letter);
        !word.is_empty() && word.chars().all(is_usual)
    };
    let (name, version) = text.split_once('@').unwrap_or((text, "*"));
    let (name, features) = match name.split_once('[') {
        Some((name, features)) => (name, features.strip_suffix(']')?.split(',').collect()),
        None => (name, Vec::new()),
    };
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || ".*^~=<>,-+".contains(letter);
    let right = is_word(name)
        && !name.contains(['.', '+'])
        && features.iter().all(|feature| is_word(feature))
        && !version.is_empty()
        && version.chars().all(is_usual);
    right.then_some((name, features, version))
}

/// The lines of `[dependencies]` for these packages.
pub(super) fn requirements(specs: &[PackageSpec]) -> String {
    let mut lines = String::new();
    for spec in specs {
        let Some((name, features, version)) = parts(spec.as_str()) else { continue };
        let features: Vec<String> =
            features.iter().map(|feature| format!("\"{feature}\"")).collect();
        let _ = writeln!(
            lines,
            "{name} = {{ version = \"{version}\", features = [{}] }}",
            features.join(", ")
        );
    }
    lines
}

/// Path of cargo's configuration file. Cargo has no command that prints its settings.
pub(super) fn config_file(variables: &HostVariables) -> Option<PathBuf> {
    let home = variables.get("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| variables.get("HOME").map(|home| Path::new(home).join(".cargo")))?;
    ["config.toml", "config"].iter().map(|name| home.join(name)).find(|path| path.is_file())
}

/// Parses cargo's configuration. Every registry in it is reachable, and the file is shared with the sandbox.
pub(super) fn settings(
    file: Option<&Path>,
    variables: &HostVariables,
) -> Result<Settings, PackageError> {
    let mut settings = Settings { proxies: variables.proxies(), ..Settings::default() };
    settings.default_index = true;
    let Some(file) = file else { return Ok(settings) };
    let text = std::fs::read_to_string(file).map_err(PackageError::file("read", file))?;
    let config: Value = toml::from_str(&text).map_err(|error| PackageError::Settings {
        manager: SPEC.name,
        reason: format!("{}: {}", file.display(), error.message()),
    })?;
    for (table, key) in [("source", "registry"), ("registries", "index")] {
        let sources = config.get(table).and_then(Value::as_table).into_iter().flatten();
        let urls = sources.filter_map(|(_, source)| source.get(key).and_then(Value::as_str));
        let urls = urls.map(|url| url.strip_prefix("sparse+").unwrap_or(url));
        settings.places.extend(urls.filter_map(host_variables::host_port_of));
    }
    let replaced = config.get("source").and_then(|source| source.get("crates-io"));
    settings.default_index = replaced.and_then(|source| source.get("replace-with")).is_none();
    if let Some(proxy) = config.get("http").and_then(|http| http.get("proxy")) {
        let proxy = proxy.as_str().and_then(host_variables::proxy);
        settings.proxies.tunnel = proxy.clone().or(settings.proxies.tunnel);
        settings.proxies.plain = proxy.or(settings.proxies.plain);
    }
    let shared = settings.host_files.share(file)?.to_string_lossy().into_owned();
    settings.variables.insert("CARGO_HOST_CONFIG".to_owned(), shared);
    Ok(settings)
}

#[derive(Deserialize)]
struct CargoLock {
    #[serde(default)]
    package: Vec<CargoPackage>,
}

#[derive(Deserialize)]
struct CargoPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Parses cargo's lock file, in which every crate has a hash except the generated one.
pub(super) fn lock(files: &[CollectedFile]) -> Result<Resolution, String> {
    let file = files.iter().find(|file| file.path == LOCK_FILE).ok_or("cargo wrote no lock")?;
    let document = std::str::from_utf8(&file.contents).map_err(|error| error.to_string())?;
    let lock: CargoLock = toml::from_str(document)
        .map_err(|error| format!("cargo's lock cannot be read: {}", error.message()))?;
    let hashed = |package: CargoPackage| {
        let hash = format!("sha256:{}", package.checksum?);
        Some(LockedPackage { name: package.name, version: package.version, hash })
    };
    let mut packages: Vec<LockedPackage> = lock.package.into_iter().filter_map(hashed).collect();
    packages.sort();
    Ok(Resolution { packages, document: document.to_owned(), ..Resolution::default() })
}

/// The crate that is being vendored, according to a line of output.
pub(super) fn fetched_package(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("Vendoring ")?.split_whitespace().next()
}

/// Cargo prints the operation first and the cause below it.
pub(super) fn error_line(stderr: &str) -> Option<&str> {
    const REASONS: &[&str] =
        &["no matching package", "failed to select a version", "the package `"];
    let is_reason = |line: &&str| REASONS.iter().any(|start| line.starts_with(start));
    let reason = stderr.lines().map(|line| line.strip_prefix("error: ").unwrap_or(line).trim());
    let first = || stderr.lines().find_map(|line| line.strip_prefix("error: "));
    reason.rev().find(is_reason).or_else(first)
}

#[cfg(test)]
mod tests {
    use super::super::host_variables::tests::variables;
    use super::*;

    #[test]
    fn a_name_with_features_and_a_version_is_a_spec() {
        for spec in ["rand", "rand@0.9", "serde[derive]@1", "tokio[rt,macros]", "a@>=1,<2"] {
            assert!(is_spec(spec), "{spec}");
        }
        for spec in
            ["serde==1", "serde[", "serde[]", "@a/b", "a@", "a.b", "a@1@2", "serde[derive]1"]
        {
            assert!(!is_spec(spec), "{spec}");
        }
    }

    #[test]
    fn specs_become_dependencies() {
        let specs = ["rand@0.9", "serde[derive,rc]@1"].map(|spec| spec.parse().unwrap());
        assert_eq!(
            requirements(&specs),
            "rand = { version = \"0.9\", features = [] }\n\
             serde = { version = \"1\", features = [\"derive\", \"rc\"] }\n"
        );
    }

    #[test]
    fn a_configured_mirror_replaces_the_default_index() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        std::fs::write(
            &file,
            "[source.crates-io]\nreplace-with = \"mirror\"\n\
             [source.mirror]\nregistry = \"sparse+https://mirror.example.com/index/\"\n",
        )
        .unwrap();
        let variables = variables(&[("CARGO_HOME", home.path().to_str().unwrap())]);
        assert_eq!(config_file(&variables).as_deref(), Some(file.as_path()));
        let settings = settings(Some(&file), &variables).unwrap();
        assert!(!settings.default_index);
        assert_eq!(settings.places[0].to_string(), "mirror.example.com:443");
        assert_eq!(settings.variables["CARGO_HOST_CONFIG"], "/work/host/0");
    }

    #[test]
    fn the_lock_names_every_crate_with_its_hash() {
        let contents = "# asked: a = \"1\"\nversion = 4\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                        checksum = \"ff\"\n[[package]]\nname = \"program\"\nversion = \"0.0.0\"\n";
        let file = CollectedFile {
            path: "lock".into(),
            contents: contents.as_bytes().to_vec(),
            executable: false,
        };
        let Resolution { packages, document, .. } = lock(&[file]).unwrap();
        assert_eq!(packages.len(), 1);
        assert_eq!((packages[0].name.as_str(), packages[0].hash.as_str()), ("a", "sha256:ff"));
        assert_eq!(document, contents);
        assert!(lock(&[]).is_err());
    }

    #[test]
    fn the_error_line_states_the_cause() {
        let text = "    Updating crates.io index\nerror: failed to sync\n\nCaused by:\n  failed to load\n\n\
                    Caused by:\n  no matching package named `x` found\n  location searched: y\n";
        assert_eq!(error_line(text), Some("no matching package named `x` found"));
        assert_eq!(error_line("error: something else\nfurther\n"), Some("something else"));
    }
}
