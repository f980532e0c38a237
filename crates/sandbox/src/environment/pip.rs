//! pip: Python's packages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use sandbox_core::{CollectedFile, HostPort};
use sha2::{Digest, Sha256};

use super::LockedPackage;
use super::PackageError;
use super::host_variables::{self, HostVariables};
use super::manager::{FETCHED, ManagerSpec, Resolution, Settings};
use crate::runtime::query;

pub(super) const SPEC: ManagerSpec = ManagerSpec {
    name: "pip",
    example: "six, numpy==2.* or requests[socks]>=2,<3",
    // The pip of this Python; otherwise another one, which works with any Python.
    tools: &[
        "{root}/lib/python3.*/site-packages/pip",
        "/usr/lib/python3/dist-packages/pip",
        "/usr/local/lib/python3.*/dist-packages/pip",
        "/usr/lib/python3.*/site-packages/pip",
        "~/.pyenv/versions/3.*/lib/python3.*/site-packages/pip",
    ],
    missing: "apt-get install python3-pip",
    hosts: &[("pypi.org", 443), ("files.pythonhosted.org", 443)],
    pass_on: &["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"],
    fetch: include_str!("scripts/pip-fetch.sh"),
    install: include_str!("scripts/pip-install.sh"),
};

/// Settings that affect fetching. Paths among them are shared with the sandbox.
const SETTINGS: &[&str] = &[
    "index-url",
    "extra-index-url",
    "no-index",
    "find-links",
    "trusted-host",
    "cert",
    "client-cert",
    "timeout",
    "default-timeout",
    "retries",
    "pre",
    "only-binary",
    "no-binary",
    "constraint",
];

/// `name[extra,extra]==1.2,!=1.3`: a name, extras, and bounds; no marker, no URL, no space.
pub(super) fn is_spec(text: &str) -> bool {
    let name_end = text.find(['[', '=', '<', '>', '!', '~']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(name_end);
    if let Some(extras) = rest.strip_prefix('[') {
        let Some((extras, after)) = extras.split_once(']') else {
            return false;
        };
        if !extras.split(',').all(is_name) {
            return false;
        }
        rest = after;
    }
    is_name(name) && (rest.is_empty() || rest.split(',').all(is_bound))
}

fn is_name(text: &str) -> bool {
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let ends_well = |end: Option<char>| end.is_some_and(|letter| letter.is_ascii_alphanumeric());
    ends_well(text.chars().next()) && ends_well(text.chars().last()) && text.chars().all(is_usual)
}

fn is_bound(text: &str) -> bool {
    let operators = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];
    let version = operators.iter().find_map(|operator| text.strip_prefix(operator));
    let is_usual = |letter: char| letter.is_ascii_alphanumeric() || ".*+!_-".contains(letter);
    version.is_some_and(|version| !version.is_empty() && version.chars().all(is_usual))
}

/// All settings of pip, from its files and variables.
pub(super) fn ask(program: &Path, tool: &Path) -> Result<String, String> {
    let tool = tool.to_string_lossy().into_owned();
    query::with_user_environment(program, &[tool, "config".to_owned(), "list".to_owned()])
}

/// Parses the settings that pip prints, one on each line: `global.index-url='https://…'`.
pub(super) fn settings(printed: &str, variables: &HostVariables) -> Result<Settings, PackageError> {
    let printed: BTreeMap<&str, String> = printed
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name, unquote(value)))
        .collect();
    // A variable takes precedence over the section of a command, and that over the global section.
    let value = |name: &str| {
        let sections = [":env:", "download", "global"];
        let found =
            sections.iter().find_map(|section| printed.get(format!("{section}.{name}").as_str()));
        found.filter(|value| !value.is_empty())
    };
    let mut settings = Settings { proxies: variables.proxies(), ..Settings::default() };
    if let Some(proxy) = value("proxy").and_then(|proxy| host_variables::proxy(proxy)) {
        settings.proxies.tunnel = Some(proxy.clone());
        settings.proxies.plain = Some(proxy);
    }
    settings.default_index = value("index-url").is_none_or(|url| url.contains("//pypi.org/"));
    for name in SETTINGS {
        let Some(value) = value(name) else { continue };
        let mut words = Vec::new();
        for word in value.split_whitespace() {
            settings.places.extend(host_variables::host_port_of(word));
            let is_path = Path::new(word).is_absolute() && !name.ends_with("-binary");
            words.push(if is_path {
                settings.host_files.share(Path::new(word))?.to_string_lossy().into_owned()
            } else {
                word.to_owned()
            });
            if *name == "trusted-host" {
                settings.places.extend(trusted(word));
            }
        }
        let variable = format!("PIP_{}", name.replace('-', "_").to_uppercase());
        settings.variables.insert(variable, words.join(" "));
    }
    // All settings are passed as variables. A file that exists inside is not the host's configuration.
    settings.variables.insert("PIP_CONFIG_FILE".to_owned(), "/dev/null".to_owned());
    Ok(settings)
}

