//! npm: packages for JavaScript and TypeScript.

use std::path::Path;

use sandbox_core::CollectedFile;
use serde_json::Value;

use super::LockedPackage;
use super::PackageError;
use super::host_variables::{self, HostVariables};
use super::manager::{LOCK_FILE, ManagerSpec, Resolution, Settings};
use crate::runtime::query;

pub(super) const SPEC: ManagerSpec = ManagerSpec {
    name: "npm",
    example: "lodash, lodash@4 or @types/node@^22",
    // The npm of this Node; otherwise another one, which works with most versions.
    tools: &[
        "{root}/lib/node_modules/npm",
        "/usr/lib/node_modules/npm",
        "/usr/share/nodejs/npm",
        "/usr/local/lib/node_modules/npm",
        "~/.nvm/versions/node/*/lib/node_modules/npm",
    ],
    missing: "apt-get install npm",
    hosts: &[("registry.npmjs.org", 443)],
    pass_on: &[
        "NODE_EXTRA_CA_CERTS",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NPM_TOKEN",
        "NODE_AUTH_TOKEN",
    ],
    fetch: include_str!("scripts/npm-fetch.sh"),
    install: include_str!("scripts/npm-install.sh"),
};

/// Prefix of variables with npm settings. Those in `NOT_PASSED_ON` depend on paths and proxies of the host.
const PREFIX: &str = "npm_config_";
const NOT_PASSED_ON: &[&str] =
    &["cache", "prefix", "userconfig", "globalconfig", "proxy", "https_proxy", "noproxy", "cafile"];

/// `name`, `name@range`, `@scope/name@range`: a range of numbers or a tag; no URL, path or alias.
pub(super) fn is_spec(text: &str) -> bool {
    let (scope, rest) = match text.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, rest)) => (Some(scope), rest),
            None => return false,
        },
        None => (None, text),
    };
    let (name, range) = match rest.split_once('@') {
        Some((name, range)) => (name, Some(range)),
        None => (rest, None),
    };
    let is_name = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_alphanumeric())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter))
    };
    let is_range = |range: &str| {
        !range.is_empty()
            && range
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || ".^~*<>=|+_-".contains(letter))
    };
    scope.is_none_or(is_name) && is_name(name) && range.is_none_or(is_range)
}

/// All settings of npm, from its files and variables.
pub(super) fn ask(program: &Path, tool: &Path) -> Result<String, String> {
    let tool = tool.join("bin/npm-cli.js").to_string_lossy().into_owned();
    query::with_user_environment(
        program,
        &[&tool, "config", "list", "--json"].map(ToOwned::to_owned),
    )
}

/// Parses the settings that npm prints. Credentials are not among them: they are in files, which are shared with the
/// sandbox.
pub(super) fn settings(printed: &str, variables: &HostVariables) -> Result<Settings, PackageError> {
    let refused = |error: serde_json::Error| PackageError::Settings {
        manager: "npm",
        reason: error.to_string(),
    };
    let printed: serde_json::Map<String, Value> = serde_json::from_str(printed).map_err(refused)?;
    let value =
        |name: &str| printed.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut settings = Settings { proxies: variables.proxies(), ..Settings::default() };
    if let Some(proxy) = value("https-proxy").and_then(host_variables::proxy) {
        settings.proxies.tunnel = Some(proxy);
    }
    if let Some(proxy) = value("proxy").and_then(host_variables::proxy) {
        settings.proxies.plain = Some(proxy);
    }
    // The default registry, and those of scopes.
    for (name, registry) in &printed {
        if name == "registry" || name.ends_with(":registry") {
            settings.places.extend(registry.as_str().and_then(host_variables::host_port_of));
        }
    }
    settings.default_index = value("registry").is_none();
    for (name, text) in variables.iter() {
        let lower = name.to_lowercase();
        let setting = lower.strip_prefix(PREFIX);
        if setting.is_some_and(|setting| !NOT_PASSED_ON.contains(&setting)) {
            settings.variables.insert(name.to_owned(), text.to_owned());
        }
    }
    for name in ["userconfig", "globalconfig", "cafile"] {
        let Some(path) = value(name).map(Path::new).filter(|path| path.is_file()) else {
            continue;
        };
        let shared = settings.host_files.share(path)?.to_string_lossy().into_owned();
        settings.variables.insert(format!("{PREFIX}{name}"), shared);
    }
    Ok(settings)
}

/// Parses npm's lock file, in which every package has a hash.
pub(super) fn lock(files: &[CollectedFile]) -> Result<Resolution, String> {
    let file = files.iter().find(|file| file.path == LOCK_FILE).ok_or("npm wrote no lock")?;
    let unreadable = |error| format!("npm's lock cannot be read: {error}");
    let document = std::str::from_utf8(&file.contents).map_err(|error| error.to_string())?;
    let json: Value = serde_json::from_str(document).map_err(unreadable)?;
    let entries = json["packages"].as_object().ok_or("npm's lock names no packages")?;
    let mut packages = Vec::new();
    for (place, entry) in entries.iter().filter(|(place, _)| !place.is_empty()) {
        let text = |name: &str| entry[name].as_str().map(ToOwned::to_owned);
        let name = place.rsplit_once("node_modules/").map_or(place.as_str(), |(_, name)| name);
        match (text("version"), text("integrity")) {
            (Some(version), Some(hash)) => {
                packages.push(LockedPackage { name: name.to_owned(), version, hash });
            }
            _ => return Err(format!("npm's lock has no hash for '{place}'")),
        }
    }
    packages.sort();
    packages.dedup();
    Ok(Resolution { packages, document: document.to_owned(), ..Resolution::default() })
}