/// A trusted host, on its own port or on both default ports.
fn trusted(word: &str) -> Vec<HostPort> {
    match word.parse() {
        Ok(place) => vec![place],
        Err(_) => [443, 80].iter().filter_map(|port| HostPort::new(word, *port).ok()).collect(),
    }
}

/// Parses a Python string literal.
fn unquote(value: &str) -> String {
    let inner = value.trim();
    let inner = ['\'', '"']
        .iter()
        .find_map(|quote| inner.strip_prefix(*quote).and_then(|inner| inner.strip_suffix(*quote)));
    let Some(inner) = inner else {
        return value.trim().to_owned();
    };
    let mut text = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        text.push(match letter {
            '\\' => match letters.next() {
                Some('n' | 't' | 'r') => ' ',
                Some(other) => other,
                None => '\\',
            },
            letter => letter,
        });
    }
    text
}

/// The exact packages: name and version from the name of each fetched file, and its hash.
pub(super) fn lock(files: &[CollectedFile]) -> Result<Resolution, String> {
    let mut found = Resolution::default();
    for file in files {
        let Some(name) = file.path.strip_prefix(FETCHED).and_then(|name| name.strip_prefix('/'))
        else {
            continue;
        };
        let is_source = name.strip_suffix(".whl").is_none();
        let (name, version) = name_and_version(name)
            .ok_or_else(|| format!("pip fetched '{name}', which is not a package"))?;
        if is_source {
            found.from_source.push(name.clone());
        }
        let mut hash = "sha256:".to_owned();
        for byte in Sha256::digest(&file.contents) {
            let _ = write!(hash, "{byte:02x}");
        }
        found.packages.push(LockedPackage { name, version, hash });
    }
    found.packages.sort();
    found.from_source.sort();
    let line = |package: &LockedPackage| {
        format!("{}=={} --hash={}\n", package.name, package.version, package.hash)
    };
    found.document = found.packages.iter().map(line).collect();
    Ok(found)
}

/// Name and version of `numpy-2.1.0-cp311-….whl` or `six-1.17.0.tar.gz`, with the normalized name.
fn name_and_version(file: &str) -> Option<(String, String)> {
    let (name, version) = if let Some(stem) = file.strip_suffix(".whl") {
        let mut parts = stem.split('-');
        (parts.next()?, parts.next()?)
    } else {
        let stem = [".tar.gz", ".zip", ".tar.bz2"].iter().find_map(|end| file.strip_suffix(end))?;
        stem.rsplit_once('-')?
    };
    let parts: Vec<&str> = name.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    let name = parts.join("-").to_lowercase();
    // Accept only what is valid in a lock, whatever the name of the file.
    (is_name(&name) && is_bound(&format!("=={version}"))).then(|| (name, version.to_owned()))
}

/// The package that is being fetched, according to a line of output.
pub(super) fn fetched_package(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("Collecting ")?.split_whitespace().next()
}

/// The last output of a failed build, or else the last error, which summarizes the earlier ones.
pub(super) fn error_line(stderr: &str) -> Option<&str> {
    let lines: Vec<&str> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let end = lines.iter().rposition(|line| *line == "[end of output]");
    let said = end.and_then(|end| lines.get(end.checked_sub(1)?)).copied();
    said.or_else(|| lines.iter().rev().find_map(|line| line.strip_prefix("ERROR: ")))
}