/// The installation path of each package, from npm's lock file.
pub(super) fn places(document: &str) -> Vec<String> {
    let json: Value = serde_json::from_str(document).unwrap_or_default();
    let entries = json["packages"].as_object().into_iter().flatten();
    let place = |(place, entry): (&String, &Value)| format!("{place} {}", entry["integrity"]);
    // The entry with an empty path is the project itself.
    entries.filter(|(place, _)| !place.is_empty()).map(place).collect()
}

/// The package whose archive was fetched, according to a line of output.
pub(super) fn fetched_package(line: &str) -> Option<&str> {
    let url = line.strip_prefix("npm http fetch GET 200 ")?.split_whitespace().next()?;
    url.strip_suffix(".tgz")?.rsplit('/').next()
}

/// The first meaningful line after the error code, without its leading word.
pub(super) fn error_line(stderr: &str) -> Option<&str> {
    let lines = stderr.lines().filter_map(|line| {
        line.strip_prefix("npm error ").or_else(|| line.strip_prefix("npm ERR! "))
    });
    let mut code = "";
    for line in lines {
        if let Some(found) = line.strip_prefix("code ") {
            code = found.strip_prefix('E').unwrap_or(found);
            continue;
        }
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let text = if first.eq_ignore_ascii_case(code) { rest } else { line };
        // The leading word is the code in lower case without its `E`, with few exceptions.
        let text = text.strip_prefix("notarget ").unwrap_or(text).trim();
        if !text.is_empty() && !text.starts_with("A complete log") {
            return Some(text);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::host_variables::tests::variables;
    use super::*;

    #[test]
    fn a_name_with_a_range_is_a_spec() {
        for spec in ["lodash", "lodash@4", "@types/node@^22.1", "left-pad@latest", "a@>=1||2"] {
            assert!(is_spec(spec), "{spec}");
        }
        for spec in ["@types", "a@", "a@b@c", "@/a", "@a/", "a==1", "a,b", "a[b]", "@a/@b"] {
            assert!(!is_spec(spec), "{spec}");
        }
    }

    #[test]
    fn every_registry_is_reachable() {
        let printed = r#"{"registry":"https://npm.example.com/","@x:registry":"http://y:4873/","proxy":null}"#;
        let variables = variables(&[("NPM_CONFIG_STRICT_SSL", "x"), ("npm_config_cache", "/c")]);
        let settings = settings(printed, &variables).unwrap();
        let places: Vec<String> = settings.places.iter().map(ToString::to_string).collect();
        assert_eq!(places, ["y:4873", "npm.example.com:443"]);
        assert!(!settings.default_index);
        assert_eq!(settings.variables.len(), 1);
        assert_eq!(settings.variables["NPM_CONFIG_STRICT_SSL"], "x");
    }

    #[test]
    fn the_lock_names_every_package_with_its_hash() {
        let with = |json: &str| {
            lock(&[CollectedFile {
                path: "lock".into(),
                contents: json.as_bytes().to_vec(),
                executable: false,
            }])
        };
        let json = r#"{"packages":{"":{},"node_modules/a":{"version":"1.0.0","integrity":"sha512-x"},
            "node_modules/a/node_modules/@s/b":{"version":"2.0.0","integrity":"sha512-y"}}}"#;
        let Resolution { packages, document, .. } = with(json).unwrap();
        assert_eq!(document, json);
        let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["@s/b", "a"]);
        let places = places(&document);
        let expected =
            ["node_modules/a \"sha512-x\"", "node_modules/a/node_modules/@s/b \"sha512-y\""];
        assert_eq!(places, expected);
        assert!(with(r#"{"packages":{"node_modules/a":{"version":"1.0.0"}}}"#).is_err());
        assert!(with("{}").is_err() && with("no json").is_err() && lock(&[]).is_err());
    }

    #[test]
    fn a_fetch_line_names_the_package() {
        let line =
            "npm http fetch GET 200 https://r/@types/node/-/node-22.1.0.tgz 60ms (cache miss)";
        assert_eq!(fetched_package(line), Some("node-22.1.0"));
        assert_eq!(fetched_package("npm http fetch GET 200 https://r/lodash 60ms"), None);
    }

    #[test]
    fn the_error_line_states_the_cause() {
        let text = "npm warn x\nnpm error code ETARGET\n\
                    npm error notarget No matching version found for left-pad@99.\n\
                    npm error notarget In most cases\n";
        assert_eq!(error_line(text), Some("No matching version found for left-pad@99."));
        let text =
            "npm error code E404\nnpm error 404 Not Found - GET https://r/x\nnpm error 404\n";
        assert_eq!(error_line(text), Some("Not Found - GET https://r/x"));
        assert_eq!(error_line("npm warn only\n"), None);
    }
}