#[cfg(test)]
mod tests {
    use super::super::host_variables::tests::variables;
    use super::*;

    #[test]
    fn a_name_with_extras_and_bounds_is_a_spec() {
        for spec in ["six", "numpy==2.*", "requests[socks,security]>=2,<3", "a.b_c-d~=1!2.0+x"] {
            assert!(is_spec(spec), "{spec}");
        }
        for spec in
            ["six==", "six=1", "six@1", "@a/b", "six[", "six[]", "six[a", "six>=1,2", "-x", "six-"]
        {
            assert!(!is_spec(spec), "{spec}");
        }
    }

    #[test]
    fn the_default_index_is_used_if_none_is_configured() {
        let settings = settings("global.timeout='9'\n", &variables(&[])).unwrap();
        assert!(settings.default_index && settings.places.is_empty());
        assert_eq!(settings.variables["PIP_TIMEOUT"], "9");
    }

    #[test]
    fn a_configured_index_replaces_the_default_index() {
        let printed = "global.index-url='https://ada:pw@index.example.com/simple'\n\
                    global.extra-index-url='\\nhttp://a:81/x\\nhttps://b/y'\n\
                    :env:.trusted-host='files.example.com'\n";
        let settings = settings(printed, &variables(&[])).unwrap();
        assert!(!settings.default_index);
        let places: Vec<String> = settings.places.iter().map(ToString::to_string).collect();
        assert_eq!(
            places,
            [
                "index.example.com:443",
                "a:81",
                "b:443",
                "files.example.com:443",
                "files.example.com:80"
            ]
        );
        assert_eq!(settings.variables["PIP_EXTRA_INDEX_URL"], "http://a:81/x https://b/y");
    }

    #[test]
    fn a_variable_takes_precedence_over_a_file() {
        let printed =
            "global.index-url='https://file/simple'\n:env:.index-url='https://variable/simple'\n";
        let settings = settings(printed, &variables(&[])).unwrap();
        assert_eq!(settings.places[0].to_string(), "variable:443");
        assert_eq!(settings.variables["PIP_INDEX_URL"], "https://variable/simple");
    }

    #[test]
    fn fetched_files_are_locked_by_name_version_and_hash() {
        let file = |name: &str| CollectedFile {
            path: format!("fetched/{name}"),
            contents: b"abc".to_vec(),
            executable: false,
        };
        let files = [file("six-1.17.0.tar.gz"), file("Foo_Bar.baz-2.0-py3-none-any.whl")];
        let Resolution { packages, from_source, document } = lock(&files).unwrap();
        let hash = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(packages[0].name, "foo-bar-baz");
        assert_eq!(from_source, ["six"]);
        assert_eq!((packages[1].version.as_str(), packages[1].hash.as_str()), ("1.17.0", hash));
        assert_eq!(
            document,
            format!("foo-bar-baz==2.0 --hash={hash}\nsix==1.17.0 --hash={hash}\n")
        );
        for name in ["README", "x --index-url=y-1.0.tar.gz", "x-1 -r.zip", "-1.whl"] {
            assert!(lock(&[file(name)]).is_err(), "{name}");
        }
    }

    #[test]
    fn a_collecting_line_names_the_package() {
        assert_eq!(
            fetched_package("  Collecting idna<4,>=2.5 (from requests)"),
            Some("idna<4,>=2.5")
        );
        assert_eq!(fetched_package("Looking in links: /x"), None);
    }

    #[test]
    fn the_error_line_states_the_cause() {
        let text = "ERROR: Could not find a version that satisfies the requirement six==99\n\
                    ERROR: No matching distribution found for six==99\n";
        assert_eq!(error_line(text), Some("No matching distribution found for six==99"));
        let text = "  error: subprocess-exited-with-error\n  ╰─> [2 lines of output]\n      Traceback\n\
                    \x20     OSError: no compiler\n      [end of output]\n\n  note: This error\n\
                    ERROR: Failed building wheel for x\n";
        assert_eq!(error_line(text), Some("OSError: no compiler"));
    }
}
